-- name: horizon
-- purpose: nothing to wait for: writers take turns, and a number that is missing will never come
SELECT 0 AS oldest, 0 AS next
