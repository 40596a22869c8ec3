-- Each task is looked up by its id: a join may walk through the whole table while there are no statistics.

-- name: needed_outputs
-- purpose: Read the outputs of the needs of some tasks, and of what these verified, for the worker
SELECT need.task_id, needed.id, needed.step, needed.parent_id, needed.item, needed.output
FROM holdfast_need AS need CROSS JOIN LATERAL (
  SELECT task.id, task.step, task.parent_id, task.item, task.output
  FROM holdfast_task AS task WHERE task.id = need.need_id LIMIT 1) AS needed
WHERE need.task_id IN (SELECT value FROM {each ids})
UNION ALL
SELECT need.task_id, subject.id, subject.step, subject.parent_id, subject.item, subject.output
FROM holdfast_need AS need CROSS JOIN LATERAL (
  SELECT task.id, task.step, task.parent_id, task.item, task.output
  FROM holdfast_task AS judge JOIN holdfast_task AS task ON task.id = judge.verifies
  WHERE judge.id = need.need_id LIMIT 1) AS subject
WHERE need.task_id IN (SELECT value FROM {each ids})
