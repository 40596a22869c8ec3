-- By lines: whoever is let in by a key that has room is the first of his line, and not only the first of all, for
-- whom there may be no worker.
DROP INDEX holdfast_task_parked;
CREATE INDEX holdfast_task_parked
  ON holdfast_task (concurrency_key, agent, tags, run_now DESC, priority DESC, position, id)
  WHERE parked AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;
