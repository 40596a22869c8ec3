-- name: add_tasks
-- purpose: tasks that were not there before
-- rows: id text, title text
-- changes: task
-- event: 'task.created'
INSERT INTO holdfast_task (id, title, status, changed_by, changed_at)
SELECT r.id, r.title, 'queued', 'tester', holdfast_now() FROM {rows} AS r WHERE true

-- name: rename_tasks
-- purpose: another title for tasks that are queued
-- rows: id text, title text
-- changes: task
-- event: 'task.' || task.status
-- data: '{"title":"' || task.title || '"}'
-- returning: task.title
WITH wanted AS MATERIALIZED (
  SELECT task.id, r.title
  FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.id
  ORDER BY task.id {lock task}
)
UPDATE holdfast_task AS task
SET title = wanted.title, version = version + 1, previous = status, changed_at = holdfast_now()
FROM wanted
WHERE task.id = wanted.id AND task.status = 'queued'

-- name: remove_tasks
-- purpose: tasks that are gone afterwards
-- changes: task
-- event: 'task.deleted'
-- to: NULL
-- version: task.version + 1
DELETE FROM holdfast_task AS task WHERE id IN (SELECT value FROM {each ids})

-- name: add_note
-- purpose: a row without an event
INSERT INTO note (text) VALUES (:text)

-- name: add_and_read_note
-- purpose: a row without an event that is given back
INSERT INTO note (text) VALUES (:text) RETURNING text

-- name: forget_note
-- purpose: nothing, where there is no such note
DELETE FROM note WHERE text = :text

-- name: add_reply
-- purpose: a row that is checked when the transaction ends
INSERT INTO reply (text) VALUES (:text)

-- name: notes
-- purpose: every note
SELECT text FROM note ORDER BY text

-- name: tasks
-- purpose: every task
SELECT id, title, version FROM holdfast_task ORDER BY id

-- name: some_tasks
-- purpose: the tasks of some ids
SELECT id, title FROM holdfast_task WHERE id IN (SELECT value FROM {each ids}) ORDER BY id

-- name: events
-- purpose: every event
SELECT entity, version, type, from_status, to_status, at, data FROM holdfast_event ORDER BY seq

-- name: types
-- purpose: one row of each type a row may carry
-- rows: a text, b integer, c boolean, d real, e text
SELECT r.a, r.b, r.c, r.d, r.e FROM {rows} AS r

-- name: clock
-- purpose: the time by which the database decides
SELECT holdfast_now() AS now

-- name: percent
-- purpose: the signs that drivers treat specially
SELECT '100%' AS percent, ':no' AS colon, '{no}' AS brace, CAST(:text AS text) AS text

-- name: number
-- purpose: a number of whatever size
SELECT CAST(:number AS integer) AS number
