-- name: snapshot
-- purpose: the oldest transaction still under way, and the first that has not begun
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS oldest,
  CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) AS next
