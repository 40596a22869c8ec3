-- name: grant_access
-- purpose: Grant an access token: store its name, role, agents and expiry, and only the digest of its secret
-- guards: No token of that name is valid
INSERT INTO holdfast_access (name, digest, role, agents, created_at, expires_at)
VALUES (:name, :digest, :role, CAST(:agents AS text), (SELECT holdfast_now()),
  (SELECT holdfast_now()) + CAST(:ttl AS bigint))
ON CONFLICT (name) DO UPDATE SET
  digest = excluded.digest, role = excluded.role, agents = excluded.agents,
  created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = NULL
WHERE (holdfast_access.revoked_at IS NOT NULL OR holdfast_access.expires_at <= (SELECT holdfast_now()))
RETURNING *

-- name: revoke_access
-- purpose: Revoke an access token
-- guards: The token is not revoked yet
UPDATE holdfast_access SET revoked_at = (SELECT holdfast_now())
WHERE name = :name
  AND revoked_at IS NULL
RETURNING *

-- name: access_by_digest
-- purpose: Read the access token that has a digest, if it is neither revoked nor expired
SELECT * FROM holdfast_access
WHERE digest = :digest
  AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT holdfast_now()))

-- name: good_digests
-- purpose: List the digests of all valid access tokens, and of the browser sessions and links not expired
SELECT digest FROM holdfast_access
WHERE revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT holdfast_now()))
UNION ALL
SELECT digest FROM holdfast_browser
WHERE expires_at > (SELECT holdfast_now())

-- name: good_among
-- purpose: Filter some digests down to those of valid access tokens and valid browser sessions
SELECT digest FROM holdfast_access
WHERE digest IN (SELECT value FROM {each digests})
  AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT holdfast_now()))
UNION ALL
SELECT browser.digest
FROM holdfast_browser AS browser
JOIN holdfast_access AS access
  ON access.name = browser.access AND access.created_at = browser.granted_at
WHERE browser.digest IN (SELECT value FROM {each digests})
  AND browser.entered_at IS NOT NULL
  AND browser.expires_at > (SELECT holdfast_now())
  AND access.revoked_at IS NULL
  AND (access.expires_at IS NULL OR access.expires_at > (SELECT holdfast_now()))

-- name: access_by_name
-- purpose: Read the access token of a name, valid or not
SELECT * FROM holdfast_access WHERE name = :name

-- name: list_access
-- purpose: List every access token that was granted and not replaced, by name
SELECT * FROM holdfast_access ORDER BY name
