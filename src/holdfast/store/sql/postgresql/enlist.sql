-- name: enlist
-- purpose: Give a transaction its id before the transaction is given a number
-- PostgreSQL: a transaction that waited for another publisher with its number would have a newer id
-- than the reader of later numbers knows.
SELECT CAST(pg_current_xact_id() AS text) AS xid
