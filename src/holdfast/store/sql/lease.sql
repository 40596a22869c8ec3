-- name: lock_leases
-- purpose: lock named leases in key order, so that no two groups wait for each other in a circle
SELECT key FROM holdfast_lease
WHERE key IN (SELECT value FROM {each keys})
ORDER BY key {lock}

-- name: acquire_lease
-- purpose: take a named lease that is free or has run out; its fence grows for ever
-- guards: nobody else holds it
INSERT INTO holdfast_lease (key, owner, fence, expires_at, leased_at)
VALUES (:key, :owner, 1, (SELECT holdfast_now()) + :ttl, (SELECT holdfast_now()))
ON CONFLICT (key) DO UPDATE SET
  owner = excluded.owner, fence = holdfast_lease.fence + 1, expires_at = excluded.expires_at,
  leased_at = excluded.leased_at
WHERE holdfast_lease.expires_at <= (SELECT holdfast_now())
RETURNING key, owner, fence, expires_at

-- name: shorten_lease
-- purpose: have a named lease that was taken before the clock was set back last, from now, as long as
--   it was granted for
-- guards: taken or renewed later than now
UPDATE holdfast_lease SET
  expires_at = expires_at - leased_at + (SELECT holdfast_now()),
  leased_at = (SELECT holdfast_now())
WHERE key = :key
  AND leased_at > (SELECT holdfast_now())
RETURNING key

-- name: renew_lease
-- purpose: keep a named lease
-- guards: held under this fence, and not expired
UPDATE holdfast_lease SET
  expires_at = (SELECT holdfast_now()) + :ttl, leased_at = (SELECT holdfast_now())
WHERE key = :key
  AND fence = :fence
  AND expires_at > (SELECT holdfast_now())
RETURNING key, owner, fence, expires_at

-- name: release_lease
-- purpose: give a named lease back; the row stays, so that its fence never falls
-- guards: held under this fence
UPDATE holdfast_lease SET expires_at = 0
WHERE key = :key
  AND fence = :fence
  AND expires_at > (SELECT holdfast_now())
RETURNING key, fence
