-- name: send_note
-- purpose: Send a note to the processes that listen now, on any machine
SELECT pg_notify('holdfast_notes', :text)
