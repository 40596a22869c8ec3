-- name: snapshot
-- purpose: Read the oldest transaction under way and the first that has not begun
-- SQLite: commits take turns in the order of events, so nothing is under way besides what is visible.
SELECT 0 AS oldest, 0 AS next
