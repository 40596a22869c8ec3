-- name: hold_spent_runs
-- purpose: hold budget on runs that have used up what they may, so that nothing new of them starts
-- guards: running, not held for it yet, and at one of its limits; a run that another process has
--   locked is left to it, because a claim must not wait for runs
-- changes: run
-- event: 'run.held'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_run SET
  holds = holds | 8,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    SELECT id FROM holdfast_run WHERE id IN (SELECT value FROM {each ids}) {skip_locked})
  AND status = 'running'
  AND (holds & 8) = 0
  AND ((SELECT sum(task.spent + {cost task}) FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id) >= budget_usd
    OR (SELECT sum(task.attempt) FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id) >= budget_attempts)

-- name: raise_budget
-- purpose: let a run use more than its budget said, and lift paused; budget too, where that is enough
-- guards: running, and it has the limits that are raised
-- changes: run
-- event: 'run.extended'
-- data: '{"holds":' || holds || COALESCE(',"budget_usd":' || budget_usd, '')
--   || COALESCE(',"budget_attempts":' || budget_attempts, '') || '}'
UPDATE holdfast_run SET
  budget_usd = budget_usd + CAST(:usd AS bigint),
  budget_attempts = budget_attempts + CAST(:attempts AS bigint),
  holds = CASE
    WHEN (SELECT sum(task.spent + {cost task}) FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id) >= budget_usd + CAST(:usd AS bigint)
      OR (SELECT sum(task.attempt) FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id) >= budget_attempts + CAST(:attempts AS bigint)
    THEN holds & ~1 ELSE holds & ~9 END,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'
  AND (CAST(:usd AS bigint) = 0 OR budget_usd IS NOT NULL)
  AND (CAST(:attempts AS bigint) = 0 OR budget_attempts IS NOT NULL)

-- name: used_by_runs
-- purpose: what some runs have used of their budgets so far, in millionths of a dollar and attempts
SELECT run_id, sum(spent + {cost holdfast_task}) AS usd, sum(attempt) AS attempts
FROM holdfast_task
WHERE run_id IN (SELECT value FROM {each ids})
GROUP BY run_id

-- name: overspent_attempts
-- purpose: which of some running attempts have used more than one attempt of their run may
-- rows: task_id text, fence integer
SELECT task.id, {cost task} AS used, run.budget_usd_per_attempt AS most
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  JOIN holdfast_run AS run ON run.id = task.run_id
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND {cost task} > run.budget_usd_per_attempt

-- name: overdue_runs
-- purpose: the runs whose deadline has passed
SELECT id FROM holdfast_run
WHERE deadline IS NOT NULL
  AND status = 'running'
  AND deadline <= (SELECT holdfast_now())
ORDER BY deadline LIMIT :count

-- name: expire_run
-- purpose: running → failed: the run was not done in time
-- guards: running, and its time is over
-- changes: run
-- event: 'run.failed'
-- returning: concurrency_key, holds, parent_id
UPDATE holdfast_run SET
  status = 'failed', error = :problem, finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'
  AND deadline <= (SELECT holdfast_now())
