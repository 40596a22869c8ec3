-- name: snapshot
-- purpose: nothing is under way beside what can be seen: commits take turns, in the order of events
SELECT 0 AS oldest, 0 AS next
