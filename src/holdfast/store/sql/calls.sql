-- name: newest_version
-- purpose: Find the newest version of a workflow
SELECT version FROM holdfast_workflow
WHERE name = :name
ORDER BY created_at DESC, version LIMIT 1

-- name: child_runs
-- purpose: List the runs that some tasks have called in their present epoch
SELECT run.id, run.status, run.holds, run.parent_id
FROM holdfast_task AS task JOIN holdfast_run AS run ON run.parent_id = task.id AND run.parent_epoch = task.epoch
WHERE task.id IN (SELECT value FROM {each ids})

-- name: await_runs
-- purpose: Record the run that a calling task waits for from now on; the wait occupies no worker
-- guards: The task is queued, not blocked, free of holds, and waits for no run yet
-- rows: task_id text, child text
-- changes: task
-- event: 'task.called'
-- data: '{"waits_for":"' || waits_for || '"}'
-- returning: kind
UPDATE holdfast_task SET
  waits_for = r.child,
  started_at = COALESCE(started_at, (SELECT holdfast_now())),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND holds = 0
  AND run_holds = 0
  AND waits_for IS NULL

-- name: returned_runs
-- purpose: List the ended runs, of some given, with the unblocked task that waits for each
-- COALESCE keeps PostgreSQL from beginning with all queued tasks.
SELECT child.id AS child, child.status, child.error, task.id, task.run_id, task.step,
  task.on_failure, caller.workflow, caller.workflow_version
FROM holdfast_run AS child JOIN holdfast_task AS task ON task.waits_for = child.id
  LEFT JOIN holdfast_run AS caller ON caller.id = task.run_id
WHERE task.waits_for IN (SELECT value FROM {each ids})
  AND child.status <> 'running'
  AND COALESCE(task.status, '') = 'queued'
  AND NOT task.blocked
ORDER BY task.id

-- name: returned_in_run
-- purpose: List the ended runs that queued calling tasks of one run still wait for
SELECT child.id FROM holdfast_task AS task JOIN holdfast_run AS child ON child.id = task.waits_for
WHERE task.run_id = :run_id
  AND task.calls IS NOT NULL
  AND task.status = 'queued'
  AND child.status <> 'running'

-- name: calls_of_run
-- purpose: List the calling tasks of a run
SELECT id FROM holdfast_task
WHERE run_id = :run_id
  AND calls IS NOT NULL

-- name: finish_calls
-- purpose: Finish calling tasks whose called run has completed, with its output (queued → done)
-- guards: The task is queued and not blocked, and waits for that run, which has completed
-- rows: task_id text, child text, result text
-- changes: task
-- event: 'task.done'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = 'done', output = r.result, error = NULL, finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND waits_for = r.child
  AND EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = r.child AND run.status = 'completed')

-- name: break_calls
-- purpose: Settle calling tasks whose called run gave no output, by on_failure: skip, ask or fail
-- guards: The task is queued and not blocked, and waits for that run, which has ended
-- rows: task_id text, child text, problem text
-- changes: task
-- event: CASE WHEN skipped THEN 'task.skipped' WHEN status = 'queued' THEN 'task.asked'
--   ELSE 'task.failed' END
-- data: '{"skipped":' || CASE WHEN skipped THEN 'true' ELSE 'false' END || ',"holds":' || holds
--   || ',"waits_for":' || COALESCE('"' || waits_for || '"', 'null') || ',"error":' || error || '}'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = CASE on_failure WHEN 'skip' THEN 'done' WHEN 'ask' THEN 'queued' ELSE 'failed' END,
  skipped = (on_failure = 'skip'),
  holds = CASE WHEN on_failure = 'ask' THEN holds | 2 ELSE holds END,
  generation = generation + CASE WHEN on_failure = 'ask' THEN 1 ELSE 0 END,
  waits_for = CASE WHEN on_failure = 'ask' THEN NULL ELSE waits_for END,
  error = r.problem, output = NULL,
  finished_at = CASE WHEN on_failure = 'ask' THEN NULL ELSE (SELECT holdfast_now()) END,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND waits_for = r.child
  AND EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = r.child AND run.status <> 'running')

-- name: turn_back_calls
-- purpose: Send a calling task whose called run gave no output back to an earlier step: blocked again
-- guards: The task is queued and not blocked, waits for that run, which has ended, and has detours left
-- rows: task_id text, child text, problem text, most integer
-- changes: task
-- event: 'task.went_back'
-- data: '{"blocked":true,"detours":' || detours || ',"epoch":' || epoch || ',"waits_for":null,"error":'
--   || error || '}'
-- returning: kind
UPDATE holdfast_task SET
  blocked = true, detours = detours + 1,
  generation = generation + 1, epoch = epoch + 1, waits_for = NULL,
  error = r.problem, output = NULL, due = NOT conditional,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND waits_for = r.child
  AND detours < r.most
  AND EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = r.child AND run.status <> 'running')

-- name: cancel_children
-- purpose: Cancel the called runs that some tasks no longer wait for, and every run called below these
-- guards: The run is running; a run that one of the tasks still waits for stays
-- changes: run
-- event: 'run.cancelled'
-- returning: concurrency_key, holds, parent_id
UPDATE holdfast_run SET
  status = 'cancelled', finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT run.id FROM holdfast_run AS run JOIN holdfast_task AS task ON task.id = run.parent_id
      WHERE run.parent_id IN (SELECT value FROM {each ids})
        AND NOT (task.status = 'queued' AND COALESCE(task.waits_for, '') = run.id)
      UNION SELECT run.id FROM below CROSS JOIN holdfast_run AS run
      WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
    SELECT id FROM below)
  AND status = 'running'

-- name: callers_of
-- purpose: Read the task that called each of some runs, with its run and workflow if it has one
SELECT run.id, task.id AS task_id, task.run_id, task.step, task.status, task.holds, task.superseded,
  caller.workflow, run.parent_epoch = task.epoch AS present,
  CASE WHEN run.status <> 'running' THEN run.status END AS ended
FROM holdfast_run AS run JOIN holdfast_task AS task ON task.id = run.parent_id
  LEFT JOIN holdfast_run AS caller ON caller.id = task.run_id
WHERE run.id IN (SELECT value FROM {each ids})

-- name: runs_below
-- purpose: List every run called below some runs, each with the run at the top
WITH RECURSIVE below (top, id) AS (
  SELECT run.id, run.id FROM holdfast_run AS run WHERE run.id IN (SELECT value FROM {each ids})
  UNION ALL
  SELECT below.top, run.id FROM below CROSS JOIN holdfast_run AS run
  WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
SELECT top, id FROM below WHERE id <> top

-- name: keys_above
-- purpose: List the concurrency keys of a run and of the runs that called it, up to the top
WITH RECURSIVE above (id, parent_id, concurrency_key) AS (
  SELECT run.id, run.parent_id, run.concurrency_key FROM holdfast_run AS run
  WHERE run.id = :run_id
  UNION
  SELECT run.id, run.parent_id, run.concurrency_key
  FROM above JOIN holdfast_task AS task ON task.id = above.parent_id
    JOIN holdfast_run AS run ON run.id = task.run_id)
SELECT concurrency_key AS key FROM above
WHERE concurrency_key IS NOT NULL

-- name: called_waits
-- purpose: List called runs on hold slot, with each run above them that has a concurrency key
WITH RECURSIVE above (id, key, caller, parent_id) AS (
  SELECT run.id, run.concurrency_key, run.id, run.parent_id FROM holdfast_run AS run
  WHERE run.status = 'running'
    AND (run.holds & 32) <> 0
    AND run.concurrency_key > ''
    AND run.parent_id IS NOT NULL
  UNION
  SELECT above.id, above.key, run.id, run.parent_id
  FROM above JOIN holdfast_task AS task ON task.id = above.parent_id
    JOIN holdfast_run AS run ON run.id = task.run_id)
SELECT above.id, above.key, run.id AS holder
FROM above JOIN holdfast_run AS run ON run.id = above.caller
WHERE above.caller <> above.id
  AND run.concurrency_key IS NOT NULL
ORDER BY run.id, above.id
