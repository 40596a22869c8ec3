-- name: outputs_seen
-- purpose: Read the outputs of the steps that a task's texts name, in its run and items, the nearest last
-- rows: task_id text, wanted text
-- CROSS JOIN makes SQLite begin with the few given rows.
WITH RECURSIVE above (root, wanted, run_id, item_id, depth) AS (
  SELECT task.id, r.wanted, task.run_id, task.parent_id, 0
  FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  UNION ALL
  SELECT above.root, above.wanted, above.run_id, around.parent_id, above.depth + 1
  FROM above JOIN holdfast_task AS item ON item.id = above.item_id
    JOIN holdfast_task AS around ON around.id = item.parent_id)
SELECT above.root, above.wanted, above.depth, found.output, found.skipped
FROM above CROSS JOIN holdfast_task AS found
WHERE found.id = (
    SELECT beside.id FROM holdfast_task AS beside
    WHERE beside.parent_id = above.item_id
      AND beside.step = above.wanted
      AND NOT beside.superseded
      AND beside.status = 'done'
    LIMIT 1)
UNION ALL
SELECT above.root, above.wanted, above.depth, found.output, found.skipped
FROM above CROSS JOIN holdfast_task AS found
WHERE above.item_id IS NULL
  AND found.id = (
    SELECT beside.id FROM holdfast_task AS beside
    WHERE beside.run_id = above.run_id
      AND beside.parent_id IS NULL
      AND beside.step = above.wanted
      AND beside.status = 'done'
    LIMIT 1)
ORDER BY depth DESC

-- name: declared_reports
-- purpose: List the running attempts, of some given, whose steps declare an output
-- rows: task_id text, fence integer
-- COALESCE keeps PostgreSQL from beginning with all running tasks.
SELECT task.id, task.step, run.workflow, run.workflow_version
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  JOIN holdfast_run AS run ON run.id = task.run_id
WHERE COALESCE(task.status, '') = 'running'
  AND task.attempt = r.fence
  AND task.declares

-- name: tell_titles
-- purpose: Set the titles of tasks whose title is made from the outputs of other steps
-- guards: The task is queued, not blocked, and has another title
-- rows: task_id text, told text
-- changes: task
-- event: 'task.edited'
UPDATE holdfast_task SET
  title = r.told,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND title <> r.told
