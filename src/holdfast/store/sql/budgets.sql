-- name: limits_above
-- purpose: List the runs with a budget among some runs and all runs that called these, up to the top
WITH RECURSIVE above (id, top, parent_id) AS (
  SELECT run.id, run.id, run.parent_id FROM holdfast_run AS run
  WHERE run.id IN (SELECT value FROM {each ids})
  UNION
  SELECT above.id, run.id, run.parent_id
  FROM above JOIN holdfast_task AS task ON task.id = above.parent_id
    JOIN holdfast_run AS run ON run.id = task.run_id)
SELECT above.id, above.top FROM above CROSS JOIN holdfast_run AS run
WHERE run.id = above.top
  AND (run.budget_usd IS NOT NULL OR run.budget_attempts IS NOT NULL)

-- name: hold_spent_runs
-- purpose: Add hold budget to runs that have reached a budget, and to every run called below these runs
-- guards: The run is running, not on hold budget yet, and has reached its limit or was called below a
--   run that has. A run that another process has locked is skipped, because a claim must not wait for
--   runs
-- changes: run
-- event: 'run.held'
-- data: '{"holds":' || holds || '}'
WITH RECURSIVE below (top, id) AS (
  SELECT run.id, run.id FROM holdfast_run AS run
  WHERE run.id IN (SELECT value FROM {each ids})
  UNION
  SELECT below.top, run.id FROM below CROSS JOIN holdfast_run AS run
  WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL)),
used (top, usd, attempts) AS (
  SELECT below.top, sum(task.spent + {cost task}), sum(task.attempt)
  FROM below CROSS JOIN holdfast_task AS task WHERE task.run_id = below.id
  GROUP BY below.top),
spent (top) AS (
  SELECT used.top FROM used JOIN holdfast_run AS run ON run.id = used.top
  WHERE used.usd >= run.budget_usd OR used.attempts >= run.budget_attempts)
UPDATE holdfast_run SET
  holds = holds | 8,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    SELECT id FROM holdfast_run
    WHERE id IN (SELECT below.id FROM below JOIN spent ON spent.top = below.top) {skip_locked})
  AND status = 'running'
  AND (holds & 8) = 0

-- name: raise_budget
-- purpose: Raise the budget of a run; remove holds paused and budget from it and from all its called runs
-- guards: The named run is running and has the limits that are raised; a called run is running and on
--   hold paused or budget. Hold budget stays where a limit, of the run or of one above it, is still
--   reached
-- changes: run
-- event: CASE WHEN id = CAST(:run_id AS text) THEN 'run.extended' ELSE 'run.unheld' END
-- data: '{"holds":' || holds || COALESCE(',"budget_usd":' || budget_usd, '')
--   || COALESCE(',"budget_attempts":' || budget_attempts, '') || '}'
WITH RECURSIVE named (id, parent_id) AS (
  SELECT run.id, run.parent_id FROM holdfast_run AS run
  WHERE run.id = :run_id
    AND run.status = 'running'
    AND (CAST(:usd AS bigint) = 0 OR run.budget_usd IS NOT NULL)
    AND (CAST(:attempts AS bigint) = 0 OR run.budget_attempts IS NOT NULL)),
above (id, parent_id) AS (
  SELECT named.id, named.parent_id FROM named
  UNION
  SELECT run.id, run.parent_id FROM above JOIN holdfast_task AS task ON task.id = above.parent_id
    JOIN holdfast_run AS run ON run.id = task.run_id),
lifted (id) AS (
  SELECT named.id FROM named
  UNION
  SELECT run.id FROM lifted CROSS JOIN holdfast_run AS run
  WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = lifted.id AND task.calls IS NOT NULL)),
below (top, id) AS (
  SELECT run.id, run.id FROM holdfast_run AS run
  WHERE run.id IN (SELECT above.id FROM above UNION SELECT lifted.id FROM lifted)
  UNION
  SELECT below.top, run.id FROM below CROSS JOIN holdfast_run AS run
  WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL)),
used (top, usd, attempts) AS (
  SELECT below.top, sum(task.spent + {cost task}), sum(task.attempt)
  FROM below CROSS JOIN holdfast_task AS task WHERE task.run_id = below.id
  GROUP BY below.top),
kept (id) AS (
  SELECT below.id
  FROM below JOIN used ON used.top = below.top JOIN holdfast_run AS run ON run.id = below.top
  WHERE used.usd >= run.budget_usd + CASE WHEN run.id = :run_id THEN CAST(:usd AS bigint) ELSE 0 END
    OR used.attempts >= run.budget_attempts + CASE WHEN run.id = :run_id THEN CAST(:attempts AS bigint) ELSE 0 END)
UPDATE holdfast_run SET
  budget_usd = budget_usd + CASE WHEN id = :run_id THEN CAST(:usd AS bigint) ELSE 0 END,
  budget_attempts = budget_attempts + CASE WHEN id = :run_id THEN CAST(:attempts AS bigint) ELSE 0 END,
  holds = holds & ~CASE WHEN id IN (SELECT kept.id FROM kept) THEN 1 ELSE 9 END,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT lifted.id FROM lifted)
  AND status = 'running'
  AND (id = :run_id OR (holds & CASE WHEN id IN (SELECT kept.id FROM kept) THEN 1 ELSE 9 END) <> 0)

-- name: used_by_runs
-- purpose: Sum what some runs and their called runs have used: millionths of a dollar, and attempts
WITH RECURSIVE below (top, id) AS (
  SELECT run.id, run.id FROM holdfast_run AS run
  WHERE run.id IN (SELECT value FROM {each ids})
  UNION
  SELECT below.top, run.id FROM below CROSS JOIN holdfast_run AS run
  WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
SELECT below.top AS run_id, sum(task.spent + {cost task}) AS usd, sum(task.attempt) AS attempts
FROM below CROSS JOIN holdfast_task AS task WHERE task.run_id = below.id
GROUP BY below.top

-- name: overspent_attempts
-- purpose: List the running attempts, of some given, that have passed their run's budget per attempt
-- rows: task_id text, fence integer
-- COALESCE keeps PostgreSQL from beginning with all running tasks.
SELECT task.id, {cost task} AS used, run.budget_usd_per_attempt AS most
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  JOIN holdfast_run AS run ON run.id = task.run_id
WHERE COALESCE(task.status, '') = 'running'
  AND task.attempt = r.fence
  AND {cost task} > run.budget_usd_per_attempt

-- name: overdue_runs
-- purpose: List running runs whose deadline has passed, the earliest deadline first
SELECT id FROM holdfast_run
WHERE deadline IS NOT NULL
  AND status = 'running'
  AND deadline <= (SELECT holdfast_now())
ORDER BY deadline LIMIT :count

-- name: expire_run
-- purpose: Fail a run whose deadline has passed (running → failed)
-- guards: The run is running and its deadline has passed
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
