-- name: horizon
-- purpose: Read the oldest transaction under way and the next transaction id, to tell which numbers never come
-- PostgreSQL: a missing number between those given by transactions older than `oldest` never comes.
-- The end of a snapshot is one above the newest transaction that has ended, so the next id is computed
-- by age: newer transactions may be under way and have numbers.
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS oldest,
  CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)
    + age(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid)) AS next
