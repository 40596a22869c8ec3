-- name: send_note
-- purpose: nobody listens beside a file
SELECT :text AS text
