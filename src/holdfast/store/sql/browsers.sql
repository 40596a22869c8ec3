-- name: make_link
-- purpose: Insert a link that lets one browser in, once, with the rights of an access token
-- guards: The access token is neither revoked nor expired
INSERT INTO holdfast_browser (digest, access, granted_at, created_at, expires_at)
SELECT CAST(:digest AS text), name, created_at, (SELECT holdfast_now()),
  (SELECT holdfast_now()) + CAST(:ttl AS bigint)
FROM holdfast_access
WHERE name = :name
  AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT holdfast_now()))
RETURNING *

-- name: enter_by_link
-- purpose: Turn a link into a browser session with a new secret
-- guards: The link is not used yet and not expired
UPDATE holdfast_browser SET digest = :session, entered_at = (SELECT holdfast_now()),
  expires_at = (SELECT holdfast_now()) + CAST(:ttl AS bigint)
WHERE digest = :digest
  AND entered_at IS NULL
  AND expires_at > (SELECT holdfast_now())
RETURNING *

-- name: leave_browser
-- purpose: End a browser session
-- guards: The row is a session, not an unused link
DELETE FROM holdfast_browser
WHERE digest = :digest
  AND entered_at IS NOT NULL
RETURNING *

-- name: forget_browsers
-- purpose: Delete expired links and browser sessions; rows that another process has locked are skipped
-- guards: The link or session has expired
DELETE FROM holdfast_browser WHERE digest IN (
  SELECT over.digest FROM holdfast_browser AS over
  WHERE over.expires_at <= (SELECT holdfast_now())
  {skip_locked over})

-- name: browser_by_digest
-- purpose: Read the access token behind a browser session, while the session and the token are valid
SELECT access.*, browser.expires_at AS ends_at
FROM holdfast_browser AS browser
JOIN holdfast_access AS access
  ON access.name = browser.access AND access.created_at = browser.granted_at
WHERE browser.digest = :digest
  AND browser.entered_at IS NOT NULL
  AND browser.expires_at > (SELECT holdfast_now())
  AND access.revoked_at IS NULL
  AND (access.expires_at IS NULL OR access.expires_at > (SELECT holdfast_now()))
