-- name: event_writers
-- purpose: List the transactions under way that have written events not yet visible
-- PostgreSQL: each such transaction keeps its lock on the table of events until its events are visible.
-- The locks are those of this moment, not those of the moment at which the rows were read.
SELECT virtualtransaction AS writer FROM pg_locks
WHERE locktype = 'relation'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation = CAST('holdfast_event' AS regclass)
  AND mode = 'RowExclusiveLock'
  AND granted
