-- name: start_planning
-- purpose: Start to plan a task: its children carry it out, and stay idle until the plan is finalized
-- guards: The task is idle, has no run, calls no workflow and is not being planned; a finalized plan has
--   nothing queued or running below it
-- changes: task
-- event: 'task.planning'
-- data: '{"planning_phase":"active"}'
-- returning: kind
UPDATE holdfast_task SET
  planning_phase = 'active', kind = 'group',
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'idle'
  AND run_id IS NULL
  AND calls IS NULL
  AND planning_phase <> 'active'
  AND NOT EXISTS (
    WITH RECURSIVE below (id, status) AS (
      SELECT child.id, child.status FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id
      UNION ALL SELECT child.id, child.status FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT 1 FROM below WHERE below.status IN ('queued', 'running'))

-- name: finalize_plan
-- purpose: Finalize the plan of a task
-- guards: The plan is idle and active, and has an idle child
-- changes: task
-- event: 'task.planned'
-- data: '{"planning_phase":"finalized"' || COALESCE(',"shape":"' || CAST(:shape AS text) || '"', '') || '}'
-- returning: kind
UPDATE holdfast_task SET
  planning_phase = 'finalized',
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'idle'
  AND planning_phase = 'active'
  AND EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status = 'idle')

-- name: last_planned
-- purpose: Read the event data of the last finalization of a plan
SELECT data FROM holdfast_event
WHERE entity = :task_id
  AND type = 'task.planned'
ORDER BY version DESC LIMIT 1

-- name: plan_children
-- purpose: List the children of a plan in its order, superseded ones aside
SELECT id, status, version FROM holdfast_task
WHERE parent_id = :task_id
  AND NOT superseded
ORDER BY position, id

-- name: needs_among
-- purpose: List the needs of some tasks on each other
-- IS TRUE keeps an older PostgreSQL from looking up every pair.
SELECT task_id, need_id FROM holdfast_need
WHERE task_id IN (SELECT value FROM {each ids})
  AND (need_id IN (SELECT value FROM {each ids})) IS TRUE

-- name: needs_behind
-- purpose: List the needs of some tasks that are not done, and transitively the needs behind these
WITH RECURSIVE behind (id) AS (
  SELECT named.id FROM holdfast_task AS named WHERE named.id IN (SELECT value FROM {each ids})
  UNION SELECT need.need_id FROM behind JOIN holdfast_need AS need ON need.task_id = behind.id
  JOIN holdfast_task AS needed ON needed.id = need.need_id AND needed.status <> 'done')
SELECT need.task_id, need.need_id
FROM behind CROSS JOIN holdfast_need AS need CROSS JOIN holdfast_task AS needed
WHERE need.task_id = behind.id
  AND needed.id = need.need_id
  AND needed.status <> 'done'
ORDER BY need.task_id, need.need_id

-- name: reorder_children
-- purpose: Set the positions of the children of a plan
-- guards: The child is idle, belongs to this plan, which is active, and its position changes
-- rows: child text, place integer
-- changes: task
-- event: 'task.edited'
-- data: '{"priority":' || priority || ',"position":' || position || ',"scheduled_for":'
--   || COALESCE(CAST(scheduled_for AS text), 'null') || '}'
-- returning: kind
UPDATE holdfast_task SET
  position = r.place,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.child
  AND parent_id = :task_id
  AND status = 'idle'
  AND position <> r.place
  AND EXISTS (SELECT 1 FROM holdfast_task AS plan WHERE plan.id = holdfast_task.parent_id AND plan.planning_phase = 'active')

-- name: reset_below
-- purpose: Reset all tasks below a plan that was reset (queued or ended → idle); inner plans are active again
-- guards: The task is below the plan through plans, not superseded, and queued, ended or a finalized
--   plan
-- changes: task
-- event: 'task.reset'
-- data: '{"epoch":' || epoch || ',"planning_phase":"' || planning_phase || '"'
--   || ',"failures":0,"lost":0,"round":0,"scheduled_for":null,"waits_for":null,"run_now":false,"skipped":false,"run_holds":0}'
-- returning: kind, calls
UPDATE holdfast_task SET
  status = 'idle',
  planning_phase = CASE WHEN planning_phase = 'finalized' THEN 'active' ELSE planning_phase END,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0, round = 0,
  run_holds = 0, due = true, scheduled_for = NULL, waits_for = NULL, run_now = false, skipped = false,
  output = NULL, result_digest = NULL, error = NULL, progress = NULL,
  spent = spent + {cost holdfast_task}, usage = NULL,
  started_at = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE parent_id IN (
    WITH RECURSIVE plan (id) AS (
      SELECT named.id FROM holdfast_task AS named
      WHERE named.id = :task_id
      UNION SELECT child.id FROM holdfast_task AS child JOIN plan ON child.parent_id = plan.id
      WHERE child.planning_phase <> 'none')
    SELECT id FROM plan)
  AND NOT superseded
  AND (status IN ('queued', 'done', 'failed', 'cancelled') OR planning_phase = 'finalized')

-- name: forget_order
-- purpose: Delete the needs among the parts of a plan that was reset, because its next order may differ
-- guards: The need is of an idle task below the plan, on a part of a plan that is active, and was not
--   given at creation
-- IS TRUE keeps an older PostgreSQL from looking up every pair.
DELETE FROM holdfast_need
WHERE since > 1
  AND task_id IN (
    WITH RECURSIVE below (id, status) AS (
      SELECT child.id, child.status FROM holdfast_task AS child WHERE child.parent_id = :task_id
      UNION SELECT child.id, child.status FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT id FROM below WHERE status = 'idle')
  AND (need_id IN (
    WITH RECURSIVE part (id, planning_phase) AS (
      SELECT child.id, child.planning_phase FROM holdfast_task AS child
      WHERE child.parent_id = :task_id
      UNION SELECT child.id, child.planning_phase FROM holdfast_task AS child JOIN part ON child.parent_id = part.id
      WHERE part.planning_phase = 'active')
    SELECT id FROM part)) IS TRUE

-- name: unblock_children
-- purpose: Unblock the idle tasks below a plan that have no unfinished need left
-- guards: The task is below the plan, idle and blocked, and all its needs are done
-- changes: task
-- event: 'task.unblocked'
-- data: '{"blocked":false}'
-- returning: kind
UPDATE holdfast_task SET
  blocked = false,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = :task_id
      UNION SELECT child.id FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT id FROM below)
  AND status = 'idle'
  AND blocked
  AND NOT EXISTS (SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id WHERE need.task_id = holdfast_task.id AND needed.status <> 'done')

-- name: queue_children
-- purpose: Queue the children of a finalized plan and of the finalized plans inside (idle → queued)
-- guards: The child is idle and no plan itself, and neither the named plan nor a plan around it is active
-- changes: task
-- event: 'task.queued'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || '}'
-- returning: kind, calls
-- Each child is blocked until its needs are done, and takes the agent of its plan unless it has one.
UPDATE holdfast_task SET
  status = 'queued',
  agent = CASE WHEN agent = 'default' THEN (SELECT plan.agent FROM holdfast_task AS plan WHERE plan.id = holdfast_task.parent_id) ELSE agent END,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE parent_id IN (
    WITH RECURSIVE around (id, parent_id, planning_phase) AS (
      SELECT named.id, named.parent_id, named.planning_phase FROM holdfast_task AS named
      WHERE named.id = :task_id
      UNION SELECT plan.id, plan.parent_id, plan.planning_phase FROM holdfast_task AS plan JOIN around ON plan.id = around.parent_id
      WHERE plan.planning_phase <> 'none'),
    finalized (id) AS (
      SELECT named.id FROM holdfast_task AS named
      WHERE named.id = :task_id
        AND NOT EXISTS (SELECT 1 FROM around WHERE around.planning_phase = 'active')
      UNION SELECT child.id FROM holdfast_task AS child JOIN finalized ON child.parent_id = finalized.id
      WHERE child.planning_phase = 'finalized')
    SELECT id FROM finalized)
  AND status = 'idle'
  AND (kind = 'work' OR calls IS NOT NULL)

-- name: inherit_needs
-- purpose: Copy the needs of plans to the idle and queued tasks below, through the finalized plans inside
-- guards: The task is below a plan, idle or queued, and not the need itself; the pair is not stored yet
INSERT INTO holdfast_need (task_id, need_id, since)
WITH RECURSIVE plan (id, passes_on) AS (
    SELECT named.id, true FROM holdfast_task AS named
    WHERE named.id IN (SELECT value FROM {each ids})
    UNION SELECT child.id, child.planning_phase = 'finalized'
    FROM plan JOIN holdfast_task AS child ON child.parent_id = plan.id AND plan.passes_on),
  inherited (id, need_id, status, version, passes_on) AS (
    SELECT child.id, need.need_id, child.status, child.version, child.planning_phase = 'finalized'
    FROM plan CROSS JOIN holdfast_need AS need
      JOIN holdfast_task AS child ON child.parent_id = plan.id AND need.task_id = plan.id AND plan.passes_on
    UNION SELECT child.id, inherited.need_id, child.status, child.version, child.planning_phase = 'finalized'
    FROM inherited JOIN holdfast_task AS child ON child.parent_id = inherited.id
    WHERE inherited.passes_on)
SELECT inherited.id, inherited.need_id, inherited.version + 1 FROM inherited
WHERE inherited.status IN ('idle', 'queued')
  AND inherited.id <> inherited.need_id
ON CONFLICT (task_id, need_id) DO NOTHING

-- name: block_children
-- purpose: Block the tasks below plans that have new needs which are not done
-- guards: The task is one of the plans or below one, idle or queued, not blocked yet, and has a need
--   that is not done
-- changes: task
-- event: 'task.blocked'
-- data: '{"blocked":true}'
-- returning: kind
UPDATE holdfast_task SET
  blocked = true,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT named.id FROM holdfast_task AS named WHERE named.id IN (SELECT value FROM {each ids})
      UNION SELECT child.id FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT id FROM below)
  AND status IN ('idle', 'queued')
  AND NOT blocked
  AND EXISTS (SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id WHERE need.task_id = holdfast_task.id AND needed.status <> 'done')

-- name: ended_parts
-- purpose: List the ended parts of a plan and of the finalized plans inside, superseded ones aside
SELECT id FROM holdfast_task
WHERE parent_id IN (
    WITH RECURSIVE plan (id) AS (
      SELECT named.id FROM holdfast_task AS named
      WHERE named.id = :task_id
      UNION SELECT child.id FROM holdfast_task AS child JOIN plan ON child.parent_id = plan.id
      WHERE child.planning_phase = 'finalized')
    SELECT id FROM plan)
  AND status IN ('done', 'failed', 'cancelled')
  AND NOT superseded
ORDER BY id

-- name: parts_among
-- purpose: Filter some tasks down to those below a task
WITH RECURSIVE around (part_id, parent_id) AS (
  SELECT part.id, part.parent_id FROM holdfast_task AS part WHERE part.id IN (SELECT value FROM {each ids})
  UNION SELECT around.part_id, parent.parent_id
  FROM holdfast_task AS parent JOIN around ON parent.id = around.parent_id)
SELECT part_id FROM around WHERE parent_id = :task_id ORDER BY part_id

-- name: rerun_parts
-- purpose: Reopen parts of a plan that runs again (done, failed or cancelled → queued, or idle)
-- guards: The task has ended and is not superseded
-- changes: task
-- event: 'task.reopened'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"round":0,"scheduled_for":null,"waits_for":null,"run_now":false,"run_holds":0}'
-- returning: kind, calls
-- A part that is a plan itself becomes idle, and so does every part while a plan around it is active.
UPDATE holdfast_task SET
  status = CASE WHEN planning_phase <> 'none' OR {planned holdfast_task} THEN 'idle' ELSE 'queued' END,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0, round = 0,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = 0, due = true, scheduled_for = NULL, waits_for = NULL, run_now = false,
  output = NULL, result_digest = NULL, error = NULL, progress = NULL,
  started_at = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status IN ('done', 'failed', 'cancelled')
  AND NOT superseded

-- name: rerun_plan
-- purpose: Reopen a finalized plan that runs again (done, failed or cancelled → idle)
-- guards: The plan is finalized and has ended
-- changes: task
-- event: 'task.reopened'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch || ',"run_holds":0}'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = 'idle',
  generation = generation + 1, epoch = epoch + 1,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = 0, output = NULL, error = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND planning_phase = 'finalized'
  AND status IN ('done', 'failed', 'cancelled')

-- name: plans_around
-- purpose: List the finalized plans among some tasks and around these
WITH RECURSIVE around (id, parent_id, planning_phase) AS (
  SELECT task.id, task.parent_id, task.planning_phase FROM holdfast_task AS task
  WHERE task.id IN (SELECT value FROM {each ids})
    AND task.run_id IS NULL
  UNION SELECT task.id, task.parent_id, task.planning_phase
  FROM holdfast_task AS task JOIN around ON task.id = around.parent_id)
SELECT id FROM around WHERE planning_phase = 'finalized' ORDER BY id

-- name: open_plans_around
-- purpose: List the active plans around a task, the nearest first
WITH RECURSIVE around (id, parent_id, title, planning_phase, depth) AS (
  SELECT named.id, named.parent_id, named.title, named.planning_phase, 0 FROM holdfast_task AS named WHERE named.id = :task_id
  UNION ALL
  SELECT plan.id, plan.parent_id, plan.title, plan.planning_phase, around.depth + 1
  FROM holdfast_task AS plan JOIN around ON plan.id = around.parent_id
  WHERE plan.planning_phase <> 'none')
SELECT id, title FROM around WHERE planning_phase = 'active' AND depth > 0 ORDER BY depth

-- name: failed_in_tree
-- purpose: List the parents of the failed and cancelled tasks in a task's tree, whose plans may fail again
WITH RECURSIVE above (id, parent_id) AS (
    SELECT named.id, named.parent_id FROM holdfast_task AS named WHERE named.id = :task_id
    UNION SELECT parent.id, parent.parent_id FROM holdfast_task AS parent JOIN above ON parent.id = above.parent_id),
  tree (id, parent_id, status, superseded) AS (
    SELECT top.id, top.parent_id, top.status, top.superseded FROM holdfast_task AS top JOIN above ON above.id = top.id
    UNION SELECT child.id, child.parent_id, child.status, child.superseded
    FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
SELECT DISTINCT parent_id FROM tree
WHERE status IN ('failed', 'cancelled')
  AND parent_id IS NOT NULL
  AND NOT superseded

-- name: hold_plans
-- purpose: Add hold failing to all idle and queued tasks below the topmost plan around a failed part
-- guards: The task is idle or queued, not on hold failing yet, and below a finalized plan with a failed
--   or cancelled child or below a plan around that one
-- changes: task
-- event: 'task.held'
-- data: '{"run_holds":' || run_holds || '}'
-- returning: kind
UPDATE holdfast_task SET
  run_holds = run_holds | 64,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE failing (id, parent_id, finalized) AS (
      SELECT plan.id, plan.parent_id, true FROM holdfast_task AS plan
      WHERE plan.id IN (SELECT value FROM {each ids})
        AND plan.planning_phase = 'finalized'
        AND (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = plan.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded LIMIT 1) IS NOT NULL
      UNION SELECT plan.id, plan.parent_id, plan.planning_phase = 'finalized'
      FROM holdfast_task AS plan JOIN failing ON plan.id = failing.parent_id
      WHERE failing.finalized),
    below (id) AS (
      SELECT child.id FROM holdfast_task AS child JOIN failing ON child.parent_id = failing.id
      WHERE failing.finalized
      UNION SELECT child.id FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT id FROM below)
  AND status IN ('idle', 'queued')
  AND (run_holds & 64) = 0

-- name: settle_plans
-- purpose: Finish or fail plans below which no task can move (idle → done or failed)
-- guards: The plan is finalized and idle, and every child has ended, or one is failed or cancelled and
--   no task below is running or waits for the run that it has called
-- changes: task
-- event: 'task.' || status
-- returning: kind, parent_id
-- The output is the list of the children's outputs in plan order, unless an older store recorded another.
UPDATE holdfast_task SET
  status = CASE WHEN EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded) THEN 'failed' ELSE 'done' END,
  error = COALESCE(CAST(:error AS text), (
    SELECT COALESCE(child.error, '"cancelled"') FROM holdfast_task AS child
    WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded
    ORDER BY child.id LIMIT 1)),
  output = CASE WHEN EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded) THEN NULL ELSE COALESCE(CAST(:output AS text), (
    SELECT '[' || COALESCE(string_agg(COALESCE(child.output, 'null'), ',' ORDER BY child.position, child.id), '') || ']'
    FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND NOT child.superseded)) END,
  finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'idle'
  AND planning_phase = 'finalized'
  AND CASE WHEN (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded LIMIT 1) IS NOT NULL
    THEN NOT EXISTS (
      WITH RECURSIVE below (id, status, called) AS (
        SELECT child.id, child.status, child.calls IS NOT NULL AND child.waits_for IS NOT NULL FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id
        UNION ALL SELECT child.id, child.status, child.calls IS NOT NULL AND child.waits_for IS NOT NULL FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
      SELECT 1 FROM below WHERE below.status = 'running' OR (below.called AND below.status = 'queued'))
    ELSE (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('idle', 'queued', 'running') LIMIT 1) IS NULL END
