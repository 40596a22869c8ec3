-- name: unblock_dependents
-- purpose: Unblock the tasks that needed some finished tasks and now have all their needs done
-- guards: The task is idle or queued and blocked, and all its needs are done
-- changes: task
-- event: 'task.unblocked'
-- data: '{"blocked":false}'
-- returning: kind, conditional, blocked, run_holds, concurrency_key, parent_id, waits_for,
--   (total IS NOT NULL OR item IS NOT NULL) AS begun
UPDATE holdfast_task SET
  blocked = false,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    SELECT task_id FROM holdfast_need WHERE need_id IN (SELECT value FROM {each ids}))
  AND blocked
  AND status IN ('idle', 'queued')
  AND NOT EXISTS (SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id WHERE need.task_id = holdfast_task.id AND needed.status <> 'done')

-- name: unblock_run
-- purpose: Unblock every task of some runs that has all its needs done; repairs a run after a crash
-- guards: The run is running; the task is idle or queued and blocked, and all its needs are done
-- changes: task
-- event: 'task.unblocked'
-- data: '{"blocked":false}'
-- returning: kind, conditional
UPDATE holdfast_task SET
  blocked = false,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE run_id IN (
    SELECT id FROM holdfast_run WHERE id IN (SELECT value FROM {each ids}) AND status = 'running')
  AND blocked
  AND status <> 'done'
  AND status IN ('idle', 'queued')
  AND NOT EXISTS (SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id WHERE need.task_id = holdfast_task.id AND needed.status <> 'done')

-- name: mark_failing
-- purpose: Add hold failing to runs that have a failed or cancelled task, so that no new task starts
-- guards: The run is running and not on hold failing yet. A failed task that a step made does not count
--   while no task needs it: the step handles that failure
-- changes: run
-- event: 'run.held'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_run SET
  holds = holds | 64,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'running'
  AND (holds & 64) = 0
  AND (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id AND task.status <> 'done' AND task.status IN ('failed', 'cancelled') AND NOT task.superseded AND NOT {spared task} LIMIT 1) IS NOT NULL

-- name: copy_run_holds
-- purpose: Copy the holds of some runs to their open tasks, because a claim looks at the task alone
-- guards: The task is open and its copy differs; a task started with run-now stays free of hold paused
-- changes: task
-- event: CASE WHEN run_holds = 0 THEN 'task.unheld' ELSE 'task.held' END
-- data: '{"run_holds":' || run_holds || '}'
-- returning: run_holds, calls
UPDATE holdfast_task SET
  run_holds = CASE WHEN run_now THEN run.holds & ~1 ELSE run.holds END,
  version = holdfast_task.version + 1, previous = holdfast_task.status,
  changed_by = run.changed_by, changed_at = (SELECT holdfast_now())
FROM holdfast_run AS run
WHERE holdfast_task.run_id = run.id
  AND holdfast_task.run_id IN (SELECT value FROM {each ids})
  AND holdfast_task.status <> 'done'
  AND holdfast_task.status IN ('idle', 'queued', 'running')
  AND holdfast_task.run_holds <> CASE WHEN run_now THEN run.holds & ~1 ELSE run.holds END

-- name: settle_runs
-- purpose: Complete runs whose tasks are all done; fail runs on hold failing that have nothing running
-- guards: The run is running. To complete, every task is done; a task that a step made and no task
--   needs only has to have ended. To fail, the run is on hold failing, no task is running, and no
--   called run is running
-- changes: run
-- event: 'run.' || status
-- returning: concurrency_key, holds, parent_id, EXISTS (SELECT 1 FROM holdfast_hook) AS hooked,
--   EXISTS (SELECT 1 FROM holdfast_schedule AS schedule WHERE schedule.run_id = holdfast_run.id) AS scheduled
UPDATE holdfast_run SET
  status = CASE WHEN (holds & 64) <> 0 THEN 'failed' ELSE 'completed' END,
  error = CASE WHEN (holds & 64) <> 0 THEN (
    SELECT COALESCE(task.error, '"cancelled"') FROM holdfast_task AS task
    WHERE task.run_id = holdfast_run.id AND task.status <> 'done' AND task.status IN ('failed', 'cancelled') AND NOT task.superseded AND NOT {spared task}
    ORDER BY task.id LIMIT 1) END,
  finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'running'
  AND ((holds & 64) <> 0 OR (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id AND task.status <> 'done' AND task.status > '' AND NOT task.superseded AND (NOT {spared task} OR task.status NOT IN ('failed', 'cancelled')) LIMIT 1) IS NULL)
  AND ((holds & 64) = 0 OR (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id AND task.status <> 'done' AND task.status = 'running' LIMIT 1) IS NULL)
  AND ((holds & 64) = 0 OR NOT EXISTS (SELECT 1 FROM holdfast_task AS call WHERE call.run_id = holdfast_run.id AND call.calls IS NOT NULL AND (SELECT child.status FROM holdfast_run AS child WHERE child.id = call.waits_for) = 'running'))

-- name: waiting_runs
-- purpose: List the oldest runs that wait for room under a concurrency key
SELECT id FROM holdfast_run
WHERE concurrency_key = :key
  AND status = 'running'
  AND (holds & 32) <> 0
ORDER BY id
LIMIT :count {skip_locked}

-- name: admit_run
-- purpose: Remove hold slot from a run that now has room under its concurrency key
-- guards: The run is running and on hold slot
-- changes: run
-- event: 'run.unheld'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_run SET
  holds = holds & ~32,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'
  AND (holds & 32) <> 0

-- name: keys_with_room
-- purpose: List the concurrency keys that have room and that runs or parked tasks wait for, for the sweep
SELECT key, room
FROM (
  SELECT waited.key, (SELECT slot.capacity - slot.used FROM holdfast_slot AS slot WHERE slot.key = waited.key) AS room
  FROM holdfast_waited_key AS waited) AS found
WHERE room > 0
ORDER BY key

-- name: parked_keys
-- purpose: List the concurrency keys that parked tasks wait for, with the free room of each
SELECT waited.key, (SELECT slot.capacity - slot.used FROM holdfast_slot AS slot WHERE slot.key = waited.key) AS room
FROM holdfast_waited_key AS waited
WHERE waited.key LIKE 'task:%'
ORDER BY waited.key

-- name: odd_statuses
-- purpose: List the tasks of a run in an unknown status; advance logs these tasks and skips them
SELECT id, status FROM holdfast_task
WHERE run_id = :run_id
  AND status <> 'done'
  AND status > ''
  AND status NOT IN ('idle', 'queued', 'running', 'done', 'failed', 'cancelled')
