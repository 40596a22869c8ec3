-- name: make_link
-- purpose: keep that a link lets a browser in, once, with what a token may do
-- guards: the token is good
INSERT INTO holdfast_browser (digest, access, granted_at, created_at, expires_at)
SELECT CAST(:digest AS text), name, created_at, (SELECT holdfast_now()),
  (SELECT holdfast_now()) + CAST(:ttl AS bigint)
FROM holdfast_access
WHERE name = :name
  AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > (SELECT holdfast_now()))
RETURNING *

-- name: enter_by_link
-- purpose: have a link be a browser's session from now on, under a secret of its own
-- guards: nobody has used the link, and it is not too late
UPDATE holdfast_browser SET digest = :session, entered_at = (SELECT holdfast_now()),
  expires_at = (SELECT holdfast_now()) + CAST(:ttl AS bigint)
WHERE digest = :digest
  AND entered_at IS NULL
  AND expires_at > (SELECT holdfast_now())
RETURNING *

-- name: leave_browser
-- purpose: end a browser's session
-- guards: it is one, and no link
DELETE FROM holdfast_browser
WHERE digest = :digest
  AND entered_at IS NOT NULL
RETURNING *

-- name: forget_browsers
-- purpose: forget links and sessions that are over; what another process has locked is left
-- guards: they are over
DELETE FROM holdfast_browser WHERE digest IN (
  SELECT over.digest FROM holdfast_browser AS over
  WHERE over.expires_at <= (SELECT holdfast_now())
  {skip_locked over})

-- name: browser_by_digest
-- purpose: what a browser may do: what its token may, while both are good
SELECT access.*, browser.expires_at AS ends_at
FROM holdfast_browser AS browser
JOIN holdfast_access AS access
  ON access.name = browser.access AND access.created_at = browser.granted_at
WHERE browser.digest = :digest
  AND browser.entered_at IS NOT NULL
  AND browser.expires_at > (SELECT holdfast_now())
  AND access.revoked_at IS NULL
  AND (access.expires_at IS NULL OR access.expires_at > (SELECT holdfast_now()))
