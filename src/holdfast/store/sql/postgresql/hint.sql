-- name: send_hint
-- purpose: tell other processes, at commit, that something may be ready
SELECT pg_notify('holdfast', :sender)
