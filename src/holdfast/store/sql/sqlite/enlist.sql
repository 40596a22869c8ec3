-- name: enlist
-- purpose: Give a transaction its id before the transaction is given a number
-- SQLite: writers take turns, so a transaction needs no id.
SELECT '' AS xid
