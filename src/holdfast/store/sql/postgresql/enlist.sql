-- name: enlist
-- purpose: give the transaction its id before anything in it is given a number: one that waited with
--   its number for another publisher would have a newer id than a reader of later numbers knows of
SELECT CAST(pg_current_xact_id() AS text) AS xid
