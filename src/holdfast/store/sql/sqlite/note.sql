-- name: send_note
-- purpose: Send a note to the processes that listen now, on any machine
-- SQLite: no process listens to a file, so nothing is sent.
SELECT :text AS text
