-- What has run out is looked for twice a second by every process, among all that run. A renewal writes an entry
-- anew; it did before too, because the index of what runs asks for a lease. Only who looks for what has run
-- out asks for the time of creation too: the other index would stand in for this one, and be read whole.
CREATE INDEX holdfast_task_lease ON holdfast_task (lease_expires_at)
  WHERE lease_expires_at IS NOT NULL AND created_at >= 0;
