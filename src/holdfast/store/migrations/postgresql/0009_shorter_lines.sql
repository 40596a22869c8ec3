-- A note, as `due` is: its concurrency key is full, and no claim needs to walk past it.
ALTER TABLE holdfast_task ADD COLUMN parked boolean NOT NULL DEFAULT false;

-- A line for each set of tags: who cannot serve one does not walk past it.
DROP INDEX holdfast_task_ready;
CREATE INDEX holdfast_task_ready
  ON holdfast_task (agent, tags, run_now DESC, priority DESC, position, id)
  WHERE status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due AND NOT parked;

-- Mostly empty: who finds nothing here may claim without a look at who is first in line.
DROP INDEX holdfast_task_keyed;
CREATE INDEX holdfast_task_special ON holdfast_task (agent)
  WHERE (concurrency_key IS NOT NULL OR tags <> '[]') AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due AND NOT parked;
CREATE INDEX holdfast_task_crowded ON holdfast_task (concurrency_key)
  WHERE concurrency_key IS NOT NULL AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due AND NOT parked;
CREATE INDEX holdfast_task_parked
  ON holdfast_task (concurrency_key, run_now DESC, priority DESC, position, id)
  WHERE parked AND status = 'queued' AND kind = 'work' AND NOT blocked
    AND holds = 0 AND run_holds = 0 AND due;

-- The concurrency keys that runs or parked tasks wait for: from key to key, because thousands may
-- wait for one.
CREATE VIEW holdfast_waited_key AS
WITH RECURSIVE
run_key (key) AS (
  SELECT (
    SELECT run.concurrency_key FROM holdfast_run AS run
    WHERE run.status = 'running' AND (run.holds & 32) <> 0 AND run.concurrency_key > ''
    ORDER BY run.concurrency_key LIMIT 1)
  UNION ALL
  SELECT (
    SELECT run.concurrency_key FROM holdfast_run AS run
    WHERE run.status = 'running' AND (run.holds & 32) <> 0 AND run.concurrency_key > run_key.key
    ORDER BY run.concurrency_key LIMIT 1)
  FROM run_key WHERE run_key.key IS NOT NULL),
task_key (key) AS (
  SELECT (
    SELECT task.concurrency_key FROM holdfast_task AS task
    WHERE task.parked AND task.status = 'queued' AND task.kind = 'work' AND NOT task.blocked
      AND task.holds = 0 AND task.run_holds = 0 AND task.due AND task.concurrency_key > ''
    ORDER BY task.concurrency_key LIMIT 1)
  UNION ALL
  SELECT (
    SELECT task.concurrency_key FROM holdfast_task AS task
    WHERE task.parked AND task.status = 'queued' AND task.kind = 'work' AND NOT task.blocked
      AND task.holds = 0 AND task.run_holds = 0 AND task.due AND task.concurrency_key > task_key.key
    ORDER BY task.concurrency_key LIMIT 1)
  FROM task_key WHERE task_key.key IS NOT NULL)
SELECT key FROM run_key WHERE key IS NOT NULL
UNION ALL
SELECT key FROM task_key WHERE key IS NOT NULL;
