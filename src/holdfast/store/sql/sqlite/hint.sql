-- name: send_hint
-- purpose: nothing to send: other processes watch data_version
SELECT :sender WHERE false
