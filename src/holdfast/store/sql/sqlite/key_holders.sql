-- name: task_key_holders
-- purpose: Read which task holds each of some keys, after tasks with them were inserted, and its payload where the body is another
-- rows: unique_key text, body text
SELECT r.unique_key AS key, r.body AS wanted, held.id, held.body_digest, held.step, held.calls, held.planning_phase <> 'none' AS planned,
  CASE WHEN held.body_digest <> r.body THEN held.payload END AS payload
FROM {rows} AS r CROSS JOIN holdfast_task AS held ON held.key = r.unique_key
UNION ALL
SELECT r.unique_key, r.body, held.entity, held.body_digest, NULL, NULL, 0, NULL
FROM {rows} AS r CROSS JOIN holdfast_tombstone AS held ON held.kind = 'task' AND held.key = r.unique_key

-- name: run_key_holders
-- purpose: Read which run holds each of some keys, after runs with them were inserted
SELECT key, id, body_digest FROM holdfast_run
WHERE key IN (SELECT value FROM {each keys})
UNION ALL
SELECT key, entity, body_digest FROM holdfast_tombstone
WHERE kind = 'run'
  AND key IN (SELECT value FROM {each keys})
