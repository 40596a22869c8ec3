-- name: record_effects
-- purpose: remember what a named side effect of a running attempt gave, where there is room for it
-- guards: running under this fence, the lease not expired, not remembered before, and neither the
--   attempt nor its run or lone task has more than it may; whoever writes has locked those
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
-- purpose: how much an attempt and its run or lone task have kept, unless an effect is there already
-- rows: task_id text, fence integer, effect text
SELECT COALESCE(own.effects, 0) AS effects, COALESCE(own.bytes, 0) AS bytes,
  COALESCE(whole.effects, 0) AS run_effects, COALESCE(whole.bytes, 0) AS run_bytes
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  LEFT JOIN holdfast_kept AS own ON own.owner = task.id AND own.attempt = r.fence
  LEFT JOIN holdfast_kept AS whole ON whole.owner = COALESCE(task.run_id, task.id) AND whole.attempt = 0
WHERE NOT EXISTS (SELECT 1 FROM holdfast_effect AS effect WHERE effect.task_id = task.id AND effect.epoch = task.epoch AND effect.name = r.effect)

-- name: effects_behind
-- purpose: a page of what a task has remembered in its present epoch, oldest first
SELECT effect.name, effect.value, effect.attempt, effect.recorded_at
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
WHERE effect.task_id = :task_id
  AND effect.epoch = task.epoch
  AND (effect.attempt, effect.recorded_at, effect.name) > (:attempt, :recorded_at, :name)
ORDER BY effect.attempt, effect.recorded_at, effect.name
LIMIT :count

-- name: effect_named
-- purpose: what a task has remembered under a name in its present epoch
SELECT effect.name, effect.value, effect.attempt, effect.recorded_at
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
WHERE effect.task_id = :task_id
  AND effect.epoch = task.epoch
  AND effect.name = :name

-- name: effect_valued
-- purpose: whether a task has remembered a value in its present epoch, under whatever name
SELECT 1 AS found
FROM holdfast_effect AS effect JOIN holdfast_task AS task ON task.id = effect.task_id
WHERE effect.task_id = :task_id
  AND effect.epoch = task.epoch
  AND effect.value = :value
LIMIT 1

-- name: suspend_tasks
-- purpose: running → queued until a time comes or what is awaited happens; it costs neither budget
-- guards: running under this fence
-- rows: task_id text, fence integer, until integer, awaited text
-- changes: task
-- event: 'task.suspended'
-- data: '{"scheduled_for":' || COALESCE(CAST(scheduled_for AS text), 'null') || ',"waits_for":'
--   || COALESCE('"' || waits_for || '"', 'null') || COALESCE(',"usage":' || usage, '')
--   || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END || '}'
-- returning: concurrency_key, parent_id, waits_for
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
-- purpose: keep signals until somebody takes them; one with a key is kept once
-- guards: the run or lone task it is for has not ended; one key, one row
-- rows: signal_id text, aim text, signal text, given text, unique_key text, actor text
INSERT INTO holdfast_signal (id, target, name, payload, key, sent_by, sent_at)
SELECT r.signal_id, r.aim, r.signal, r.given, r.unique_key, r.actor, (SELECT holdfast_now())
FROM {rows} AS r
WHERE (EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = r.aim AND run.status = 'running')
    OR EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.id = r.aim AND task.run_id IS NULL AND task.status IN ('idle', 'queued', 'running')))
ON CONFLICT (target, name, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id

-- name: several_awaited
-- purpose: what is waited for by those who wait for several things, signals to these targets among
--   them; looked up for each target alone, or PostgreSQL might read all tasks
SELECT aim.value AS target, (SELECT string_agg(task.waits_for, ';') FROM holdfast_task AS task WHERE task.waits_for > aim.value || ' ,' AND task.waits_for < aim.value || ' -') AS texts
FROM {each targets} AS aim

-- name: signals_awaited
-- purpose: what is waited for by those who wait for signals to a run or task: for one of that name
--   alone, and the first of all, those for several things before the others
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
-- purpose: make tasks due that wait for a signal which is there
-- guards: waiting for it, and somebody has sent one that nobody has taken
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
-- purpose: make tasks due that wait for their children, once all of those have ended; COALESCE, or
--   PostgreSQL might begin with all that wait for anything
-- guards: waiting for them, alone or among others, and none is open
-- changes: task
-- event: 'task.woken'
-- data: '{"scheduled_for":null,"waits_for":null}'
-- returning: parent_id
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
-- purpose: hand the oldest signal of a name to a running attempt, once
-- guards: the attempt is running under this fence with a lease, and nobody has taken the signal
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
-- purpose: which attempts may still act, with what their children inherit
-- rows: task_id text, fence integer
SELECT task.id, task.run_id, task.epoch, COALESCE(run.holds, 0) AS run_holds
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  LEFT JOIN holdfast_run AS run ON run.id = task.run_id
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND task.lease_expires_at > (SELECT holdfast_now())

-- name: children_by_id
-- purpose: how the children of a task stand
SELECT id, status, output, error FROM holdfast_task
WHERE parent_id = :task_id
  AND id IN (SELECT value FROM {each ids})

-- name: supersede_children
-- purpose: what tasks made in an epoch that is over counts no more; what is open of it is cancelled
-- guards: made by one of them or below such a task, and not superseded before
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
-- purpose: what some tasks need that counts no more and is not done
SELECT needed.id FROM holdfast_task AS needed
WHERE needed.id IN (SELECT need.need_id FROM holdfast_need AS need WHERE need.task_id IN (SELECT value FROM {each ids}))
  AND needed.superseded
  AND needed.status <> 'done'

-- name: lost_needs
-- purpose: who counts and needs one of some tasks that count no more, and the nearest around that which
--   does; who has never run needs that from the beginning, and no plan that is reset forgets it
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
-- purpose: how the run or task stands that a signal is for
SELECT status, NULL AS run_id FROM holdfast_run WHERE id = :target
UNION ALL
SELECT status, run_id FROM holdfast_task WHERE id = :target

-- name: signal_by_key
-- purpose: what a signal says that was sent under a key
SELECT payload FROM holdfast_signal
WHERE target = :target
  AND name = :name
  AND key = :key
