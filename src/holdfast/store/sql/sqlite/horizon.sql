-- name: horizon
-- purpose: Read the oldest transaction under way and the next transaction id, to tell which numbers never come
-- SQLite: writers take turns, so a missing number never comes.
SELECT 0 AS oldest, 0 AS next
