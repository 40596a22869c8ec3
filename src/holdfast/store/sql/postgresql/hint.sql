-- name: send_hint
-- purpose: Tell other processes, at commit, that tasks may be ready
SELECT pg_notify('holdfast', :sender)
