-- name: check_needs_done_before_start
-- purpose: At each start of a task, every need it then had was done by the events before
SELECT started.entity AS entity, 'started by event ' || started.seq || ' before ' || need.need_id || ' was done' AS detail
FROM holdfast_event AS started
JOIN holdfast_need AS need ON need.task_id = started.entity AND started.version > need.since
WHERE started.type = 'task.running'
  AND COALESCE((
    SELECT event.to_status FROM holdfast_event AS event
    WHERE event.entity = need.need_id AND event.seq < started.seq
    ORDER BY event.version DESC LIMIT 1), '') <> 'done'

-- name: check_transitions_allowed
-- purpose: Consecutive events of one task or run form only allowed transitions
SELECT event.entity AS entity, 'version ' || event.version || ': ' || COALESCE(event.from_status, 'nothing') || ' → ' || COALESCE(event.to_status, 'nothing') AS detail
FROM holdfast_event AS event
LEFT JOIN holdfast_event AS before ON before.entity = event.entity AND before.version = event.version - 1
WHERE COALESCE(event.from_status, '') <> COALESCE(before.to_status, '')
   OR (event.from_status IS NULL AND event.to_status NOT IN ('idle', 'queued', 'running'))
   OR (event.from_status IS NOT NULL AND event.to_status IS NOT NULL AND event.from_status <> event.to_status
    AND event.entity <> COALESCE(event.run_id, '')
    AND event.from_status || '>' || event.to_status NOT IN (
      'idle>queued', 'idle>running', 'idle>cancelled', 'idle>done', 'idle>failed',
      'queued>running', 'queued>cancelled', 'queued>idle', 'queued>done', 'queued>failed',
      'running>done', 'running>failed', 'running>cancelled', 'running>queued',
      'done>idle', 'done>queued', 'failed>idle', 'failed>queued',
      'cancelled>idle', 'cancelled>queued'))
   OR (event.entity = event.run_id AND event.from_status <> event.to_status
    AND event.from_status || '>' || event.to_status NOT IN (
      'running>completed', 'running>failed', 'running>cancelled',
      'completed>running', 'failed>running', 'cancelled>running'))

-- name: check_terminal_needs_generation
-- purpose: A task or run leaves a terminal status only with generation + 1
SELECT event.entity AS entity, 'version ' || event.version || ' left ' || event.from_status || ' in generation ' || event.generation AS detail
FROM holdfast_event AS event
JOIN holdfast_event AS before ON before.entity = event.entity AND before.version = event.version - 1
WHERE event.from_status IN ('done', 'failed', 'cancelled', 'completed')
  AND event.to_status <> event.from_status
  AND event.generation <> before.generation + 1

-- name: check_versions_gapless
-- purpose: The versions of events have no gaps, and the newest equals the version of the row
SELECT event.entity AS entity, 'version ' || event.version || ' follows no version ' || (event.version - 1) AS detail
FROM holdfast_event AS event
WHERE event.version <> 1
  AND NOT EXISTS (SELECT 1 FROM holdfast_event AS before WHERE before.entity = event.entity AND before.version = event.version - 1)
UNION ALL
SELECT task.id, 'the row is at version ' || task.version || ', its events at ' || COALESCE((SELECT max(event.version) FROM holdfast_event AS event WHERE event.entity = task.id), 0)
FROM holdfast_task AS task
WHERE task.version <> COALESCE((SELECT max(event.version) FROM holdfast_event AS event WHERE event.entity = task.id), 0)
UNION ALL
SELECT run.id, 'the row is at version ' || run.version || ', its events at ' || COALESCE((SELECT max(event.version) FROM holdfast_event AS event WHERE event.entity = run.id), 0)
FROM holdfast_run AS run
WHERE run.version <> COALESCE((SELECT max(event.version) FROM holdfast_event AS event WHERE event.entity = run.id), 0)

-- name: check_fold_status
-- purpose: The newest event has the status, attempt and generation of the row
SELECT task.id AS entity, 'the row is ' || task.status || ' at attempt ' || task.attempt || ', generation ' || task.generation AS detail
FROM holdfast_task AS task
LEFT JOIN holdfast_event AS event ON event.entity = task.id AND event.version = task.version
WHERE COALESCE(event.to_status, '') <> task.status
   OR event.attempt <> task.attempt
   OR event.generation <> task.generation
UNION ALL
SELECT run.id, 'the row is ' || run.status || ', generation ' || run.generation
FROM holdfast_run AS run
LEFT JOIN holdfast_event AS event ON event.entity = run.id AND event.version = run.version
WHERE COALESCE(event.to_status, '') <> run.status
   OR event.generation <> run.generation

-- name: check_fold_numbers
-- purpose: Folding the events gives back the numbers of every row
SELECT entity, field || ' is ' || kept || ', the events say ' || told AS detail FROM (
  SELECT task.id AS entity, 'holds' AS field, CAST(task.holds AS text) AS kept, COALESCE((SELECT {data holds} FROM holdfast_event AS event WHERE event.entity = task.id AND {data holds} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') AS told FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'run_holds', CAST(task.run_holds AS text), COALESCE((SELECT {data run_holds} FROM holdfast_event AS event WHERE event.entity = task.id AND {data run_holds} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'failures', CAST(task.failures AS text), COALESCE((SELECT {data failures} FROM holdfast_event AS event WHERE event.entity = task.id AND {data failures} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'lost', CAST(task.lost AS text), COALESCE((SELECT {data lost} FROM holdfast_event AS event WHERE event.entity = task.id AND {data lost} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'epoch', CAST(task.epoch AS text), COALESCE((SELECT {data epoch} FROM holdfast_event AS event WHERE event.entity = task.id AND {data epoch} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '1') FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'priority', CAST(task.priority AS text), COALESCE((SELECT {data priority} FROM holdfast_event AS event WHERE event.entity = task.id AND {data priority} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'position', CAST(task.position AS text), COALESCE((SELECT {data position} FROM holdfast_event AS event WHERE event.entity = task.id AND {data position} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') FROM holdfast_task AS task
  UNION ALL
  SELECT run.id, 'holds', CAST(run.holds AS text), COALESCE((SELECT {data holds} FROM holdfast_event AS event WHERE event.entity = run.id AND {data holds} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') FROM holdfast_run AS run
  UNION ALL
  SELECT run.id, 'budget_usd', COALESCE(CAST(run.budget_usd AS text), 'nothing'), COALESCE((SELECT {data budget_usd} FROM holdfast_event AS event WHERE event.entity = run.id AND {data budget_usd} IS NOT NULL ORDER BY event.version DESC LIMIT 1), 'nothing') FROM holdfast_run AS run
  UNION ALL
  SELECT run.id, 'budget_attempts', COALESCE(CAST(run.budget_attempts AS text), 'nothing'), COALESCE((SELECT {data budget_attempts} FROM holdfast_event AS event WHERE event.entity = run.id AND {data budget_attempts} IS NOT NULL ORDER BY event.version DESC LIMIT 1), 'nothing') FROM holdfast_run AS run
  UNION ALL
  SELECT run.id, 'deadline', COALESCE(CAST(run.deadline AS text), 'nothing'), COALESCE((SELECT {data deadline} FROM holdfast_event AS event WHERE event.entity = run.id AND {data deadline} IS NOT NULL ORDER BY event.version DESC LIMIT 1), 'nothing') FROM holdfast_run AS run
) AS folded
WHERE kept <> told

-- name: check_fold_marks
-- purpose: Folding the events gives back the flags, waits_for and scheduled_for of every row
SELECT entity, field || ' is ' || kept || ', the events say ' || told AS detail FROM (
  SELECT task.id AS entity, 'blocked' AS field, CASE WHEN task.blocked THEN 'true' ELSE 'false' END AS kept, CASE WHEN COALESCE((SELECT {data blocked} FROM holdfast_event AS event WHERE event.entity = task.id AND {data blocked} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') IN ('true', '1') THEN 'true' ELSE 'false' END AS told FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'run_now', CASE WHEN task.run_now THEN 'true' ELSE 'false' END, CASE WHEN COALESCE((SELECT {data run_now} FROM holdfast_event AS event WHERE event.entity = task.id AND {data run_now} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') IN ('true', '1') THEN 'true' ELSE 'false' END FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'skipped', CASE WHEN task.skipped THEN 'true' ELSE 'false' END, CASE WHEN COALESCE((SELECT {data skipped} FROM holdfast_event AS event WHERE event.entity = task.id AND {data skipped} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') IN ('true', '1') THEN 'true' ELSE 'false' END FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'superseded', CASE WHEN task.superseded THEN 'true' ELSE 'false' END, CASE WHEN COALESCE((SELECT {data superseded} FROM holdfast_event AS event WHERE event.entity = task.id AND {data superseded} IS NOT NULL ORDER BY event.version DESC LIMIT 1), '0') IN ('true', '1') THEN 'true' ELSE 'false' END FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'waits_for', COALESCE(task.waits_for, 'nothing'), COALESCE((SELECT {data waits_for} FROM holdfast_event AS event WHERE event.entity = task.id AND event.type IN ('task.running', 'task.suspended', 'task.woken', 'task.reset', 'task.retried', 'task.reopened', 'task.called', 'task.asked', 'task.went_back') ORDER BY event.version DESC LIMIT 1), 'nothing') FROM holdfast_task AS task
  UNION ALL
  SELECT task.id, 'scheduled_for', COALESCE(CAST(task.scheduled_for AS text), 'never'), COALESCE((SELECT {data scheduled_for} FROM holdfast_event AS event WHERE event.entity = task.id AND event.type <> 'task.done' AND event.data LIKE '%"scheduled_for":%' ORDER BY event.version DESC LIMIT 1), 'never') FROM holdfast_task AS task
) AS folded
WHERE kept <> told

-- name: check_one_live_lease
-- purpose: A task is running exactly when it has a lease, and has ended exactly when it has a finish time
SELECT id AS entity, 'status ' || status || ' does not fit its lease or its end' AS detail
FROM holdfast_task
WHERE (status = 'running') <> (lease_expires_at IS NOT NULL)
   OR (status IN ('done', 'failed', 'cancelled')) <> (finished_at IS NOT NULL)

-- name: check_fence_increases
-- purpose: Each start of a task raises its fence by one, from the first to the newest
SELECT entity, 'attempt ' || attempt || ' came as start ' || place AS detail FROM (
  SELECT entity, attempt, row_number() OVER (PARTITION BY entity ORDER BY version) AS place
  FROM holdfast_event WHERE type = 'task.running') AS starts
WHERE attempt <> place
UNION ALL
SELECT task.id, 'the row is at attempt ' || task.attempt || ', its events tell of fewer or more'
FROM holdfast_task AS task
WHERE task.attempt <> (SELECT count(*) FROM holdfast_event AS event WHERE event.entity = task.id AND event.type = 'task.running')

-- name: check_end_carries_fence
-- purpose: Each change from running to done or failed carries the fence of the latest start
SELECT ended.entity AS entity, ended.type || ' at version ' || ended.version || ' carries attempt ' || ended.attempt AS detail
FROM holdfast_event AS ended
WHERE ended.from_status = 'running'
  AND ended.to_status IN ('done', 'failed')
  AND ended.entity <> COALESCE(ended.run_id, '')
  AND ended.attempt <> COALESCE((
    SELECT event.attempt FROM holdfast_event AS event
    WHERE event.entity = ended.entity AND event.type = 'task.running' AND event.version < ended.version
    ORDER BY event.version DESC LIMIT 1), 0)

-- name: check_cancel_wins
-- purpose: Within one generation, no task is done or started after a cancel
SELECT later.entity AS entity, later.type || ' at version ' || later.version || ' came after the cancel at ' || cancelled.version AS detail
FROM holdfast_event AS cancelled
JOIN holdfast_event AS later ON later.entity = cancelled.entity
  AND later.generation = cancelled.generation AND later.version > cancelled.version
WHERE cancelled.to_status = 'cancelled'
  AND cancelled.from_status <> 'cancelled'
  AND later.to_status <> 'cancelled'

-- name: check_terminal_run_is_still
-- purpose: An ended run has no ready task and no running task
SELECT task.id AS entity, 'is ' || task.status || ' in ' || run.id || ', which has ' || run.status AS detail
FROM holdfast_run AS run JOIN holdfast_task AS task ON task.run_id = run.id
WHERE run.status <> 'running'
  AND (task.status = 'running'
    OR (task.status = 'queued' AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0))

-- name: check_completed_means_done
-- purpose: A run is completed exactly when all its tasks are done, once in each generation
-- A task that a step made and no task needs only has to have ended.
SELECT run.id AS entity, 'completed with a task that is not done' AS detail
FROM holdfast_run AS run
WHERE run.status = 'completed'
  AND EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.run_id = run.id AND task.status <> 'done' AND NOT task.superseded AND (NOT {spared task} OR task.status NOT IN ('failed', 'cancelled')))
UNION ALL
SELECT run.id, 'still running with all its tasks done'
FROM holdfast_run AS run
WHERE run.status = 'running'
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.run_id = run.id AND task.status <> 'done' AND NOT task.superseded AND (NOT {spared task} OR task.status NOT IN ('failed', 'cancelled')))
UNION ALL
SELECT entity, 'completed more than once in generation ' || generation
FROM holdfast_event
WHERE type = 'run.completed'
GROUP BY entity, generation
HAVING count(*) > 1

-- name: check_one_key_one_row
-- purpose: No two runs and no two tasks share a key, removed ones included
SELECT key AS entity, 'is the key of ' || count(*) || ' tasks' AS detail
FROM holdfast_task WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1
UNION ALL
SELECT key, 'is the key of ' || count(*) || ' runs'
FROM holdfast_run WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1
UNION ALL
SELECT run.key, 'is the key of ' || run.id || ', and of ' || gone.entity || ', which was removed'
FROM holdfast_tombstone AS gone JOIN holdfast_run AS run ON run.key = gone.key WHERE gone.kind = 'run'
UNION ALL
SELECT task.key, 'is the key of ' || task.id || ', and of ' || gone.entity || ', which was removed'
FROM holdfast_tombstone AS gone JOIN holdfast_task AS task ON task.key = gone.key WHERE gone.kind = 'task'

-- name: check_budgets
-- purpose: Failures and lost attempts stay within their budgets
SELECT id AS entity, failures || ' failures of ' || max_attempts || ', ' || lost || ' lost of ' || max_lost AS detail
FROM holdfast_task
WHERE failures > max_attempts
   OR lost > max_lost

-- name: check_no_early_start
-- purpose: No task starts before the time that its events last set
SELECT started.entity AS entity, 'started at ' || started.at || ' by event ' || started.seq AS detail
FROM holdfast_event AS started
WHERE started.type = 'task.running'
  AND started.at < COALESCE((
    SELECT CAST({data scheduled_for} AS bigint) FROM holdfast_event AS event
    WHERE event.entity = started.entity AND event.version < started.version
      AND event.type <> 'task.done' AND event.data LIKE '%"scheduled_for":%'
    ORDER BY event.version DESC LIMIT 1), 0)

-- name: check_concurrency_limits
-- purpose: Concurrency limits hold at every prefix of the events, and the counters are right
SELECT entity, 'the start at event ' || seq || ' made ' || busy || ' of at most ' || highest AS detail FROM (
  SELECT event.entity, event.seq, slot.highest, sum(CASE WHEN event.to_status = 'running' THEN 1 ELSE -1 END)
    OVER (PARTITION BY task.concurrency_key ORDER BY event.seq) AS busy
  FROM holdfast_task AS task
  JOIN holdfast_slot AS slot ON slot.key = task.concurrency_key
  JOIN holdfast_event AS event ON event.entity = task.id
  WHERE (event.from_status = 'running') <> (event.to_status = 'running')) AS counted
WHERE busy > highest
UNION ALL
SELECT key, 'counts ' || used || ', but ' || held || ' hold it' FROM (
  SELECT slot.key, slot.used,
    (SELECT count(*) FROM holdfast_task AS task WHERE task.concurrency_key = slot.key AND task.status = 'running')
    + (SELECT count(*) FROM holdfast_run AS run WHERE run.concurrency_key = slot.key AND run.status = 'running' AND (run.holds & 288) = 0) AS held
  FROM holdfast_slot AS slot) AS counters
WHERE used <> held

-- name: check_blocked_is_true
-- purpose: An open task is blocked exactly when one of its needs is not done
SELECT task.id AS entity, CASE WHEN task.blocked THEN 'blocked with all needs done' ELSE 'not blocked with a need that is not done' END AS detail
FROM holdfast_task AS task
WHERE task.status IN ('idle', 'queued')
  AND task.blocked <> EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = task.id AND needed.status <> 'done')

-- name: check_needs_still_count
-- purpose: A task that is not superseded needs no superseded task, unless that one is done
SELECT task.id AS entity, 'needs ' || needed.id || ', which counts no more and will never be done' AS detail
FROM holdfast_task AS needed
JOIN holdfast_need AS need ON need.need_id = needed.id
JOIN holdfast_task AS task ON task.id = need.task_id
WHERE needed.superseded
  AND needed.status <> 'done'
  AND NOT task.superseded

-- name: check_run_holds_copied
-- purpose: Every open task carries the holds of its run, except hold paused, which run-now lifts
SELECT task.id AS entity, 'carries ' || task.run_holds || ', its run has ' || run.holds AS detail
FROM holdfast_task AS task JOIN holdfast_run AS run ON run.id = task.run_id
WHERE task.status IN ('idle', 'queued', 'running')
  AND run.status = 'running'
  AND (task.run_holds & ~1) <> (run.holds & ~1)

-- name: check_failing_is_marked
-- purpose: A running run with a failed task is on hold failing, and ends once nothing of it runs
-- A failed task that a step made does not count while no task needs it.
SELECT run.id AS entity, 'has a failed or cancelled task, but is not held for failing' AS detail
FROM holdfast_run AS run
WHERE run.status = 'running'
  AND (run.holds & 64) = 0
  AND EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.run_id = run.id AND task.status IN ('failed', 'cancelled') AND NOT task.superseded AND NOT {spared task})
UNION ALL
SELECT run.id, 'is failing, nothing of it runs, and it has not ended'
FROM holdfast_run AS run
WHERE run.status = 'running'
  AND (run.holds & 64) <> 0
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.run_id = run.id AND task.status = 'running')
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS task JOIN holdfast_run AS child ON child.id = task.waits_for WHERE task.run_id = run.id AND task.status = 'queued' AND child.status = 'running')

-- name: check_rows_are_there
-- purpose: Every task or run that has events has its row, unless its last event is the deletion
SELECT event.entity AS entity, 'has events up to version ' || event.version || ', and no row' AS detail
FROM holdfast_event AS event
WHERE NOT EXISTS (SELECT 1 FROM holdfast_event AS later WHERE later.entity = event.entity AND later.version > event.version)
  AND event.type <> 'task.deleted'
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.id = event.entity)
  AND NOT EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = event.entity)

-- name: check_times_make_sense
-- purpose: A queued task that is not due has a time, a wait or a condition; held_until comes with hold limit
SELECT id AS entity, 'is not due, and has no time at which it will be' AS detail
FROM holdfast_task
WHERE status = 'queued'
  AND NOT due
  AND scheduled_for IS NULL
  AND waits_for IS NULL
  AND NOT conditional
UNION ALL
SELECT id, 'has a time at which its limit lifts, and no limit'
FROM holdfast_task
WHERE held_until IS NOT NULL
  AND (holds & 16) = 0
  AND status IN ('idle', 'queued', 'running')

-- name: check_results_are_kept
-- purpose: The result of a task is the one that its last attempt reported
SELECT task.id AS entity, 'keeps the digest ' || COALESCE(task.result_digest, 'of nothing') || ', its last event says another' AS detail
FROM holdfast_task AS task JOIN holdfast_event AS event ON event.entity = task.id AND event.version = task.version
WHERE event.type = 'task.done'
  AND COALESCE({data digest}, '') <> COALESCE(task.result_digest, '')

-- name: check_schedules_end_with_runs
-- purpose: A schedule that belongs to a run is gone once that run has ended
SELECT schedule.name AS entity, 'goes with ' || run.id || ', which has ' || run.status AS detail
FROM holdfast_schedule AS schedule JOIN holdfast_run AS run ON run.id = schedule.run_id
WHERE run.status <> 'running'

-- name: check_ended_plans_are_still
-- purpose: No task below an ended plan is ready or running
WITH RECURSIVE below (id, plan_id) AS (
  SELECT child.id, plan.id FROM holdfast_task AS plan JOIN holdfast_task AS child ON child.parent_id = plan.id
  WHERE plan.planning_phase = 'finalized'
    AND plan.status IN ('done', 'failed', 'cancelled')
    AND child.status IN ('idle', 'queued', 'running')
    AND NOT child.superseded
  UNION
  SELECT child.id, below.plan_id FROM below JOIN holdfast_task AS child ON child.parent_id = below.id
  WHERE child.status IN ('idle', 'queued', 'running')
    AND NOT child.superseded)
SELECT task.id AS entity, 'is ' || task.status || ' below ' || below.plan_id || ', a plan that has ended' AS detail
FROM below JOIN holdfast_task AS task ON task.id = below.id
WHERE task.status = 'running'
   OR (task.status = 'queued' AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0)

-- name: check_waits_end_with_children
-- purpose: A task that waits for its children has an open child
SELECT parent.id AS entity, 'waits for its children, and none of them is open' AS detail
FROM holdfast_task AS parent
WHERE '*' || parent.waits_for LIKE '%*children'
  AND parent.status = 'queued'
  AND NOT parent.due
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = parent.id AND child.status IN ('idle', 'queued', 'running'))

-- name: check_waits_end_with_signals
-- purpose: A task that waits for several things has none of their signals left to take
-- No LIKE here: in SQLite, LIKE ignores case.
SELECT task.id AS entity, 'waits for ' || min(signal.name) || ', which was sent, and nobody has taken it' AS detail
FROM holdfast_signal AS signal JOIN holdfast_task AS task
  ON task.waits_for > signal.target || ' ,' AND task.waits_for < signal.target || ' -'
WHERE signal.taken_by IS NULL
  AND task.status = 'queued'
  AND NOT task.due
  AND replace(task.waits_for, ',' || signal.name || ',', '') <> task.waits_for
GROUP BY task.id

-- name: check_plans_end_with_children
-- purpose: A finalized plan ends once all children have ended, or once one failed and nothing below it runs
SELECT plan.id AS entity, 'is in progress, and nothing below it can move' AS detail
FROM holdfast_task AS plan
WHERE plan.planning_phase = 'finalized'
  AND plan.status = 'idle'
  AND CASE WHEN EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = plan.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded)
    THEN NOT EXISTS (
      WITH RECURSIVE below (id, status) AS (
        SELECT child.id, child.status FROM holdfast_task AS child WHERE child.parent_id = plan.id
        UNION ALL SELECT child.id, child.status FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
      SELECT 1 FROM below WHERE below.status = 'running')
    ELSE NOT EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = plan.id AND child.status IN ('idle', 'queued', 'running')) END

-- name: check_plans_wait_for_no_part
-- purpose: No plan needs one of its own parts that waits, through other tasks, for the plan itself
-- Everything below a plan waits for what the plan needs, so the two would wait for each other.
WITH RECURSIVE above (plan_id, part_id, id) AS (
    SELECT plan.id, part.id, part.parent_id
    FROM holdfast_task AS plan JOIN holdfast_need AS need ON need.task_id = plan.id
      JOIN holdfast_task AS part ON part.id = need.need_id
    WHERE plan.planning_phase = 'finalized'
      AND plan.status = 'idle'
      AND part.status IN ('idle', 'queued')
    UNION SELECT above.plan_id, above.part_id, around.parent_id
    FROM above JOIN holdfast_task AS around ON around.id = above.id),
  awaited (plan_id, part_id, id) AS (
    SELECT above.plan_id, above.part_id, above.part_id FROM above WHERE above.id = above.plan_id
    UNION SELECT awaited.plan_id, awaited.part_id, following.id
    FROM awaited JOIN (
      SELECT need.task_id AS source, need.need_id AS id FROM holdfast_need AS need
      UNION ALL SELECT child.parent_id, child.id FROM holdfast_task AS child WHERE NOT child.superseded) AS following
      ON following.source = awaited.id
      JOIN holdfast_task AS task ON task.id = following.id AND task.status IN ('idle', 'queued'))
SELECT awaited.plan_id AS entity, 'needs ' || awaited.part_id || ', a part of it, which waits for ' || awaited.id
  || ', and that for it again' AS detail, awaited.part_id, awaited.id AS waiting_id
FROM awaited JOIN holdfast_need AS need ON need.task_id = awaited.id AND need.need_id = awaited.part_id

-- name: check_calls_end_with_runs
-- purpose: A calling task waits for exactly one run at a time, and ends as that run ends
SELECT run.id AS entity, 'runs below ' || run.parent_id || ', which does not wait for it' AS detail
FROM holdfast_run AS run LEFT JOIN holdfast_task AS task ON task.id = run.parent_id
WHERE run.parent_id IS NOT NULL
  AND run.status = 'running'
  AND (COALESCE(task.status, '') <> 'queued' OR COALESCE(task.waits_for, '') <> run.id OR task.epoch <> run.parent_epoch)
UNION ALL
SELECT task.id, 'waits for ' || task.waits_for || ', which has ' || COALESCE(run.status, 'never been')
FROM holdfast_task AS task LEFT JOIN holdfast_run AS run ON run.id = task.waits_for
WHERE task.calls IS NOT NULL
  AND task.status = 'queued'
  AND task.waits_for IS NOT NULL
  AND COALESCE(run.status, '') <> 'running'
UNION ALL
SELECT task.id, 'has nothing in its way, and waits for no run'
FROM holdfast_task AS task
WHERE task.calls IS NOT NULL
  AND task.status = 'queued'
  AND task.waits_for IS NULL
  AND NOT task.blocked
  AND task.holds = 0
  AND task.run_holds = 0
UNION ALL
SELECT task.id, 'is done, and its run is ' || run.status
FROM holdfast_task AS task JOIN holdfast_run AS run ON run.id = task.waits_for
WHERE task.calls IS NOT NULL
  AND task.status = 'done'
  AND NOT task.skipped
  AND run.status <> 'completed'

-- name: check_messages_done_once
-- purpose: No message that a handler has processed or dropped still waits for that handler
SELECT done.message_id AS entity, 'is done with by ' || done.handler || ', and waits for it still' AS detail
FROM holdfast_processed_message AS done
JOIN holdfast_delivery AS waiting ON waiting.message_id = done.message_id AND waiting.handler = done.handler

-- name: check_events_reach_groups
-- purpose: Every group has a position for each partition, none passes the newest number or an unsent event
SELECT reader.consumers AS entity, 'has passed ' || reader.passed || ' on ' || reader.channel || ', and the last number given was ' || reader.newest AS detail
FROM (
  SELECT place.consumers, place.channel, place.passed,
    CASE WHEN place.channel IN ('workflow.events', 'forgotten') THEN last.event ELSE last.message END AS newest
  FROM holdfast_position AS place CROSS JOIN holdfast_last_number AS last) AS reader
WHERE reader.passed > reader.newest
UNION ALL
SELECT consumers, 'has no place for some partition of ' || channel
FROM holdfast_position
GROUP BY consumers, channel
HAVING count(*) <> max(place) + 1
UNION ALL
SELECT sent.consumers, 'has ' || acknowledged.passed || ' acknowledged, and sent only up to ' || sent.passed
FROM holdfast_position AS sent
JOIN holdfast_position AS acknowledged ON acknowledged.consumers = sent.consumers AND acknowledged.channel = sent.channel
WHERE sent.consumers LIKE 'relay/%'
  AND sent.place = 0
  AND acknowledged.place = 1
  AND acknowledged.passed > sent.passed

-- name: check_heads_follow_events
-- purpose: The heads of each line are numbered without a gap, and are those that the events of their attempts tell of
SELECT made.line_id AS entity, 'head ' || made.number || ' follows no head ' || (made.number - 1) AS detail
FROM holdfast_commit AS made
WHERE made.number > 1
  AND NOT EXISTS (SELECT 1 FROM holdfast_commit AS before WHERE before.line_id = made.line_id AND before.number = made.number - 1)
UNION ALL
SELECT made.line_id, 'head ' || made.number || ' of ' || made.task_id || ', attempt ' || made.attempt || ', is in no event'
FROM holdfast_commit AS made
WHERE made.kind = 'head'
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_event AS event
    WHERE event.entity = made.task_id AND event.attempt = made.attempt AND event.type = 'task.done'
      AND {data commit} = made.sha AND {data line} = made.line_id AND {data number} = CAST(made.number AS text))
UNION ALL
SELECT made.line_id, 'attempt ' || made.attempt || ' of ' || made.task_id || ' began it anew, and did not fail'
FROM holdfast_commit AS made
WHERE made.kind = 'anew'
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_event AS event
    WHERE event.entity = made.task_id AND event.attempt = made.attempt AND event.from_status = 'running'
      AND event.to_status IN ('failed', 'queued'))
UNION ALL
SELECT told.line, 'event ' || told.seq || ' tells of head ' || told.number || ', which is not there'
FROM (
  SELECT event.entity, event.attempt, event.seq, {data line} AS line, {data number} AS number
  FROM holdfast_event AS event
  WHERE event.entity IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id IN (SELECT line.run_id FROM holdfast_line AS line))
    AND event.type = 'task.done') AS told
WHERE told.line IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_commit AS made
    WHERE made.task_id = told.entity AND made.attempt = told.attempt AND made.kind = 'head'
      AND made.line_id = told.line AND CAST(made.number AS text) = told.number)
