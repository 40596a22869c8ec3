-- name: task_key_holders
-- purpose: Read which task holds each of some keys, after tasks with them were inserted, and its payload where the body is another; begin again unless each has one holder
-- rows: unique_key text, body text
-- PostgreSQL: another process may have removed the holder of a key, whose tombstone keeps the key, after the
-- insert looked for tombstones and before it looked for tasks.
SELECT r.unique_key AS key, r.body AS wanted, holder.id, holder.body_digest, holder.step, holder.calls, holder.planned,
  CASE WHEN holder.body_digest <> r.body THEN holder.payload END AS payload,
  CASE WHEN count(holder.id) OVER (PARTITION BY r.unique_key, r.body) <> 1
    THEN holdfast_contend('the holder of a key was removed by another process') END AS refused
FROM {rows} AS r LEFT JOIN LATERAL (
  SELECT held.id, held.body_digest, held.step, held.calls, held.planning_phase <> 'none' AS planned, held.payload
  FROM holdfast_task AS held WHERE held.key = r.unique_key
  UNION ALL SELECT removed.entity, removed.body_digest, NULL, NULL, false, NULL FROM holdfast_tombstone AS removed
  WHERE removed.kind = 'task' AND removed.key = r.unique_key) AS holder ON true

-- name: run_key_holders
-- purpose: Read which run holds each of some keys, after runs with them were inserted; begin again unless each has one holder
-- PostgreSQL: another process may have removed the holder of a key, whose tombstone keeps the key, after the
-- insert looked for tombstones and before it looked for runs.
SELECT wanted.value AS key, holder.id, holder.body_digest,
  CASE WHEN count(holder.id) OVER (PARTITION BY wanted.value) <> 1
    THEN holdfast_contend('the holder of a key was removed by another process') END AS refused
FROM {each keys} AS wanted LEFT JOIN LATERAL (
  SELECT held.id, held.body_digest FROM holdfast_run AS held WHERE held.key = wanted.value
  UNION ALL SELECT removed.entity, removed.body_digest FROM holdfast_tombstone AS removed
  WHERE removed.kind = 'run' AND removed.key = wanted.value) AS holder ON true
