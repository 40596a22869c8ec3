-- name: lock_leases
-- purpose: Lock named leases in key order, so that two transactions never wait for each other
SELECT key FROM holdfast_lease
WHERE key IN (SELECT value FROM {each keys})
ORDER BY key {lock}

-- name: acquire_lease
-- purpose: Acquire a named lease that is free or expired; the fence goes up
-- guards: No other holder has a live lease of that key
INSERT INTO holdfast_lease (key, owner, fence, expires_at, leased_at, held_since)
VALUES (:key, :owner, 1, (SELECT holdfast_now()) + :ttl, (SELECT holdfast_now()), (SELECT holdfast_now()))
ON CONFLICT (key) DO UPDATE SET
  owner = excluded.owner, fence = holdfast_lease.fence + 1, expires_at = excluded.expires_at,
  leased_at = excluded.leased_at, held_since = excluded.held_since
WHERE holdfast_lease.expires_at <= (SELECT holdfast_now())
RETURNING key, owner, fence, expires_at

-- name: shorten_lease
-- purpose: Shorten a named lease that was taken before the clock was set back: it lasts its full time from now
-- guards: The lease was taken or renewed later than now
UPDATE holdfast_lease SET
  expires_at = expires_at - leased_at + (SELECT holdfast_now()),
  leased_at = (SELECT holdfast_now())
WHERE key = :key
  AND leased_at > (SELECT holdfast_now())
RETURNING key

-- name: renew_lease
-- purpose: Renew a named lease
-- guards: The lease is held under this fence and not expired
UPDATE holdfast_lease SET
  expires_at = (SELECT holdfast_now()) + :ttl, leased_at = (SELECT holdfast_now())
WHERE key = :key
  AND fence = :fence
  AND expires_at > (SELECT holdfast_now())
RETURNING key, owner, fence, expires_at

-- name: release_lease
-- purpose: Release a named lease; the row stays, so that the fence never goes down
-- guards: The lease is held under this fence and not expired
UPDATE holdfast_lease SET expires_at = 0
WHERE key = :key
  AND fence = :fence
  AND expires_at > (SELECT holdfast_now())
RETURNING key, fence
