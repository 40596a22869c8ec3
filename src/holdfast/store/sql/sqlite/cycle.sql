-- name: reachable_needs
-- purpose: Find the tasks that would close a cycle if a task needed them, and the started items that would wait
-- A task that needs the given one waits for it; the loop, item or plan around a task ends after it;
-- the children of a group that has to wait begin after it, and so do the idle items of the given loops.
-- Failed and cancelled tasks come back to their place. An active plan is checked when it is finalized.
WITH RECURSIVE reached (id, begins) AS (
  SELECT named.id, true FROM holdfast_task AS named WHERE named.id = :task_id
  UNION SELECT item.id, true FROM holdfast_task AS item
  WHERE item.parent_id IN (SELECT value FROM {each loops})
    AND item.status IN ('idle', 'queued', 'running') AND item.status = 'idle'
  UNION SELECT item.id, true FROM holdfast_task AS item
  WHERE item.parent_id IN (SELECT value FROM {each loops})
    AND item.status IN ('failed', 'cancelled') AND NOT item.superseded AND NOT {begun item}
  UNION SELECT need.task_id, true
  FROM reached JOIN holdfast_need AS need ON need.need_id = reached.id
  UNION SELECT parent.id, false
  FROM reached JOIN holdfast_task AS task ON task.id = reached.id
    JOIN holdfast_task AS parent ON parent.id = task.parent_id
  WHERE parent.kind = 'group' AND parent.planning_phase <> 'active' AND NOT task.superseded
  UNION SELECT child.id, true
  FROM reached JOIN holdfast_task AS task ON task.id = reached.id
    JOIN holdfast_task AS child ON child.parent_id = task.id
  WHERE reached.begins AND task.kind = 'group' AND task.planning_phase <> 'active' AND NOT child.superseded)
SELECT DISTINCT task.id, CASE WHEN task.kind = 'group' AND task.item IS NOT NULL AND task.status IN ('queued', 'failed', 'cancelled') AND {begun task} THEN task.parent_id END AS loop_id
FROM reached JOIN holdfast_task AS task ON task.id = reached.id
WHERE task.id IN (SELECT value FROM {each ids})
  OR (task.kind = 'group' AND task.item IS NOT NULL AND task.status IN ('queued', 'failed', 'cancelled') AND {begun task})
