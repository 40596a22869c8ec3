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
  AND NOT EXISTS (
    WITH RECURSIVE below (id, status) AS (
      SELECT child.id, child.status FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id
      UNION ALL SELECT child.id, child.status FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT 1 FROM below WHERE below.status IN ('queued', 'running'))

-- name: finalize_plan
-- purpose: end the planning of a task
-- guards: idle, being planned, and there is something to do
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
-- purpose: what was said of a plan when it was finalized last
SELECT data FROM holdfast_event
WHERE entity = :task_id
  AND type = 'task.planned'
ORDER BY version DESC LIMIT 1

-- name: plan_children
-- purpose: the children of a plan that count, in the order of the plan
SELECT id, status, version FROM holdfast_task
WHERE parent_id = :task_id
  AND NOT superseded
ORDER BY position, id

-- name: needs_behind
-- purpose: what some tasks wait for already, and what that waits for, as far as it leads
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
-- purpose: give the children of a plan their places
-- guards: idle children of this plan, while it is being planned, whose place changes
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
-- purpose: queued or ended → idle for all below a plan that was reset; the plans inside it are being
--   planned again, as it is
-- guards: below the plan through plans, it counts, and it is not as it would become already
-- changes: task
-- event: 'task.reset'
-- data: '{"epoch":' || epoch || ',"planning_phase":"' || planning_phase || '"'
--   || ',"failures":0,"lost":0,"round":0,"scheduled_for":null,"waits_for":null,"run_now":false,"skipped":false,"run_holds":0}'
-- returning: kind
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
-- purpose: what a plan said of who waits for whom is said anew when it is finalized again;
--   IS TRUE, because an older PostgreSQL would look up every pair
-- guards: below the plan, of what has not begun, for a part of a plan that is being made; what a task
--   was created with stays
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
-- purpose: unblock whatever below a plan needs nothing any more that is not done
-- guards: below the plan, not begun, blocked, and without a need that is not done
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
-- purpose: idle → queued for the children of a plan and of the finalized plans inside it, each blocked
--   until it has all it needs and with the agent of its plan unless it has one
-- guards: idle children that are no plans themselves, unless a plan around this one is being made
-- changes: task
-- event: 'task.queued'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || '}'
-- returning: kind
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
  AND kind = 'work'

-- name: inherit_needs
-- purpose: whatever a plan needs, all that has not begun below it needs too, through plans inside it
-- guards: below the plans, not begun, not the need itself, and each pair once
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
-- purpose: block whatever below a plan has come to need what is not done
-- guards: below the plans, not begun, not blocked yet, and with a need that is not done
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
-- purpose: what has ended and counts of a plan, and of the finalized plans inside it
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
-- purpose: which of some tasks are below a task
WITH RECURSIVE around (part_id, parent_id) AS (
  SELECT part.id, part.parent_id FROM holdfast_task AS part WHERE part.id IN (SELECT value FROM {each ids})
  UNION SELECT around.part_id, parent.parent_id
  FROM holdfast_task AS parent JOIN around ON parent.id = around.parent_id)
SELECT part_id FROM around WHERE parent_id = :task_id ORDER BY part_id

-- name: rerun_parts
-- purpose: done, failed or cancelled → queued for parts of a plan that runs again; one that is a plan
--   itself is idle, and so is any while a plan around them is being made
-- guards: ended, and it counts
-- changes: task
-- event: 'task.reopened'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"round":0,"scheduled_for":null,"waits_for":null,"run_now":false,"run_holds":0}'
-- returning: kind
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
-- purpose: done, failed or cancelled → idle for a plan that runs again; it keeps its planning
-- guards: finalized, and nothing of it moves
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
-- purpose: the finalized plans among some tasks and around them
WITH RECURSIVE around (id, parent_id, planning_phase) AS (
  SELECT task.id, task.parent_id, task.planning_phase FROM holdfast_task AS task
  WHERE task.id IN (SELECT value FROM {each ids})
    AND task.run_id IS NULL
  UNION SELECT task.id, task.parent_id, task.planning_phase
  FROM holdfast_task AS task JOIN around ON task.id = around.parent_id)
SELECT id FROM around WHERE planning_phase = 'finalized' ORDER BY id

-- name: open_plans_around
-- purpose: the plans around a task that are still being made, the nearest first
WITH RECURSIVE around (id, parent_id, title, planning_phase, depth) AS (
  SELECT named.id, named.parent_id, named.title, named.planning_phase, 0 FROM holdfast_task AS named WHERE named.id = :task_id
  UNION ALL
  SELECT plan.id, plan.parent_id, plan.title, plan.planning_phase, around.depth + 1
  FROM holdfast_task AS plan JOIN around ON plan.id = around.parent_id
  WHERE plan.planning_phase <> 'none')
SELECT id, title FROM around WHERE planning_phase = 'active' AND depth > 0 ORDER BY depth

-- name: failed_in_tree
-- purpose: around which failures the plans of the tree of a task must be looked at again
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
-- purpose: hold failing on whatever has not begun below the topmost plan, because a part has failed
-- guards: below a finalized plan with a failed or cancelled child or below one around it, not begun,
--   and not held for that yet
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
-- purpose: idle → done or failed for plans below which nothing can move; what a plan gave is the
--   list of what its children gave, in the order of the plan, unless an older store told otherwise
-- guards: finalized, and every child has ended, or one has ended badly and nothing below is running
-- changes: task
-- event: 'task.' || status
-- returning: kind, parent_id
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
      WITH RECURSIVE below (id, status) AS (
        SELECT child.id, child.status FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id
        UNION ALL SELECT child.id, child.status FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
      SELECT 1 FROM below WHERE below.status = 'running')
    ELSE (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('idle', 'queued', 'running') LIMIT 1) IS NULL END
