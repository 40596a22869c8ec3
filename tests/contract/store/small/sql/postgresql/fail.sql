-- name: fail
-- purpose: the error that was asked for
SELECT fail(:code) AS never
