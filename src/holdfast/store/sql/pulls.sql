-- name: pulls_of
-- purpose: Read the stored answers of claim requests that are made again
SELECT request, taken FROM holdfast_pull WHERE request IN (SELECT value FROM {each requests})

-- name: keep_pulls
-- purpose: Store the answers of claim requests, so that a repeated request gets the same tasks
-- guards: No other process has answered that request meanwhile
-- rows: request text, taken text
INSERT INTO holdfast_pull (request, taken, asked_at)
SELECT r.request, r.taken, (SELECT holdfast_now()) FROM {rows} AS r WHERE true ORDER BY r.request
ON CONFLICT (request) DO NOTHING
RETURNING request

-- name: forget_pulls
-- purpose: Delete old claim requests that are not made again
-- guards: The request is older than the retention
DELETE FROM holdfast_pull
WHERE asked_at < (SELECT holdfast_now()) - :kept

-- name: renew_pulled
-- purpose: Renew the leases of the tasks that a repeated claim request was given before
-- guards: The lease is held under this fence and not expired; rows that another process has locked are
--   skipped
-- rows: task_id text, fence integer
UPDATE holdfast_task SET
  lease_expires_at = (SELECT holdfast_now()) + :lease, leased_at = (SELECT holdfast_now())
WHERE id IN (
  SELECT task.id FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  WHERE task.attempt = r.fence
    AND task.lease_expires_at > (SELECT holdfast_now())
  {skip_locked task})
RETURNING id

-- name: held_again
-- purpose: Read the tasks that a repeated claim request was given before and that are still held
-- rows: task_id text, fence integer
SELECT task.*, task.id AS entity FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND task.lease_expires_at > (SELECT holdfast_now())
