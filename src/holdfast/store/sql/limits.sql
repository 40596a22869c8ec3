-- name: note_limit
-- purpose: Record until when an agent is at its usage limit, and which task met the limit
-- guards: No later time is recorded
INSERT INTO holdfast_limit (agent, until, task_id)
VALUES (:agent, :until, :task_id)
ON CONFLICT (agent) DO UPDATE SET until = excluded.until, task_id = excluded.task_id
WHERE holdfast_limit.until < excluded.until

-- name: end_limit
-- purpose: End the usage limit of an agent
-- guards: The row is that of the agent
DELETE FROM holdfast_limit
WHERE agent = :agent
RETURNING agent

-- name: lifted_limits
-- purpose: Tell whether any usage limit has ended
SELECT agent FROM holdfast_limit
WHERE until <= (SELECT holdfast_now())
LIMIT 1

-- name: forget_limits
-- purpose: Delete usage limits that have ended; rows that another process has locked are skipped
-- guards: The limit has ended
DELETE FROM holdfast_limit WHERE agent IN (
  SELECT over.agent FROM holdfast_limit AS over
  WHERE over.until <= (SELECT holdfast_now())
  {skip_locked over})

-- name: limit_of_agent
-- purpose: Read until when an agent is at its usage limit, and which task met the limit
SELECT until, task_id FROM holdfast_limit
WHERE agent = :agent
  AND until > (SELECT holdfast_now())

-- name: limits_now
-- purpose: List the agents at their usage limit, with the end of each limit
SELECT agent, until FROM holdfast_limit
WHERE until > (SELECT holdfast_now())

-- name: waiting_tasks
-- purpose: List the tasks of an agent that are ready but for the agent's usage limit
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
-- purpose: List the open tasks of an agent that are on hold limit
SELECT id FROM holdfast_task
WHERE agent = :agent
  AND held_until IS NOT NULL
  AND (holds & 16) <> 0
  AND status IN ('idle', 'queued', 'running')
ORDER BY id
