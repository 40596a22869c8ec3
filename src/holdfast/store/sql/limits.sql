-- name: note_limit
-- purpose: keep until when an agent has reached its usage limit, and which task told so
-- guards: no later time was told
INSERT INTO holdfast_limit (agent, until, task_id)
VALUES (:agent, :until, :task_id)
ON CONFLICT (agent) DO UPDATE SET until = excluded.until, task_id = excluded.task_id
WHERE holdfast_limit.until < excluded.until

-- name: end_limit
-- purpose: have an agent be at no usage limit any more
-- guards: it is that agent
DELETE FROM holdfast_limit
WHERE agent = :agent
RETURNING agent

-- name: lifted_limits
-- purpose: whether there are usage limits that have lifted
SELECT agent FROM holdfast_limit
WHERE until <= (SELECT holdfast_now())
LIMIT 1

-- name: forget_limits
-- purpose: forget usage limits that have lifted; what another process has locked is left
-- guards: they have lifted
DELETE FROM holdfast_limit WHERE agent IN (
  SELECT over.agent FROM holdfast_limit AS over
  WHERE over.until <= (SELECT holdfast_now())
  {skip_locked over})

-- name: limit_of_agent
-- purpose: until when an agent is at its usage limit, and which task told so
SELECT until, task_id FROM holdfast_limit
WHERE agent = :agent
  AND until > (SELECT holdfast_now())

-- name: limits_now
-- purpose: the agents that are at their usage limits, and until when each is
SELECT agent, until FROM holdfast_limit
WHERE until > (SELECT holdfast_now())

-- name: waiting_tasks
-- purpose: the tasks of an agent that nothing but its usage limit keeps from being claimed
SELECT id FROM holdfast_task
WHERE agent = :agent
  AND status = 'queued'
  AND kind = 'work'
  AND NOT blocked
  AND holds = 0
  AND run_holds = 0
  AND due
  AND NOT parked
ORDER BY id

-- name: limited_tasks
-- purpose: the open tasks of an agent that a usage limit holds
SELECT id FROM holdfast_task
WHERE agent = :agent
  AND held_until IS NOT NULL
  AND (holds & 16) <> 0
  AND status IN ('idle', 'queued', 'running')
ORDER BY id
