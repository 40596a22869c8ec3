-- name: register_hooks
-- purpose: Register hooks under their names; the newest registration stands
-- guards: One row for each name
-- rows: hook text, ends text, subject text, options text
INSERT INTO holdfast_hook (name, events, about, template, created_at)
SELECT r.hook, r.ends, r.subject, r.options, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (name) DO UPDATE SET
  events = excluded.events, about = excluded.about, template = excluded.template

-- name: remove_hook
-- purpose: Delete a hook; the tasks that it has made stay
-- guards: The hook has that name
DELETE FROM holdfast_hook
WHERE name = :hook
RETURNING name

-- name: list_hooks
-- purpose: List every hook, by name
SELECT * FROM holdfast_hook ORDER BY name

-- name: hooks_to_fire
-- purpose: List the hooks that match some ended runs and tasks, each with the event of the end
-- rows: entity text, version integer
-- A task without a run counts only without a parent, and not when a hook made it. The events of a hook
-- are searched as text: a list that is not valid JSON must not keep an end from being recorded.
SELECT hook.name, hook.template, event.*, run.workflow, task.step
FROM {rows} AS r
JOIN holdfast_event AS event ON event.entity = r.entity AND event.version = r.version
LEFT JOIN holdfast_run AS run ON run.id = event.entity
LEFT JOIN holdfast_task AS task ON task.id = event.entity
JOIN holdfast_hook AS hook
  ON hook.events LIKE '%"' || CASE WHEN run.id IS NULL THEN 'task.' ELSE 'run.' END || event.to_status || '"%'
WHERE (hook.about IS NULL OR hook.about = COALESCE(run.workflow, task.step))
  AND (run.id IS NOT NULL
    OR (task.parent_id IS NULL AND COALESCE(task.step, '') NOT LIKE 'hook %'))
ORDER BY hook.name, event.seq

-- name: failed_hooks
-- purpose: List the failed hook tasks among some tasks
SELECT id, title, error FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})
  AND step LIKE 'hook %'
  AND status = 'failed'
