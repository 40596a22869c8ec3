-- name: register_worker
-- purpose: keep that a worker has started, and what it offers
-- guards: nobody else lives under that name
INSERT INTO holdfast_worker (name, agents, tags, concurrency, process, started_at, seen_at, expires_at)
VALUES (:name, :agents, :tags, :concurrency, :process,
  (SELECT holdfast_now()), (SELECT holdfast_now()), (SELECT holdfast_now()) + :ttl)
ON CONFLICT (name) DO UPDATE SET
  agents = excluded.agents, tags = excluded.tags, concurrency = excluded.concurrency, told = NULL,
  process = excluded.process, pausing = NULL,
  started_at = excluded.started_at, seen_at = excluded.seen_at, expires_at = excluded.expires_at
WHERE holdfast_worker.expires_at <= (SELECT holdfast_now())
RETURNING started_at

-- name: announce_worker
-- purpose: keep that a worker lives and why it claims nothing, and give what it is told
-- guards: the one of that name that started then
UPDATE holdfast_worker SET
  seen_at = (SELECT holdfast_now()), expires_at = (SELECT holdfast_now()) + :ttl, pausing = :pausing
WHERE name = :name
  AND started_at = :started
RETURNING told

-- name: tell_worker
-- purpose: have a worker go; it hears of it when it next says that it lives
-- guards: it lives
UPDATE holdfast_worker SET told = :told
WHERE name = :name
  AND expires_at > (SELECT holdfast_now())
RETURNING name

-- name: forget_worker
-- purpose: forget a worker that has left
-- guards: the one of that name that started then
DELETE FROM holdfast_worker
WHERE name = :name
  AND started_at = :started
RETURNING name

-- name: forget_dead_workers
-- purpose: forget workers that vanished long ago
-- guards: not heard of for as long as they are kept
DELETE FROM holdfast_worker
WHERE expires_at < (SELECT holdfast_now()) - :kept

-- name: list_workers
-- purpose: the workers that live
SELECT * FROM holdfast_worker
WHERE expires_at > (SELECT holdfast_now())
ORDER BY name

-- name: note_stops
-- purpose: keep that nothing of an attempt runs any more, and how many processes had to be ended
-- guards: the task has had that attempt, and it was not said before
-- rows: task_id text, fence integer, struck integer, remaining integer
INSERT INTO holdfast_stop (task_id, attempt, stopped_at, ended, remaining)
SELECT r.task_id, r.fence, (SELECT holdfast_now()), r.struck, r.remaining
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
WHERE r.fence BETWEEN 1 AND task.attempt
ON CONFLICT (task_id, attempt) DO NOTHING
RETURNING task_id

-- name: stops_of
-- purpose: what was stopped with the attempts of a task
SELECT attempt, stopped_at, ended, remaining FROM holdfast_stop WHERE task_id = :task_id
