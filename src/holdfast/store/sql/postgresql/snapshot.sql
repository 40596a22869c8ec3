-- name: snapshot
-- purpose: the oldest transaction still under way, and the first that has not begun: newer ones than
--   all that have ended may be under way, so that it is reckoned by their age
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS oldest,
  CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)
    + age(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid)) AS next
