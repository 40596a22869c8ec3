-- name: send_hint
-- purpose: Tell other processes, at commit, that tasks may be ready
-- SQLite: other processes watch the log and data_version, so nothing is sent.
SELECT :sender WHERE false
