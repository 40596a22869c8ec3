-- name: record_effects
-- purpose: Record a named effect of a running attempt with its value, within the limits of effects and bytes
-- guards: The task is running under this fence, its lease has not expired, the effect is not recorded
--   yet, and the counts and bytes of the attempt and of its run or lone task stay within their limits;
--   the caller has locked both rows
-- rows: task_id text, fence integer, effect text, given text, size integer, nth integer, upto integer
INSERT INTO holdfast_effect (task_id, epoch, name, value, attempt, recorded_at, size)
SELECT task.id, task.epoch, r.effect, r.given, task.attempt, (SELECT holdfast_now()), r.size
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  LEFT JOIN holdfast_kept AS own ON own.owner = task.id AND own.attempt = task.attempt
  LEFT JOIN holdfast_kept AS whole ON whole.owner = COALESCE(task.run_id, task.id) AND whole.attempt = 0
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND task.lease_expires_at > (SELECT holdfast_now())
  AND COALESCE(own.effects, 0) + r.nth <= :max_effects
  AND COALESCE(own.bytes, 0) + r.upto <= :max_kept
  AND COALESCE(whole.effects, 0) + r.nth <= :max_run_effects
  AND COALESCE(whole.bytes, 0) + r.upto <= :max_run_kept
ON CONFLICT (task_id, epoch, name) DO NOTHING
RETURNING task_id, name

-- name: kept_by
-- purpose: Read how many effects and bytes an attempt and its run or lone task keep, if an effect is new
-- rows: task_id text, fence integer, effect text
SELECT COALESCE(own.effects, 0) AS effects, COALESCE(own.bytes, 0) AS bytes,
  COALESCE(whole.effects, 0) AS run_effects, COALESCE(whole.bytes, 0) AS run_bytes
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  LEFT JOIN holdfast_kept AS own ON own.owner = task.id AND own.attempt = r.fence
  LEFT JOIN holdfast_kept AS whole ON whole.owner = COALESCE(task.run_id, task.id) AND whole.attempt = 0
WHERE NOT EXISTS (SELECT 1 FROM holdfast_effect AS effect WHERE effect.task_id = task.id AND effect.epoch = task.epoch AND effect.name = r.effect)

-- name: effects_behind
-- purpose: List a page of the effects of a task in its present epoch, the oldest first
SELECT effect.name, effect.value, effect.attempt, effect.recorded_at
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
WHERE effect.task_id = :task_id
  AND effect.epoch = task.epoch
  AND (effect.attempt, effect.recorded_at, effect.name) > (:attempt, :recorded_at, :name)
ORDER BY effect.attempt, effect.recorded_at, effect.name
LIMIT :count

-- name: effect_named
-- purpose: Read the effect of a task under a name in its present epoch
SELECT effect.name, effect.value, effect.attempt, effect.recorded_at
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
WHERE effect.task_id = :task_id
  AND effect.epoch = task.epoch
  AND effect.name = :name

-- name: effect_valued
-- purpose: Tell whether a task has an effect with a value in its present epoch, under any name
SELECT 1 AS found
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
WHERE effect.task_id = :task_id
  AND effect.epoch = task.epoch
  AND effect.value = :value
LIMIT 1

-- name: artifacts_behind
-- purpose: List a page of the artifacts of a task by name, of each name the newest
SELECT effect.name, effect.value, effect.attempt, effect.recorded_at
FROM holdfast_effect AS effect
WHERE effect.task_id = :task_id
  AND effect.name > :name
  AND effect.name < :end
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_effect AS newer
    WHERE newer.task_id = effect.task_id AND newer.name = effect.name AND newer.epoch > effect.epoch)
ORDER BY effect.name
LIMIT :count

-- name: artifact_named
-- purpose: Read the newest artifact of a task under a name
SELECT effect.name, effect.value, effect.attempt, effect.recorded_at
FROM holdfast_effect AS effect
WHERE effect.task_id = :task_id
  AND effect.name = :name
ORDER BY effect.epoch DESC
LIMIT 1

-- name: suspend_tasks
-- purpose: Suspend running tasks until a time, a signal or the end of their children (running → queued)
-- guards: The task is running under this fence
-- rows: task_id text, fence integer, until integer, awaited text
-- changes: task
-- event: 'task.suspended'
-- data: '{"scheduled_for":' || COALESCE(CAST(scheduled_for AS text), 'null') || ',"waits_for":'
--   || COALESCE('"' || waits_for || '"', 'null') || COALESCE(',"usage":' || usage, '')
--   || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END
--   || COALESCE((SELECT ',"draft":"' || made.sha || '"' FROM holdfast_commit AS made WHERE made.task_id = holdfast_task.id AND made.attempt = holdfast_task.attempt AND made.kind = 'draft'), '') || '}'
-- returning: concurrency_key, parent_id, waits_for
-- A suspension costs neither failures nor lost attempts.
UPDATE holdfast_task SET
  status = 'queued', blocked = {waiting holdfast_task},
  due = false, scheduled_for = r.until, waits_for = r.awaited,
  lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = worker, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence

-- name: send_signals
-- purpose: Store signals until an attempt takes them; a signal with a key is stored once
-- guards: The target run or lone task has not ended, and no signal of that target, name and key is
--   stored
-- rows: signal_id text, aim text, signal text, given text, unique_key text, actor text
INSERT INTO holdfast_signal (id, target, name, payload, key, sent_by, sent_at)
SELECT r.signal_id, r.aim, r.signal, r.given, r.unique_key, r.actor, (SELECT holdfast_now())
FROM {rows} AS r
WHERE (EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = r.aim AND run.status = 'running')
    OR EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.id = r.aim AND task.run_id IS NULL AND task.status IN ('idle', 'queued', 'running')))
ON CONFLICT (target, name, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id

-- name: several_awaited
-- purpose: Read the waits_for texts of tasks that wait for several things, signals to some targets among these
-- A subquery for each target keeps PostgreSQL from reading all tasks.
SELECT aim.value AS target, (SELECT string_agg(task.waits_for, ';') FROM holdfast_task AS task WHERE task.waits_for > aim.value || ' ,' AND task.waits_for < aim.value || ' -') AS texts
FROM {each targets} AS aim

-- name: signals_awaited
-- purpose: Read the waits_for texts of tasks that wait for a signal to a target, alone or among others
SELECT waits_for FROM holdfast_task
WHERE waits_for = :target || ' ' || :name
  AND status = 'queued'
UNION
SELECT first.waits_for FROM (
    SELECT DISTINCT waits_for FROM holdfast_task
    WHERE waits_for > :target || ' '
      AND waits_for < :target || '!'
      AND status = 'queued'
    ORDER BY waits_for LIMIT :count) AS first
ORDER BY waits_for

-- name: wake_for_signals
-- purpose: Wake suspended tasks whose awaited signal has arrived: make the tasks due
-- guards: The task is queued and not due, waits for the signal, and one such signal is stored and not
--   taken
-- rows: awaited text, aim text, sent text
-- changes: task
-- event: 'task.woken'
-- data: '{"scheduled_for":null,"waits_for":null}'
-- returning: parent_id
UPDATE holdfast_task SET
  due = true, scheduled_for = NULL, waits_for = NULL,
  version = version + 1, previous = status,
  changed_by = 'signal', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE waits_for = r.awaited
  AND status = 'queued'
  AND NOT due
  AND (SELECT signal.id FROM holdfast_signal AS signal WHERE signal.target = r.aim AND signal.name = r.sent AND signal.taken_by IS NULL LIMIT 1) IS NOT NULL

-- name: wake_parents
-- purpose: Wake suspended tasks that wait for their children, once all children have ended
-- guards: The task is queued and not due, waits for its children, alone or among others, and has no
--   open child
-- changes: task
-- event: 'task.woken'
-- data: '{"scheduled_for":null,"waits_for":null}'
-- returning: parent_id
-- COALESCE keeps PostgreSQL from beginning with all tasks that wait for anything.
UPDATE holdfast_task SET
  due = true, scheduled_for = NULL, waits_for = NULL,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'queued'
  AND NOT due
  AND '*' || COALESCE(waits_for, '') LIKE '%*children'
  AND (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('idle', 'queued', 'running') LIMIT 1) IS NULL

-- name: take_signal
-- purpose: Take the oldest signal of a name for a running attempt, once
-- guards: The task is running under this fence with a live lease, and no attempt has taken the signal
UPDATE holdfast_signal SET taken_by = :task_id, taken_as = :effect
WHERE id = (
    SELECT id FROM holdfast_signal
    WHERE target = :target
      AND name = :name
      AND taken_by IS NULL
    ORDER BY id LIMIT 1)
  AND taken_by IS NULL
  AND EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.id = :task_id AND task.status = 'running' AND task.attempt = :fence AND task.lease_expires_at > (SELECT holdfast_now()))
RETURNING payload

-- name: live_attempts
-- purpose: Filter attempts down to those with a live lease, with the run, epoch and holds for their children
-- rows: task_id text, fence integer
SELECT task.id, task.run_id, task.epoch, COALESCE(run.holds, 0) AS run_holds
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  LEFT JOIN holdfast_run AS run ON run.id = task.run_id
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND task.lease_expires_at > (SELECT holdfast_now())

-- name: children_by_id
-- purpose: Read the status, output and error of some children of a task
SELECT id, status, output, error FROM holdfast_task
WHERE parent_id = :task_id
  AND id IN (SELECT value FROM {each ids})

-- name: supersede_children
-- purpose: Supersede all that tasks made in a past epoch, and cancel what is still open of it
-- guards: The task was made by one of the given tasks, or is below such a task, and is not superseded
--   yet
-- changes: task
-- event: CASE WHEN status <> previous THEN 'task.cancelled' ELSE 'task.superseded' END
-- data: '{"superseded":true' || CASE WHEN previous = 'running' THEN COALESCE(',"usage":' || usage, '') ELSE '' END || '}'
-- returning: concurrency_key, parent_id, calls
UPDATE holdfast_task SET
  superseded = true,
  status = CASE WHEN status IN ('idle', 'queued', 'running') THEN 'cancelled' ELSE status END,
  finished_at = COALESCE(finished_at, (SELECT holdfast_now())),
  lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE tree (id) AS (
      SELECT child.id FROM holdfast_task AS child
      WHERE child.parent_id IN (SELECT value FROM {each ids})
        AND child.parent_epoch IS NOT NULL
      UNION SELECT child.id FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
    SELECT id FROM tree)
  AND NOT superseded

-- name: lost_needs_of
-- purpose: List the needs of some tasks that are superseded and not done
SELECT needed.id FROM holdfast_task AS needed
WHERE needed.id IN (SELECT need.need_id FROM holdfast_need AS need WHERE need.task_id IN (SELECT value FROM {each ids}))
  AND needed.superseded
  AND needed.status <> 'done'

-- name: lost_needs
-- purpose: Find the tasks that need some superseded tasks, with the nearest ancestor that is not superseded
-- The new need counts from the first version of a task that never ran, so that a plan that is reset
-- keeps it.
WITH RECURSIVE around (need_id, id, parent_id, superseded, status) AS (
  SELECT lost.id, lost.id, lost.parent_id, lost.superseded, lost.status FROM holdfast_task AS lost
  WHERE lost.id IN (SELECT value FROM {each ids})
  UNION ALL SELECT around.need_id, parent.id, parent.parent_id, parent.superseded, parent.status
  FROM around JOIN holdfast_task AS parent ON parent.id = around.parent_id
  WHERE around.superseded)
SELECT task.id AS task_id, CASE WHEN task.attempt = 0 THEN 1 ELSE task.version END AS since, need.need_id,
  around.id AS heir_id, around.status AS heir_status
FROM around JOIN holdfast_need AS need ON need.need_id = around.need_id
  JOIN holdfast_task AS task ON task.id = need.task_id
WHERE NOT around.superseded
  AND NOT task.superseded
ORDER BY task.id, need.need_id

-- name: signal_target
-- purpose: Read the status of the run or task that a signal is for
SELECT status, NULL AS run_id FROM holdfast_run WHERE id = :target
UNION ALL
SELECT status, run_id FROM holdfast_task WHERE id = :target

-- name: signal_by_key
-- purpose: Read the payload of a signal that was sent under a key
SELECT payload FROM holdfast_signal
WHERE target = :target
  AND name = :name
  AND key = :key
