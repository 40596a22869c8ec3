-- name: event_writers
-- purpose: the transactions under way that have written events: each keeps its lock on their table until
--   what it wrote can be seen. This is so now, not when the rows were read that are told beside it
SELECT virtualtransaction AS writer FROM pg_locks
WHERE locktype = 'relation'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = CAST('holdfast_event' AS regclass)
  AND mode = 'RowExclusiveLock'
  AND granted
