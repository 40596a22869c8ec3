-- Tasks that name no function wait in a half of their line: workers, who leave them to whoever claims
-- them, do not walk past them, and a key that has room lets in the first of either half.
DROP INDEX holdfast_task_ready;
CREATE INDEX holdfast_task_ready
  ON holdfast_task (agent, tags, (CASE WHEN step IS NULL THEN true ELSE false END), run_now DESC, priority DESC, position, id)
  WHERE status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due AND NOT parked;
DROP INDEX holdfast_task_parked;
CREATE INDEX holdfast_task_parked
  ON holdfast_task (concurrency_key, agent, tags, (CASE WHEN step IS NULL THEN true ELSE false END), run_now DESC, priority DESC, position, id)
  WHERE parked AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;
