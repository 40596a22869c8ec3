-- name: send_note
-- purpose: tell whoever listens now, on whatever machine
SELECT pg_notify('holdfast_notes', :text)
