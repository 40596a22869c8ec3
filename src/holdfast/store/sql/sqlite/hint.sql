-- name: send_hint
-- purpose: nothing to send: other processes watch the log, and look at data_version
SELECT :sender WHERE false
