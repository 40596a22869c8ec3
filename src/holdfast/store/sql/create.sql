-- name: insert_workflows
-- purpose: Insert the workflow definitions that new runs are pinned to
-- guards: A version that is stored already stays
-- rows: workflow text, digest text, graph text
INSERT INTO holdfast_workflow (name, version, definition, created_at)
SELECT r.workflow, r.digest, r.graph, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (name, version) DO NOTHING

-- name: add_workflows
-- purpose: Insert workflow definitions before any run starts, and return the new ones
-- guards: A version that is stored already stays
-- rows: workflow text, digest text, graph text
INSERT INTO holdfast_workflow (name, version, definition, created_at)
SELECT r.workflow, r.digest, r.graph, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (name, version) DO NOTHING
RETURNING name, version

-- name: choose_workflows
-- purpose: Make given versions the newest of their workflows, so that the names mean these versions
-- guards: Another version is the newest of that workflow
-- rows: workflow text, digest text
UPDATE holdfast_workflow SET created_at = (
  SELECT MAX(moment.at) FROM (
    SELECT holdfast_now() AS at
    UNION ALL SELECT known.created_at + 1 FROM holdfast_workflow AS known
    WHERE known.name = r.workflow) AS moment)
FROM {rows} AS r
WHERE name = r.workflow
  AND version = r.digest
  AND version <> (
    SELECT newest.version FROM holdfast_workflow AS newest
    WHERE newest.name = r.workflow
    ORDER BY newest.created_at DESC, newest.version LIMIT 1)

-- name: insert_runs
-- purpose: Insert runs; one that waits for its concurrency key starts on hold slot, one for later on scheduled
-- guards: No run has that key yet
-- rows: run_id text, workflow_name text, digest text, unique_key text, body text, reasons integer,
--   given text, rank integer, slot_key text, actor text, caller text, called_in integer,
--   topmost text, level integer, usd integer, usd_per_attempt integer, attempts integer,
--   lasts integer, later integer, marks text
-- changes: run
-- event: 'run.started'
-- data: '{"holds":' || holds || ',"priority":' || priority
--   || COALESCE(',"parent_id":"' || parent_id || '"', '')
--   || COALESCE(',"budget_usd":' || budget_usd, '')
--   || COALESCE(',"budget_attempts":' || budget_attempts, '')
--   || COALESCE(',"deadline":' || deadline, '')
--   || COALESCE(',"scheduled_for":' || scheduled_for, '') || '}'
-- answers: count
INSERT INTO holdfast_run (id, workflow, workflow_version, key, body_digest, status, holds, input,
  priority, concurrency_key, changed_by, changed_at, created_at, parent_id, parent_epoch, root_id,
  depth, budget_usd, budget_usd_per_attempt, budget_attempts, time_limit, deadline,
  scheduled_for, labels)
SELECT r.run_id, r.workflow_name, r.digest, r.unique_key, r.body, 'running', r.reasons, r.given,
  r.rank, r.slot_key, r.actor, (SELECT holdfast_now()), (SELECT holdfast_now()), r.caller,
  r.called_in, r.topmost, r.level, r.usd, r.usd_per_attempt, r.attempts, r.lasts,
  COALESCE(r.later, (SELECT holdfast_now())) + r.lasts, r.later, r.marks
FROM {rows} AS r WHERE true
ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING

-- name: runs_by_key
-- purpose: Find the runs, removed ones too, that already have some keys
SELECT id, key, body_digest FROM holdfast_run
WHERE key IN (SELECT value FROM {each keys})
UNION ALL
SELECT entity, key, body_digest FROM holdfast_tombstone
WHERE kind = 'run'
  AND key IN (SELECT value FROM {each keys})

-- name: insert_tasks
-- purpose: Insert tasks, idle or queued, blocked or not
-- guards: No task has that key yet, and no task that had it was removed
-- rows: task_id text, task_kind text, run text, parent text, step_id text, name text, role text,
--   state text, at_time integer, rank integer, place integer, labels text, unique_key text,
--   body text, slot_key text, attempts integer, losses integer, wait_first integer,
--   wait_most integer, time_limit integer, given text, made_in integer, item_place integer,
--   asks_first boolean, counts boolean, subject text, rounds integer, failing text,
--   promises boolean, flow text, marks text, outside boolean, waits boolean, run_reasons integer, actor text
-- changes: task
-- event: 'task.created'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"run_holds":'
--   || run_holds || ',"priority":' || priority || ',"position":' || position
--   || ',"scheduled_for":' || COALESCE(CAST(scheduled_for AS text), 'null') || '}'
-- answers: count
INSERT INTO holdfast_task (id, kind, run_id, parent_id, step, title, agent, status, blocked,
  run_holds, due, scheduled_for, priority, position, tags, key, body_digest, concurrency_key,
  max_attempts, max_lost, backoff, backoff_max, timeout, payload, changed_by, changed_at,
  created_at, parent_epoch, item, conditional, gives, verifies, max_rounds, on_failure, declares,
  calls, labels, bare)
SELECT r.task_id, r.task_kind, r.run, r.parent, r.step_id, r.name, r.role, r.state, r.waits,
  r.run_reasons, r.at_time IS NULL AND NOT r.asks_first, r.at_time, r.rank, r.place, r.labels, r.unique_key, r.body,
  r.slot_key, r.attempts, r.losses, r.wait_first, r.wait_most, r.time_limit, r.given, r.actor,
  (SELECT holdfast_now()), (SELECT holdfast_now()), r.made_in, r.item_place, r.asks_first,
  r.counts, r.subject, r.rounds, r.failing, r.promises, r.flow, r.marks, r.step_id IS NULL OR r.outside
FROM {rows} AS r
WHERE r.unique_key IS NULL OR NOT EXISTS (SELECT 1 FROM holdfast_tombstone AS held WHERE held.kind = 'task' AND held.key = r.unique_key)
ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING

-- name: tasks_by_key
-- purpose: Find the tasks, removed ones too, that already have some keys
SELECT id, key, body_digest FROM holdfast_task
WHERE key IN (SELECT value FROM {each keys})
UNION ALL
SELECT entity, key, body_digest FROM holdfast_tombstone
WHERE kind = 'task'
  AND key IN (SELECT value FROM {each keys})

-- name: task_arguments
-- purpose: Read the function and the arguments of a task, to compare them with a request under its key
SELECT id, body_digest, step, calls, planning_phase <> 'none' AS planned, payload FROM holdfast_task WHERE id = :task_id

-- name: insert_needs
-- purpose: Insert needs: which task must be done before which
-- guards: The pair is not stored yet
-- rows: dependent text, needed text, from_version integer
INSERT INTO holdfast_need (task_id, need_id, since)
SELECT r.dependent, r.needed, r.from_version FROM {rows} AS r WHERE true
ON CONFLICT (task_id, need_id) DO NOTHING

-- name: lock_needed
-- purpose: Lock the tasks that new tasks will need or belong to; read their status and a plan's last position
SELECT id, run_id, status, planning_phase, superseded,
  CASE WHEN planning_phase <> 'none' THEN (SELECT max(child.position) FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id) END AS last
FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})
ORDER BY id {share}

-- name: set_savepoint
-- purpose: Set a savepoint in the application's transaction
SAVEPOINT holdfast

-- name: roll_back_to_savepoint
-- purpose: Roll back to the savepoint; the application's own writes stay
ROLLBACK TO SAVEPOINT holdfast

-- name: release_savepoint
-- purpose: Release the savepoint, so that its writes commit with the application's transaction
RELEASE SAVEPOINT holdfast
