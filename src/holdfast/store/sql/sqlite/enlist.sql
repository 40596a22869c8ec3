-- name: enlist
-- purpose: nothing to do: whoever is given a number has its turn already
SELECT '' AS xid
