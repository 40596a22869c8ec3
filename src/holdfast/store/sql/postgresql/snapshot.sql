-- name: snapshot
-- purpose: Read the oldest transaction under way and the first that has not begun
-- PostgreSQL: newer transactions than all that have ended may be under way, so the first that has not
-- begun is computed by age.
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS oldest,
  CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)
    + age(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS xid)) AS next
