-- When a lease was taken or last renewed. With its end that tells what it was granted for: where the clock
-- was set back since, that is longer ago than it can be, and the lease is shortened.
ALTER TABLE holdfast_task ADD COLUMN leased_at INTEGER;
ALTER TABLE holdfast_lease ADD COLUMN leased_at INTEGER;

-- Such leases are looked for among all that run, without a look at their rows.
DROP INDEX holdfast_task_lease;
CREATE INDEX holdfast_task_lease ON holdfast_task (lease_expires_at, leased_at)
  WHERE lease_expires_at IS NOT NULL AND created_at >= 0;
