-- name: start_planning
-- purpose: begin to plan a task: it is worked on by its children, who are idle until it is finalized
-- guards: idle, part of no run, and not being planned; a finalized plan only once nothing of it moves
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
  AND planning_phase <> 'active'
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('queued', 'running'))

-- name: finalize_plan
-- purpose: end the planning of a task
-- guards: idle, being planned, and there is something to do
-- changes: task
-- event: 'task.planned'
-- data: '{"planning_phase":"finalized"}'
-- returning: agent
UPDATE holdfast_task SET
  planning_phase = 'finalized',
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'idle'
  AND planning_phase = 'active'
  AND EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status = 'idle')

-- name: plan_children
-- purpose: the children of a plan that have not begun, in the order of the plan
SELECT id, version FROM holdfast_task
WHERE parent_id = :task_id
  AND status = 'idle'
ORDER BY position, id

-- name: queue_children
-- purpose: idle → queued for the children of a plan, each blocked until it has all it needs
-- guards: idle children of this plan that are not being planned themselves
-- changes: task
-- event: 'task.queued'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || '}'
-- returning: kind
UPDATE holdfast_task SET
  status = 'queued',
  agent = CASE WHEN agent = 'default' THEN :agent ELSE agent END,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE parent_id = :task_id
  AND status = 'idle'
  AND kind = 'work'

-- name: rerun_children
-- purpose: done, failed or cancelled → queued for the children of a plan that runs again; a child
--   that is a plan itself is idle
-- guards: ended children of this plan that count
-- changes: task
-- event: 'task.reopened'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"round":0,"scheduled_for":null,"waits_for":null,"run_now":false,"run_holds":0}'
-- returning: planning_phase
UPDATE holdfast_task SET
  status = CASE WHEN planning_phase = 'none' THEN 'queued' ELSE 'idle' END,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0, round = 0,
  blocked = EXISTS (
    SELECT 1 FROM holdfast_need AS need WHERE need.task_id = holdfast_task.id),
  run_holds = 0, due = true, scheduled_for = NULL, waits_for = NULL, run_now = false,
  output = NULL, result_digest = NULL, error = NULL, progress = NULL,
  started_at = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE parent_id = :task_id
  AND status IN ('done', 'failed', 'cancelled')
  AND NOT superseded

-- name: rerun_plan
-- purpose: done, failed or cancelled → idle for a plan that runs again; it keeps its planning
-- guards: finalized, and nothing of it moves
-- changes: task
-- event: 'task.reopened'
-- data: '{"epoch":' || epoch || ',"run_holds":0}'
-- returning: kind
UPDATE holdfast_task SET
  status = 'idle',
  generation = generation + 1, epoch = epoch + 1,
  run_holds = 0, output = NULL, error = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND planning_phase = 'finalized'
  AND status IN ('done', 'failed', 'cancelled')

-- name: hold_plans
-- purpose: hold failing on whatever of a plan has not begun, because a part of it has failed
-- guards: below a plan with a failed or cancelled child, not begun, and not held for that yet
-- changes: task
-- event: 'task.held'
-- data: '{"run_holds":' || run_holds || '}'
-- returning: kind
UPDATE holdfast_task SET
  run_holds = run_holds | 64,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE parent_id IN (SELECT value FROM {each ids})
  AND status IN ('idle', 'queued')
  AND (run_holds & 64) = 0
  AND EXISTS (SELECT 1 FROM holdfast_task AS plan WHERE plan.id = holdfast_task.parent_id AND plan.planning_phase = 'finalized')
  AND EXISTS (SELECT 1 FROM holdfast_task AS sibling WHERE sibling.parent_id = holdfast_task.parent_id AND sibling.status IN ('failed', 'cancelled') AND NOT sibling.superseded)

-- name: settle_plans
-- purpose: idle → done or failed for plans of which no child can move
-- guards: finalized, and every child has ended, or one has ended badly and none is running
-- changes: task
-- event: 'task.' || status
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = CASE WHEN EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded) THEN 'failed' ELSE 'done' END,
  error = (
    SELECT COALESCE(child.error, '"cancelled"') FROM holdfast_task AS child
    WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded
    ORDER BY child.id LIMIT 1),
  finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'idle'
  AND planning_phase = 'finalized'
  AND NOT EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status = 'running')
  AND (EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded)
    OR NOT EXISTS (SELECT 1 FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('idle', 'queued')))
