-- name: register_hooks
-- purpose: keep hooks under their names; whoever says it last is right
-- guards: one name, one hook
-- rows: hook text, ends text, subject text, options text
INSERT INTO holdfast_hook (name, events, about, template, created_at)
SELECT r.hook, r.ends, r.subject, r.options, (SELECT holdfast_now()) FROM {rows} AS r WHERE true
ON CONFLICT (name) DO UPDATE SET
  events = excluded.events, about = excluded.about, template = excluded.template

-- name: remove_hook
-- purpose: forget a hook; the tasks that it has made stay
-- guards: the one of that name
DELETE FROM holdfast_hook
WHERE name = :hook
RETURNING name

-- name: list_hooks
-- purpose: every hook
SELECT * FROM holdfast_hook ORDER BY name

-- name: hooks_to_fire
-- purpose: which hooks are for some ends, each by the event that recorded it; of tasks outside of
--   runs only those that are no task's child and no hook's own; the list of a hook's events is
--   searched as text, because one that is no JSON must not keep any end from being recorded
-- rows: entity text, version integer
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
-- purpose: those of some tasks that a hook made and that failed for good
SELECT id, title, error FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})
  AND step LIKE 'hook %'
  AND status = 'failed'
