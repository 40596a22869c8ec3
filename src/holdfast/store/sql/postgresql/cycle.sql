-- name: reachable_needs
-- purpose: which of some tasks would close a cycle if a task needed them: whatever needs it waits for
--   it, the loop, item or plan around it ends after it, and what those hold begins after them; a plan
--   that is being made is looked at when it is finalized
WITH RECURSIVE reached (id, begins) AS (
  SELECT named.id, true FROM holdfast_task AS named WHERE named.id = :task_id
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
SELECT DISTINCT id FROM reached WHERE id IN (SELECT value FROM {each ids})
