-- Only what waits for a time: a task that waits for its condition, its children or a signal does not.
DROP INDEX holdfast_task_scheduled;
CREATE INDEX holdfast_task_scheduled ON holdfast_task (scheduled_for)
  WHERE status = 'queued' AND NOT due AND scheduled_for IS NOT NULL;
