-- name: ended_runs
-- purpose: List a page of runs that ended before a moment, newest first, with their called runs and tasks
WITH RECURSIVE page (id) AS (
  SELECT id FROM (
    SELECT run.id FROM holdfast_run AS run
    WHERE run.id < :until
      AND (run.parent_id IS NULL OR (SELECT caller.id FROM holdfast_task AS caller WHERE caller.id = run.parent_id AND (caller.run_id IS NOT NULL OR caller.status = 'queued')) IS NULL)
      AND run.finished_at < :before
    ORDER BY run.id DESC LIMIT :count) AS chosen),
below (id, top) AS (
  SELECT page.id, page.id FROM page
  UNION SELECT run.id, below.top FROM below CROSS JOIN holdfast_run AS run
  WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
SELECT below.id AS member, below.top FROM below
UNION ALL
SELECT task.id, below.top FROM below JOIN holdfast_task AS task ON task.run_id = below.id

-- name: ended_tasks
-- purpose: List a page of top tasks without a run that ended before a moment, newest first, each with its tree
WITH RECURSIVE page (id) AS (
  SELECT id FROM (
    SELECT task.id FROM holdfast_task AS task
    WHERE task.id < :until
      AND task.run_id IS NULL
      AND task.parent_id IS NULL
      AND task.finished_at < :before
    ORDER BY task.id DESC LIMIT :count) AS chosen),
below (id, top) AS (
  SELECT page.id, page.id FROM page
  UNION SELECT child.id, below.top FROM below JOIN holdfast_task AS child ON child.parent_id = below.id)
SELECT below.id AS member, below.top FROM below

-- name: trees_needing
-- purpose: Find the tops of the task trees in which a task needs one of some tasks
WITH RECURSIVE above (id, parent_id) AS (
  SELECT task.id, task.parent_id
  FROM holdfast_need AS need JOIN holdfast_task AS task ON task.id = need.task_id
  WHERE need.need_id IN (SELECT value FROM {each ids})
  UNION SELECT parent.id, parent.parent_id
  FROM above JOIN holdfast_task AS parent ON parent.id = above.parent_id)
SELECT id AS top FROM above WHERE parent_id IS NULL

-- name: ended_trees
-- purpose: List the top tasks, of some given, that ended before a moment, each with its tree
WITH RECURSIVE below (id, top) AS (
  SELECT task.id, task.id FROM holdfast_task AS task
  WHERE task.id IN (SELECT value FROM {each ids})
    AND task.finished_at < :before
  UNION SELECT child.id, below.top FROM below JOIN holdfast_task AS child ON child.parent_id = below.id)
SELECT below.id AS member, below.top FROM below

-- name: bury_runs
-- purpose: Insert tombstones for the runs that retention removes, and for their called runs
-- guards: The run and every run called below it ended before a moment, every reader has passed their
--   events, and no stored message is about one of them
-- rows: member text, top text
WITH given AS (SELECT r.member, r.top FROM {rows} AS r),
kept (top) AS (
  SELECT given.top FROM given JOIN holdfast_run AS run ON run.id = given.member
  WHERE COALESCE(run.finished_at, :before) >= :before
  UNION
  SELECT given.top FROM given
  WHERE (SELECT max(event.seq) FROM holdfast_event AS event WHERE event.entity = given.member)
    > (SELECT passed FROM holdfast_read_by_all)
  UNION
  SELECT given.top FROM given JOIN holdfast_delivery AS waiting ON waiting.about = given.member)
INSERT INTO holdfast_tombstone (entity, kind, name, version, key, body_digest, status, created_at, finished_at, removed_at)
SELECT run.id, 'run', run.workflow, run.workflow_version, run.key, run.body_digest, run.status,
  run.created_at, run.finished_at, (SELECT holdfast_now())
FROM given JOIN holdfast_run AS run ON run.id = given.member
WHERE given.top NOT IN (SELECT kept.top FROM kept)
RETURNING entity

-- name: deleted_tasks
-- purpose: List a page of tasks that were deleted before a moment, newest first
SELECT deleted.entity AS member, deleted.entity AS top FROM holdfast_event AS deleted
WHERE deleted.type = 'task.deleted'
  AND deleted.entity < :until
  AND deleted.at < :before
ORDER BY deleted.entity DESC LIMIT :count

-- name: bury_tasks
-- purpose: Insert tombstones for the tasks without a run that retention removes, and for the keys below these
-- guards: The top task ended before a moment, no task in its tree is running, no task that stays needs
--   one of them, every reader has passed their events, and no stored message is about one of them
-- rows: member text, top text
WITH RECURSIVE given AS (SELECT r.member, r.top FROM {rows} AS r),
needed (top, needed_by) AS (
  SELECT given.top, other.top FROM given JOIN holdfast_need AS need ON need.need_id = given.member
    LEFT JOIN given AS other ON other.member = need.task_id),
stays (top) AS (
  SELECT given.top FROM given JOIN holdfast_task AS task ON task.id = given.member
  WHERE task.status = 'running' OR (given.member = given.top AND COALESCE(task.finished_at, :before) >= :before)
  UNION
  SELECT needed.top FROM needed
  WHERE needed.needed_by IS NULL
  UNION
  SELECT given.top FROM given
  WHERE (SELECT max(event.seq) FROM holdfast_event AS event WHERE event.entity = given.member)
    > (SELECT passed FROM holdfast_read_by_all)
  UNION
  SELECT given.top FROM given JOIN holdfast_delivery AS waiting ON waiting.about = given.member),
kept (top) AS (
  SELECT stays.top FROM stays
  UNION SELECT needed.top FROM kept JOIN needed ON needed.needed_by = kept.top)
INSERT INTO holdfast_tombstone (entity, kind, name, key, body_digest, status, created_at, finished_at, removed_at)
SELECT task.id, 'task', task.title, task.key, task.body_digest, task.status,
  task.created_at, task.finished_at, (SELECT holdfast_now())
FROM given JOIN holdfast_task AS task ON task.id = given.member
WHERE given.top NOT IN (SELECT kept.top FROM kept)
  AND (given.member = given.top OR task.key IS NOT NULL)
RETURNING entity

-- name: unread_deleted
-- purpose: List the deleted tasks, of some given, with an unread event or a stored message
SELECT event.entity FROM holdfast_event AS event
WHERE event.entity IN (SELECT value FROM {each ids})
  AND event.seq > (SELECT passed FROM holdfast_read_by_all)
UNION
SELECT waiting.about FROM holdfast_delivery AS waiting
WHERE waiting.about IN (SELECT value FROM {each ids})

-- name: bury_keys
-- purpose: Insert tombstones for the tasks with a key in runs that retention removes
-- guards: The task has a key
INSERT INTO holdfast_tombstone (entity, kind, name, key, body_digest, status, created_at, finished_at, removed_at)
SELECT task.id, 'task', task.title, task.key, task.body_digest, task.status,
  task.created_at, task.finished_at, (SELECT holdfast_now())
FROM holdfast_task AS task
WHERE task.id IN (SELECT value FROM {each ids})
  AND task.key IS NOT NULL

-- name: remove_events
-- purpose: Delete the events of removed runs and tasks
-- guards: The event belongs to one of them
DELETE FROM holdfast_event
WHERE entity IN (SELECT value FROM {each ids})

-- name: remove_signals
-- purpose: Delete the signals that were sent to removed runs and tasks
-- guards: The signal was sent to one of them
DELETE FROM holdfast_signal
WHERE target IN (SELECT value FROM {each ids})

-- name: remove_traces
-- purpose: Delete the traces of removed runs and tasks
-- guards: The trace belongs to one of them
DELETE FROM holdfast_trace
WHERE entity IN (SELECT value FROM {each ids})

-- name: remove_needs
-- purpose: Delete the needs of removed tasks, before the needed tasks are deleted too
-- guards: The need belongs to one of them
DELETE FROM holdfast_need
WHERE task_id IN (SELECT value FROM {each ids})

-- name: remove_tasks
-- purpose: Delete removed tasks, with their effects and stops
-- guards: The task is one of them
DELETE FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})

-- name: remove_runs
-- purpose: Delete removed runs
-- guards: The run is one of them
DELETE FROM holdfast_run
WHERE id IN (SELECT value FROM {each ids})

-- name: forget_tombstones
-- purpose: Delete the oldest tombstones without a key
-- guards: The tombstone has no key, because a key stays taken for ever, and was made before a moment
DELETE FROM holdfast_tombstone
WHERE entity IN (
  SELECT entity FROM holdfast_tombstone
  WHERE key IS NULL
    AND removed_at < :before
  ORDER BY removed_at LIMIT :count)
RETURNING entity

-- name: tombstone_of
-- purpose: Read the tombstone of a removed run or task
SELECT * FROM holdfast_tombstone WHERE entity = :entity
