-- name: enqueue_task
-- purpose: Queue a task (idle → queued)
-- guards: The task is idle, and neither a plan, which its children carry out, nor an item, which its
--   loop starts
-- changes: task
-- event: 'task.queued'
-- returning: kind, conditional, blocked
UPDATE holdfast_task SET
  status = 'queued',
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'idle'
  AND planning_phase = 'none'
  AND (kind <> 'group' OR item IS NULL)

-- name: end_sleeps
-- purpose: End the sleeps that a task waits for: they end now, for each later attempt too
-- guards: The task is queued and not due, waits for a time alone and not for an answer, and the sleep is
--   one of its present epoch that ends at that time
-- Names of sleeps are no names of effects, which get a prefix where they would begin so.
-- COALESCE keeps PostgreSQL from beginning with all scheduled tasks.
UPDATE holdfast_effect SET value = CAST((SELECT holdfast_now()) AS text)
WHERE task_id = :task_id
  AND (name = 'sleep' OR name LIKE 'sleep %')
  AND EXISTS (SELECT 1 FROM holdfast_task AS task WHERE task.id = holdfast_effect.task_id AND task.epoch = holdfast_effect.epoch AND task.status = 'queued' AND task.holds & 4 = 0 AND NOT COALESCE(task.due, false) AND task.waits_for IS NULL AND CAST(task.scheduled_for AS text) = holdfast_effect.value)
RETURNING name

-- name: run_now
-- purpose: Queue a task ahead of all others; order, schedule and hold paused are lifted
-- guards: The task is idle or queued, waits for no signal, child or answer, and is neither a plan nor
--   an item, which its loop starts
-- changes: task
-- event: 'task.run_now'
-- data: '{"run_now":true,"scheduled_for":' || COALESCE(CAST(scheduled_for AS text), 'null')
--   || ',"holds":' || holds || ',"run_holds":' || run_holds || '}'
-- returning: kind, conditional, blocked
UPDATE holdfast_task SET
  status = 'queued',
  run_now = true,
  due = due OR scheduled_for IS NOT NULL,
  scheduled_for = NULL,
  holds = holds & ~1, run_holds = run_holds & ~1,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued')
  AND waits_for IS NULL
  AND holds & 4 = 0
  AND planning_phase = 'none'
  AND (kind <> 'group' OR item IS NULL)

-- name: cancel_tasks
-- purpose: Cancel some tasks and every open task below them (any open status → cancelled)
-- guards: The task is open
-- changes: task
-- event: 'task.cancelled'
-- data: CASE WHEN previous = 'running' THEN '{"usage":' || usage || '}' END
-- returning: concurrency_key, parent_id, calls
UPDATE holdfast_task SET
  status = 'cancelled',
  lease_expires_at = NULL, finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE tree (id) AS (
      SELECT top.id FROM holdfast_task AS top
      WHERE top.id IN (SELECT value FROM {each ids})
        AND top.status IN ('idle', 'queued', 'running')
      UNION SELECT child.id FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
    SELECT id FROM tree)
  AND status IN ('idle', 'queued', 'running')

-- name: cancel_run
-- purpose: Cancel a run (running → cancelled)
-- guards: The run is running
-- changes: run
-- event: 'run.cancelled'
-- returning: concurrency_key, holds, parent_id
UPDATE holdfast_run SET
  status = 'cancelled', finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'

-- name: cancel_run_tasks
-- purpose: Cancel every open task of cancelled runs, in the transaction that cancels the runs
-- guards: The task is open
-- changes: task
-- event: 'task.cancelled'
-- data: CASE WHEN previous = 'running' THEN '{"usage":' || usage || '}' END
-- returning: concurrency_key, calls
UPDATE holdfast_task SET
  status = 'cancelled',
  lease_expires_at = NULL, finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE run_id IN (SELECT value FROM {each ids})
  AND status IN ('idle', 'queued', 'running')

-- name: reset_task
-- purpose: Reset a task as if it had never run (queued or ended → idle); a finalized plan is planned again
-- guards: The task is queued or ended and not superseded; the group around it is not done; and no task
--   outside it that needs it, or needs a part of its plan, has started, be it work, a loop, an item or
--   a call
-- changes: task
-- event: 'task.reset'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch
--   || ',"planning_phase":"' || planning_phase || '"'
--   || ',"failures":0,"lost":0,"round":0,"detours":0,"scheduled_for":null,"waits_for":null,"run_now":false,"skipped":false,"run_holds":'
--   || run_holds || ',"holds":' || holds || '}'
-- returning: kind, conditional, blocked, parent_id, planning_phase, calls
UPDATE holdfast_task SET
  status = 'idle',
  planning_phase = CASE WHEN planning_phase = 'finalized' THEN 'active' ELSE planning_phase END,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0, round = 0, detours = 0,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = COALESCE((SELECT run.holds FROM holdfast_run AS run WHERE run.id = run_id), 0),
  holds = holds & ~(CASE WHEN question IS NULL THEN 0 ELSE 4 END | CASE WHEN on_failure = 'ask' AND error IS NOT NULL THEN 2 ELSE 0 END),
  question = NULL,
  due = NOT conditional, scheduled_for = NULL, waits_for = NULL, run_now = false, parked = false, skipped = false,
  output = NULL, result_digest = NULL, error = NULL, progress = NULL, feedback = NULL,
  spent = spent + {cost holdfast_task}, usage = NULL,
  total = NULL, made = 0,
  started_at = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('queued', 'done', 'failed', 'cancelled')
  AND NOT superseded
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS parent WHERE parent.id = holdfast_task.parent_id AND parent.kind = 'group' AND parent.status = 'done')
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_task AS dependent
    WHERE dependent.id IN (
        SELECT need.task_id FROM holdfast_need AS need
        WHERE need.need_id IN (
            WITH RECURSIVE part (id, planning_phase) AS (
              SELECT named.id, named.planning_phase FROM holdfast_task AS named
              WHERE named.id = :task_id
              UNION SELECT child.id, child.planning_phase FROM holdfast_task AS child JOIN part ON child.parent_id = part.id
              WHERE part.planning_phase <> 'none'
                AND child.parent_epoch IS NULL)
            SELECT id FROM part))
      AND dependent.id NOT IN (
        WITH RECURSIVE below (id) AS (
          SELECT child.id FROM holdfast_task AS plan JOIN holdfast_task AS child ON child.parent_id = plan.id
          WHERE plan.id = :task_id
            AND plan.planning_phase <> 'none'
          UNION SELECT child.id FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
        SELECT id FROM below)
      AND NOT dependent.superseded
      AND (dependent.attempt > 0 OR dependent.status NOT IN ('idle', 'queued') OR (dependent.kind = 'group' AND dependent.status = 'queued' AND (dependent.total IS NOT NULL OR dependent.item IS NOT NULL OR dependent.waits_for IS NOT NULL))))

-- name: block_dependents
-- purpose: Block the tasks that need a task which is no longer done
-- guards: The task is idle or queued, and not blocked yet
-- changes: task
-- event: 'task.blocked'
-- data: '{"blocked":true}'
UPDATE holdfast_task SET
  blocked = true,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT task_id FROM holdfast_need WHERE need_id IN (SELECT value FROM {each ids}))
  AND NOT blocked
  AND status IN ('idle', 'queued')

-- name: retry_task
-- purpose: Retry every failed or cancelled task in the tree of a task without a run; budgets are renewed
-- guards: The task is failed or cancelled, and not superseded. A plan, and a task below an active plan,
--   becomes idle
-- changes: task
-- event: 'task.retried'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END
--   || ',"failures":0,"lost":0,"round":0,"scheduled_for":null,"waits_for":null,"run_now":false,"run_holds":0}'
-- returning: kind, conditional, blocked, parent_id, calls
UPDATE holdfast_task SET
  status = CASE WHEN planning_phase <> 'none' OR {planned holdfast_task} THEN 'idle' ELSE 'queued' END,
  generation = generation + 1, failures = 0, lost = 0, round = 0,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = 0, due = NOT conditional, scheduled_for = NULL, waits_for = NULL, run_now = false, parked = false,
  error = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE above (id, parent_id) AS (
      SELECT named.id, named.parent_id FROM holdfast_task AS named WHERE named.id = :task_id
      UNION SELECT parent.id, parent.parent_id FROM holdfast_task AS parent JOIN above ON parent.id = above.parent_id),
    tree (id) AS (
      SELECT above.id FROM above
      UNION SELECT child.id FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
    SELECT id FROM tree)
  AND status IN ('failed', 'cancelled')
  AND NOT superseded

-- name: lift_failing_below
-- purpose: Remove hold failing from the idle and queued tasks of a tree that is retried
-- guards: The task is in the tree of one of the given tasks, on hold failing, and idle or queued
-- changes: task
-- event: 'task.unheld'
-- data: '{"run_holds":' || run_holds || '}'
-- returning: kind, calls
UPDATE holdfast_task SET
  run_holds = run_holds & ~64,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE above (id, parent_id) AS (
      SELECT named.id, named.parent_id FROM holdfast_task AS named WHERE named.id IN (SELECT value FROM {each ids})
      UNION SELECT parent.id, parent.parent_id FROM holdfast_task AS parent JOIN above ON parent.id = above.parent_id),
    tree (id) AS (
      SELECT above.id FROM above
      UNION SELECT child.id FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
    SELECT id FROM tree)
  AND (run_holds & 64) <> 0
  AND status IN ('idle', 'queued')

-- name: retry_run_tasks
-- purpose: Retry every failed or cancelled task of a run (→ queued, or idle); budgets are renewed
-- guards: The task is failed or cancelled, and not superseded. A task that a step made and no task
--   needs is retried only when it is named, or when none of the tasks around it is done
-- changes: task
-- event: 'task.retried'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"round":0,"detours":0,"scheduled_for":null,"waits_for":null,"run_now":false,"run_holds":' || run_holds
--   || ',"holds":' || holds || '}'
-- returning: kind, conditional, blocked, parent_id
-- An item that had not begun goes to idle, for its loop. A call whose run completed, and a verifier
-- out of rounds, get a new epoch, so that the call starts a new run and the verifier judges again.
UPDATE holdfast_task SET
  status = CASE WHEN kind = 'group' AND item IS NOT NULL AND NOT {begun holdfast_task} THEN 'idle' ELSE 'queued' END,
  generation = generation + 1, failures = 0, lost = 0, round = 0, detours = 0,
  epoch = epoch + CASE WHEN (verifies IS NOT NULL AND round >= max_rounds) OR (calls IS NOT NULL AND EXISTS (
    SELECT 1 FROM holdfast_run AS run WHERE run.parent_id = holdfast_task.id AND run.parent_epoch = holdfast_task.epoch AND run.status = 'completed'))
    THEN 1 ELSE 0 END,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = (SELECT run.holds FROM holdfast_run AS run WHERE run.id = run_id),
  holds = CASE WHEN on_failure = 'ask' AND error IS NOT NULL THEN holds & ~2 ELSE holds END,
  due = NOT conditional, scheduled_for = NULL, waits_for = NULL, run_now = false, parked = false,
  error = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE run_id = :run_id
  AND status IN ('failed', 'cancelled')
  AND NOT superseded
  AND (NOT {spared holdfast_task} OR id = CAST(:named AS text) OR NOT EXISTS (
    WITH RECURSIVE maker (parent_id, status) AS (
      SELECT first.parent_id, first.status FROM holdfast_task AS first WHERE first.id = holdfast_task.parent_id
      UNION ALL SELECT task.parent_id, task.status FROM holdfast_task AS task JOIN maker ON task.id = maker.parent_id)
    SELECT 1 FROM maker WHERE maker.status = 'done'))

-- name: reopen_run
-- purpose: Reopen an ended run in a new generation, with a full time limit; with a key, on hold slot
-- guards: The run is in one of the ended statuses that the caller names
-- changes: run
-- event: 'run.reopened'
-- data: '{"holds":' || holds || COALESCE(',"deadline":' || deadline, '') || '}'
-- returning: concurrency_key
UPDATE holdfast_run SET
  status = 'running',
  generation = generation + 1, finished_at = NULL, error = NULL,
  deadline = (SELECT holdfast_now()) + time_limit,
  holds = (holds & ~64 & ~32 & ~256) | CASE WHEN concurrency_key IS NULL THEN 0 ELSE 32 END,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status IN (SELECT value FROM {each statuses})

-- name: lift_failing
-- purpose: Remove hold failing from a run that has no failed or cancelled task left
-- guards: The run is running and on hold failing, and has no failed or cancelled task; one that a step
--   made and no task needs does not count
-- changes: run
-- event: 'run.unheld'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_run SET
  holds = holds & ~64,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'
  AND (holds & 64) <> 0
  AND (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = holdfast_run.id AND task.status <> 'done' AND task.status IN ('failed', 'cancelled') AND NOT task.superseded AND NOT {spared task} LIMIT 1) IS NULL

-- name: reopen_tasks
-- purpose: Reopen tasks and all that transitively need them, in a new epoch (→ queued, or idle)
-- guards: The task is named and in a status that the caller names, or needs such a task or a reopened
--   group, transitively through tasks that are not superseded; it is not superseded and not the task
--   set apart. When a verifier ends the scope, only named tasks and tasks that the verifier needs count
-- changes: task
-- event: CASE WHEN previous = 'running' THEN 'task.superseded' ELSE 'task.reopened' END
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"round":0,"detours":' || detours || ',"scheduled_for":null,"waits_for":null,"run_now":false,"skipped":false,"run_holds":'
--   || run_holds || ',"holds":' || holds || CASE WHEN previous = 'running' THEN COALESCE(',"usage":' || usage, '') ELSE '' END || '}'
-- returning: concurrency_key, kind, conditional, blocked, parent_id, calls
-- An idle task stays idle. An item, a plan, and an ended task below an active plan become idle, because
-- the loop or the plan starts them. Questions and failure approvals are dropped; holds that a person
-- added stay. Detours start at zero only when a person reopens the tasks. The follow-up is for one task.
UPDATE holdfast_task SET
  status = CASE WHEN status = 'idle' OR planning_phase <> 'none' OR (kind = 'group' AND item IS NOT NULL)
      OR (status NOT IN ('queued', 'running') AND id NOT IN (SELECT value FROM {each ids}) AND {planned holdfast_task})
    THEN 'idle' ELSE 'queued' END,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0, round = 0,
  detours = CASE WHEN :renewed THEN 0 ELSE detours END,
  blocked = id NOT IN (SELECT value FROM {each ids}) OR EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = COALESCE((SELECT run.holds FROM holdfast_run AS run WHERE run.id = run_id), 0),
  holds = holds & ~(CASE WHEN question IS NULL THEN 0 ELSE 4 END | CASE WHEN on_failure = 'ask' AND error IS NOT NULL THEN 2 ELSE 0 END),
  question = NULL,
  due = NOT conditional, scheduled_for = NULL, waits_for = NULL, run_now = false, parked = false, skipped = false,
  output = NULL, result_digest = NULL, error = NULL, progress = NULL,
  total = NULL, made = 0, feedback = COALESCE(CAST(:feedback AS text),
    CASE WHEN id = CAST(:told AS text) THEN CAST(:follow_up AS text) END),
  lease_expires_at = NULL, started_at = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE reached (id) AS (
      SELECT named.id FROM holdfast_task AS named
      WHERE named.id IN (SELECT value FROM {each ids})
        AND named.status IN (SELECT value FROM {each statuses})
      UNION SELECT need.task_id FROM holdfast_need AS need
      WHERE need.need_id IN (SELECT value FROM {each beyond})
      UNION SELECT need.task_id FROM reached JOIN holdfast_task AS needed ON needed.id = reached.id
        JOIN holdfast_need AS need ON need.need_id = needed.id
      WHERE NOT needed.superseded)
    SELECT id FROM reached)
  AND NOT superseded
  AND id <> COALESCE(CAST(:apart AS text), '')
  AND (CAST(:until AS text) IS NULL OR id IN (SELECT value FROM {each ids}) OR id IN (
    WITH RECURSIVE before (id) AS (
      SELECT need.need_id FROM holdfast_need AS need WHERE need.task_id = CAST(:until AS text)
      UNION SELECT need.need_id FROM holdfast_need AS need JOIN before ON need.task_id = before.id)
    SELECT id FROM before))

-- name: hold_task
-- purpose: Add a hold to a task; its status stays
-- guards: The task is open, and does not have that hold until that time yet
-- changes: task
-- event: 'task.held'
-- data: '{"holds":' || holds || COALESCE(',"detail":' || CAST(:detail AS text), '') || '}'
UPDATE holdfast_task SET
  holds = holds | :reason,
  held_until = COALESCE(CAST(:until AS bigint), held_until),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued', 'running')
  AND ((holds & :reason) = 0 OR COALESCE(held_until, 0) <> COALESCE(CAST(:until AS bigint), held_until, 0))

-- name: unhold_task
-- purpose: Remove a hold from a task
-- guards: The task is open and has that hold
-- changes: task
-- event: 'task.unheld'
-- data: '{"holds":' || holds || ',"lifted":' || CAST(:reason AS text) || '}'
-- returning: kind, conditional, blocked, parent_id, calls
UPDATE holdfast_task SET
  holds = holds & ~:reason,
  held_until = CASE WHEN :reason = 16 THEN NULL ELSE held_until END,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued', 'running')
  AND (holds & :reason) <> 0

-- name: limit_task
-- purpose: Add hold limit to a task that has met the usage limit of its agent, until the limit ends
-- guards: The task is queued, and not on hold limit for that long already
-- changes: task
-- event: 'task.held'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_task SET
  holds = holds | 16,
  held_until = :until,
  version = version + 1, previous = status,
  changed_by = 'worker', changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'queued'
  AND ((holds & 16) = 0 OR held_until < :until)

-- name: lift_limits
-- purpose: Remove hold limit from tasks whose usage limit has ended
-- guards: The task is open and on hold limit, and its held_until has passed
-- changes: task
-- event: 'task.unheld'
-- data: '{"holds":' || holds || '}'
-- returning: calls
UPDATE holdfast_task SET
  holds = holds & ~16,
  held_until = NULL,
  version = version + 1, previous = status,
  changed_by = 'recovery', changed_at = (SELECT holdfast_now())
WHERE id IN (
  SELECT id FROM holdfast_task
  WHERE held_until <= (SELECT holdfast_now())
    AND status IN ('idle', 'queued', 'running')
    AND (holds & 16) <> 0
  ORDER BY held_until LIMIT :count {skip_locked})

-- name: hold_run
-- purpose: Add a hold to a run and every run called below it; the status stays
-- guards: The run is running and does not have that hold yet
-- changes: run
-- event: 'run.held'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_run SET
  holds = holds | :reason,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT named.id FROM holdfast_run AS named
      WHERE named.id = :run_id
      UNION SELECT run.id FROM below CROSS JOIN holdfast_run AS run
      WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
    SELECT id FROM below)
  AND status = 'running'
  AND (holds & :reason) = 0

-- name: unhold_run
-- purpose: Remove a hold from a run and every run called below it
-- guards: The run is running and has that hold
-- changes: run
-- event: 'run.unheld'
-- data: '{"holds":' || holds || '}'
UPDATE holdfast_run SET
  holds = holds & ~:reason,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT named.id FROM holdfast_run AS named
      WHERE named.id = :run_id
      UNION SELECT run.id FROM below CROSS JOIN holdfast_run AS run
      WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
    SELECT id FROM below)
  AND status = 'running'
  AND (holds & :reason) <> 0

-- name: begin_run
-- purpose: Remove hold scheduled from a run, whose deadline counts from now; with a concurrency key it waits for its slot
-- guards: The run is running and on hold scheduled
-- changes: run
-- event: 'run.unheld'
-- data: '{"holds":' || holds || COALESCE(',"deadline":' || deadline, '') || '}'
-- returning: concurrency_key
-- COALESCE keeps PostgreSQL from beginning with all scheduled runs.
UPDATE holdfast_run SET
  holds = (holds & ~256) | CASE WHEN concurrency_key IS NULL THEN 0 ELSE 32 END,
  deadline = (SELECT holdfast_now()) + time_limit,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'
  AND (COALESCE(holds, 0) & 256) <> 0

-- name: runs_to_begin
-- purpose: List runs on hold scheduled whose time has come, the earliest first
SELECT id FROM holdfast_run
WHERE (holds & 256) <> 0
  AND status = 'running'
  AND scheduled_for <= (SELECT holdfast_now())
ORDER BY scheduled_for LIMIT :count

-- name: block_task
-- purpose: Block a task by new needs that are not done
-- guards: The task is idle or queued, and neither a queued item nor a call that waits for its run. A
--   queued loop can be blocked: its idle items wait
-- changes: task
-- event: 'task.blocked'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || COALESCE(',"linked":' || CAST(:linked AS text), '') || '}'
UPDATE holdfast_task SET
  blocked = blocked OR EXISTS (
    SELECT 1 FROM holdfast_task AS needed
    WHERE needed.id IN (SELECT value FROM {each ids}) AND needed.status <> 'done'),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued')
  AND NOT (kind = 'group' AND status = 'queued' AND (item IS NOT NULL OR waits_for IS NOT NULL))

-- name: unblock_task
-- purpose: Unblock a task whose needs on some tasks are removed, unless another need is not done
-- guards: The task is idle or queued
-- changes: task
-- event: 'task.unblocked'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || '}'
-- returning: kind, conditional, blocked, parent_id, waits_for
UPDATE holdfast_task SET
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'
      AND need.need_id NOT IN (SELECT value FROM {each ids})),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued')

-- name: delete_needs
-- purpose: Delete the needs of a task on some tasks
-- guards: The need is one of the given pairs
DELETE FROM holdfast_need
WHERE task_id = :task_id
  AND need_id IN (SELECT value FROM {each ids})

-- name: edit_task
-- purpose: Edit a task for its next attempt: title, agent, payload, priority, position, tags, budgets, time
-- guards: The task is idle or queued, its version is the one that the caller saw, and the new budgets
--   are not spent yet; a task that waits for its condition gets no time
-- changes: task
-- event: 'task.edited'
-- data: '{"priority":' || priority || ',"position":' || position || ',"scheduled_for":'
--   || COALESCE(CAST(scheduled_for AS text), 'null') || '}'
-- returning: kind
UPDATE holdfast_task SET
  title = COALESCE(CAST(:title AS text), title),
  agent = COALESCE(CAST(:agent AS text), agent),
  payload = COALESCE(CAST(:payload AS text), payload),
  priority = COALESCE(CAST(:priority AS integer), priority),
  position = COALESCE(CAST(:position AS bigint), position),
  tags = COALESCE(CAST(:tags AS text), tags),
  max_attempts = COALESCE(CAST(:max_attempts AS integer), max_attempts),
  max_lost = COALESCE(CAST(:max_lost AS integer), max_lost),
  timeout = COALESCE(CAST(:timeout AS bigint), timeout),
  due = CASE WHEN CAST(:reschedule AS boolean) THEN CAST(:scheduled_for AS bigint) IS NULL ELSE due END,
  scheduled_for = CASE WHEN CAST(:reschedule AS boolean) THEN CAST(:scheduled_for AS bigint) ELSE scheduled_for END,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued')
  AND version = COALESCE(CAST(:expected_version AS integer), version)
  AND failures < COALESCE(CAST(:max_attempts AS integer), max_attempts)
  AND lost < COALESCE(CAST(:max_lost AS integer), max_lost)
  AND (NOT CAST(:reschedule AS boolean) OR NOT conditional OR due OR scheduled_for IS NOT NULL OR waits_for IS NOT NULL)

-- name: delete_task
-- purpose: Delete a task that no run holds and no other task needs
-- guards: The task is not running, has called no run that goes on, and has no run, no dependents and no
--   children, and no open task that made it in its present epoch will read its output
-- changes: task
-- event: 'task.deleted'
-- from: status
-- to: CAST(NULL AS text)
-- version: version + 1
-- actor: CAST(:actor AS text)
-- returning: parent_id
DELETE FROM holdfast_task
WHERE id = :task_id
  AND status <> 'running'
  AND run_id IS NULL
  AND NOT (status = 'queued' AND calls IS NOT NULL AND waits_for IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM holdfast_need AS need WHERE need.need_id = holdfast_task.id)
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id)
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS maker WHERE maker.id = holdfast_task.parent_id AND maker.epoch = holdfast_task.parent_epoch AND maker.status IN ('idle', 'queued', 'running'))

-- name: kept_for
-- purpose: List the tasks that keep a task from deletion: its dependents, children and its open maker
SELECT id, title, made FROM (
  SELECT needing.id, needing.title, false AS made
  FROM holdfast_need AS need JOIN holdfast_task AS needing ON needing.id = need.task_id
  WHERE need.need_id = :task_id
  UNION SELECT child.id, child.title, false FROM holdfast_task AS child WHERE child.parent_id = :task_id
  UNION SELECT maker.id, maker.title, true
  FROM holdfast_task AS made JOIN holdfast_task AS maker ON maker.id = made.parent_id
  WHERE made.id = :task_id
    AND maker.epoch = made.parent_epoch
    AND maker.status IN ('idle', 'queued', 'running')) AS keeping
ORDER BY id LIMIT :count

-- name: changes_since
-- purpose: Find the first change of a run or task since a version, conflicts aside
SELECT version FROM holdfast_event
WHERE entity = :entity
  AND version > :seen
  AND type <> 'run.conflict'
ORDER BY version LIMIT 1

-- name: tell_conflict
-- purpose: Record in a run a command that was refused because of its expected version
-- guards: The run is running
-- changes: run
-- event: 'run.conflict'
-- data: CAST(:told AS text)
UPDATE holdfast_run SET
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :run_id
  AND status = 'running'

-- name: count_conflicts
-- purpose: Count the commands that were refused because of their expected version
SELECT count(*) AS conflicts FROM holdfast_event WHERE type = 'run.conflict'
