-- name: fail
-- purpose: an error
SELECT json(:code) AS never
