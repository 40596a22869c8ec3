-- name: horizon
-- purpose: the oldest transaction still under way and the next there will be: a number missing among
--   those given by older ones than the first will never come. What a snapshot ends with is one more
--   than the newest that has ended, and not the next: newer ones may be under way, and have numbers
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS oldest,
  CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)
    + age(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid)) AS next
