-- name: task_key_holders
-- purpose: Read which task holds each of some keys, after tasks with them were inserted
SELECT key, id, body_digest FROM holdfast_task
WHERE key IN (SELECT value FROM {each keys})
UNION ALL
SELECT key, entity, body_digest FROM holdfast_tombstone
WHERE kind = 'task'
  AND key IN (SELECT value FROM {each keys})

-- name: run_key_holders
-- purpose: Read which run holds each of some keys, after runs with them were inserted
SELECT key, id, body_digest FROM holdfast_run
WHERE key IN (SELECT value FROM {each keys})
UNION ALL
SELECT key, entity, body_digest FROM holdfast_tombstone
WHERE kind = 'run'
  AND key IN (SELECT value FROM {each keys})
