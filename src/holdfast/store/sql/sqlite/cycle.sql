-- name: reachable_needs
-- purpose: which of some tasks would close a cycle if a task needed them, and which items under way would
--   wait for it: whatever needs it waits for it, the loop, item or plan around it ends after it, what those
--   hold begins after them, and so do the items of some loops that have not begun; what has failed or was
--   cancelled comes back to its place, or waits for it; a plan that is being made is looked at when it is
--   finalized
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
