-- name: pulls_of
-- purpose: what was claimed before for requests that are made again
SELECT request, taken FROM holdfast_pull WHERE request IN (SELECT value FROM {each requests})

-- name: keep_pulls
-- purpose: remember what was claimed for requests, so that the same one again gets the same
-- guards: another process has not served that request meanwhile
-- rows: request text, taken text
INSERT INTO holdfast_pull (request, taken, asked_at)
SELECT r.request, r.taken, (SELECT holdfast_now()) FROM {rows} AS r WHERE true ORDER BY r.request
ON CONFLICT (request) DO NOTHING
RETURNING request

-- name: forget_pulls
-- purpose: forget requests that nobody makes again
-- guards: as long ago as they are kept
DELETE FROM holdfast_pull
WHERE asked_at < (SELECT holdfast_now()) - :kept

-- name: renew_pulled
-- purpose: a whole lease for what a request that is made again was given: who asks counts from now
-- guards: held under this fence, and not expired; what another process has locked is left
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
-- purpose: tasks that were claimed for a request that is made again, as they are held still
-- rows: task_id text, fence integer
SELECT task.*, task.id AS entity FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND task.lease_expires_at > (SELECT holdfast_now())
