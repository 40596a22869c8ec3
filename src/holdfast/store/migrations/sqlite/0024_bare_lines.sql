-- A task that no worker of Holdfast's own runs: it names no function, or its workflow file gives it no
-- program. Whoever claims it does its work.
ALTER TABLE holdfast_task ADD COLUMN bare INTEGER NOT NULL DEFAULT false;
UPDATE holdfast_task SET bare = true WHERE step IS NULL AND kind = 'work';

-- They wait in a half of their line: workers do not walk past them, and a key that has room lets in the
-- first of either half.
DROP INDEX holdfast_task_ready;
CREATE INDEX holdfast_task_ready
  ON holdfast_task (agent, tags, bare, run_now DESC, priority DESC, position, id)
  WHERE status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due AND NOT parked;
DROP INDEX holdfast_task_parked;
CREATE INDEX holdfast_task_parked
  ON holdfast_task (concurrency_key, agent, tags, bare, run_now DESC, priority DESC, position, id)
  WHERE parked AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;
-- A key or tags of theirs are no matter of workers. After the line's: of two that look as good to it,
-- SQLite takes the newer one.
DROP INDEX holdfast_task_special;
CREATE INDEX holdfast_task_special ON holdfast_task (agent)
  WHERE (concurrency_key IS NOT NULL OR tags <> '[]') AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due AND NOT parked AND NOT bare;
