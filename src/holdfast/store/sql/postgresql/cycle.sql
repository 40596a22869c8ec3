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
  UNION SELECT following.id, following.begins
  FROM reached CROSS JOIN LATERAL (
    SELECT need.task_id AS id, true AS begins FROM holdfast_need AS need
    WHERE need.need_id = reached.id
    UNION ALL SELECT parent.id, false
    FROM holdfast_task AS task JOIN holdfast_task AS parent ON parent.id = task.parent_id
    WHERE task.id = reached.id AND parent.kind = 'group' AND parent.planning_phase <> 'active' AND NOT task.superseded
    UNION ALL SELECT child.id, true
    FROM holdfast_task AS task JOIN holdfast_task AS child ON child.parent_id = task.id
    WHERE task.id = reached.id AND reached.begins AND task.kind = 'group' AND task.planning_phase <> 'active' AND NOT child.superseded) AS following)
SELECT DISTINCT reached.id, item.loop_id
FROM reached CROSS JOIN LATERAL (
  SELECT CASE WHEN task.kind = 'group' AND task.item IS NOT NULL AND task.status IN ('queued', 'failed', 'cancelled') AND {begun task} THEN task.parent_id END AS loop_id
  FROM holdfast_task AS task WHERE task.id = reached.id LIMIT 1) AS item
WHERE item.loop_id IS NOT NULL OR reached.id IN (SELECT value FROM {each ids})
