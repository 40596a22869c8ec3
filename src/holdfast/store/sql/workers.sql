-- name: register_worker
-- purpose: Register a worker that has started, with its agents, tags and concurrency
-- guards: No other worker of that name is alive
INSERT INTO holdfast_worker (name, agents, tags, equipped, concurrency, process, started_at, seen_at, expires_at)
VALUES (:name, :agents, :tags, :equipped, :concurrency, :process,
  (SELECT holdfast_now()), (SELECT holdfast_now()), (SELECT holdfast_now()) + :ttl)
ON CONFLICT (name) DO UPDATE SET
  agents = excluded.agents, tags = excluded.tags, equipped = excluded.equipped,
  concurrency = excluded.concurrency, told = NULL,
  process = excluded.process, pausing = NULL, overruns = NULL,
  started_at = excluded.started_at, seen_at = excluded.seen_at, expires_at = excluded.expires_at
WHERE holdfast_worker.expires_at <= (SELECT holdfast_now())
RETURNING started_at

-- name: announce_worker
-- purpose: Record the heartbeat of a worker, why it pauses and its overruns, and read what it is told to do
-- guards: The worker has that name and start time
UPDATE holdfast_worker SET
  seen_at = (SELECT holdfast_now()), expires_at = (SELECT holdfast_now()) + :ttl, pausing = :pausing,
  overruns = :overruns
WHERE name = :name
  AND started_at = :started
RETURNING told

-- name: tell_worker
-- purpose: Tell a worker to go; the worker reads this at its next heartbeat
-- guards: The worker is alive
UPDATE holdfast_worker SET told = :told
WHERE name = :name
  AND expires_at > (SELECT holdfast_now())
RETURNING name

-- name: forget_worker
-- purpose: Delete a worker that has left
-- guards: The worker has that name and start time
DELETE FROM holdfast_worker
WHERE name = :name
  AND started_at = :started
RETURNING name

-- name: forget_dead_workers
-- purpose: Delete workers that vanished long ago
-- guards: The last heartbeat is older than the retention
DELETE FROM holdfast_worker
WHERE expires_at < (SELECT holdfast_now()) - :kept

-- name: list_workers
-- purpose: List the live workers, by name
SELECT * FROM holdfast_worker
WHERE expires_at > (SELECT holdfast_now())
ORDER BY name

-- name: attempts_of_workers
-- purpose: List the oldest running attempts of some workers, with the number of all that each has
SELECT id, run_id, worker, attempt, began_at, claimed FROM (
  SELECT id, run_id, worker, attempt, began_at, count(*) OVER (PARTITION BY worker) AS claimed,
    row_number() OVER (PARTITION BY worker ORDER BY began_at, id) AS place
  FROM (
    SELECT task.id, task.run_id, task.worker, task.attempt,
      (SELECT max(event.at) FROM holdfast_event AS event
       WHERE event.entity = task.id AND event.attempt = task.attempt AND event.to_status = 'running'
         AND event.from_status <> 'running') AS began_at
    FROM holdfast_task AS task
    WHERE task.lease_expires_at IS NOT NULL
      AND task.attempt >= 1
      AND task.worker IN (SELECT value FROM {each workers})) AS held) AS placed
WHERE place <= :most
ORDER BY worker, began_at, id

-- name: note_stops
-- purpose: Record that no process of an attempt runs any more, and how many processes had to be ended
-- guards: The task has had that attempt, and no stop is recorded for it
-- rows: task_id text, fence integer, struck integer, remaining integer
INSERT INTO holdfast_stop (task_id, attempt, stopped_at, ended, remaining)
SELECT r.task_id, r.fence, (SELECT holdfast_now()), r.struck, r.remaining
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
WHERE r.fence BETWEEN 1 AND task.attempt
ON CONFLICT (task_id, attempt) DO NOTHING
RETURNING task_id

-- name: stops_of
-- purpose: Read the recorded stops of the attempts of a task
SELECT attempt, stopped_at, ended, remaining FROM holdfast_stop WHERE task_id = :task_id
