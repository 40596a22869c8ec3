-- name: claim_tasks
-- purpose: Claim the first ready tasks of one line for a worker (queued → running)
-- guards: Every clause holds for the row itself, and is checked again when the row is locked. A task
--   with a concurrency key is claimed only when this transaction holds the counter of the key. A worker
--   that has not looked for keys and tags claims nothing while a ready task that is not bare has any
-- changes: task
-- event: 'task.running'
-- returning: parent_id, parent_epoch, step, run_now, priority, position, concurrency_key, timeout,
--   item, lease_expires_at, epoch, payload, feedback, CASE WHEN step IS NULL THEN title END AS name,
--   (version > 2 OR (SELECT need_id FROM holdfast_need WHERE task_id = holdfast_task.id LIMIT 1) IS NOT NULL) AS needy,
--   EXISTS (SELECT 1 FROM holdfast_need AS waiting WHERE waiting.need_id = holdfast_task.id) AS needed
-- A line is one agent and one set of tags; a claim reads one half of it: bare tasks, which name no
-- function, or the others. LIMIT 0 spares an agent at its usage limit the walk through its tasks.
-- `needy` looks for needs only where the row has not changed since its creation: the needs of a
-- changed row may be too new for this snapshot.
WITH candidate AS MATERIALIZED (
  SELECT id, concurrency_key, run_now, priority, position
  FROM holdfast_task
  WHERE status = 'queued' -- clause: status
    AND kind = 'work' -- clause: kind
    AND NOT blocked -- clause: needs
    AND holds = 0 -- clause: holds
    AND run_holds = 0 -- clause: run
    AND (due AND (scheduled_for IS NULL OR scheduled_for <= (SELECT holdfast_now()))) -- clause: due
    AND agent = :agent -- clause: agent
    AND NOT EXISTS (SELECT 1 FROM holdfast_limit AS reached WHERE reached.agent = :agent AND reached.until > (SELECT holdfast_now())) -- clause: usage
    AND (tags = '[]' OR holdfast_within(tags, :tags)) -- clause: tags
    AND (concurrency_key IS NULL OR EXISTS (SELECT 1 FROM holdfast_slot AS slot WHERE slot.key = holdfast_task.concurrency_key AND slot.used < slot.capacity)) -- clause: slot
    AND (concurrency_key IS NULL OR concurrency_key IN (SELECT value FROM {each keys}))
    AND tags = :line
    AND NOT parked
    AND bare = :bare
    AND id NOT IN (SELECT value FROM {each passed})
    AND (:peeked OR NOT EXISTS (SELECT 1 FROM holdfast_task AS special WHERE special.agent = :agent AND (special.concurrency_key IS NOT NULL OR special.tags <> '[]') AND special.status = 'queued' AND special.kind = 'work' AND NOT special.blocked AND special.holds = 0 AND special.run_holds = 0 AND special.due AND NOT special.parked AND NOT special.bare))
  ORDER BY run_now DESC, priority DESC, position, id
  LIMIT CASE WHEN EXISTS (SELECT 1 FROM holdfast_limit AS reached WHERE reached.agent = :agent AND reached.until > (SELECT holdfast_now())) THEN 0 ELSE :count END {skip_locked}
),
placed AS (
  SELECT id, slot.capacity - slot.used AS room, row_number() OVER (
    PARTITION BY concurrency_key ORDER BY run_now DESC, priority DESC, position, id) AS place
  FROM candidate JOIN holdfast_slot AS slot ON slot.key = concurrency_key
),
chosen AS (
  SELECT id FROM candidate
  WHERE concurrency_key IS NULL
  UNION ALL
  SELECT id FROM placed
  WHERE place <= room
)
UPDATE holdfast_task SET
  status = 'running',
  attempt = attempt + 1,
  worker = :worker,
  lease_expires_at = (SELECT holdfast_now()) + :lease, leased_at = (SELECT holdfast_now()),
  started_at = COALESCE(started_at, (SELECT holdfast_now())),
  spent = holdfast_task.spent + {cost holdfast_task}, usage = NULL,
  progress = NULL, waits_for = NULL,
  version = version + 1, previous = status,
  changed_by = :worker, changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT id FROM chosen)

-- name: hand_on
-- purpose: Unblock tasks whose needs are now done, and start those that the worker has room for, in one change
-- guards: The task is idle or queued and blocked, and all its needs are done. To start, a task also
--   fulfils every clause of claim_tasks, belongs to a run that this transaction has locked, has no
--   attempt yet, no key and no tags, and is not bare; no task before it is ready, no ready task has a
--   key or tags, and only work tasks without a condition are unblocked with it
-- changes: task
-- event: CASE WHEN status = 'running' THEN 'task.running' ELSE 'task.unblocked' END
-- data: '{"blocked":false}'
-- returning: kind, conditional, blocked, run_holds, concurrency_key, parent_id, waits_for,
--   (total IS NOT NULL OR item IS NOT NULL) AS begun, parent_epoch, step, run_now, priority, position,
--   timeout, item, lease_expires_at, epoch, payload, feedback,
--   CASE WHEN step IS NULL THEN title END AS name, true AS needy,
--   (SELECT CASE WHEN count(*) = 1 THEN min(need_id) END FROM holdfast_need WHERE task_id = holdfast_task.id) AS need,
--   EXISTS (SELECT 1 FROM holdfast_need AS waiting WHERE waiting.need_id = holdfast_task.id) AS needed
-- Bare tasks, which name no function, wait in their own half of the line, before no other task.
-- A group or a condition that is unblocked too may lead to tasks that stand before the started one.
WITH ripe AS MATERIALIZED (
  SELECT task.id, task.run_id, task.step, task.status, task.kind, false AS blocked, task.holds, task.run_holds,
    task.due, task.scheduled_for, task.agent, task.tags, task.concurrency_key, task.attempt,
    task.run_now, task.priority, task.position, task.conditional, task.bare
  FROM holdfast_task AS task
  WHERE task.id IN (SELECT task_id FROM holdfast_need WHERE need_id IN (SELECT value FROM {each ids}))
    AND NOT {waiting task}
),
front AS MATERIALIZED (
  SELECT run_now, priority, position, id FROM holdfast_task
  WHERE agent = :agent
    AND tags = '[]'
    AND status = 'queued'
    AND kind = 'work'
    AND NOT blocked
    AND holds = 0
    AND run_holds = 0
    AND due
    AND NOT parked
    AND bare = false
  ORDER BY run_now DESC, priority DESC, position, id
  LIMIT 1
),
taken AS (
  SELECT holdfast_task.id
  FROM ripe AS holdfast_task LEFT JOIN front ON true
  WHERE {clauses claim_tasks}
    AND (run_id IN (SELECT value FROM {each runs})) IS TRUE
    AND attempt = 0
    AND NOT bare
    AND tags = '[]'
    AND concurrency_key IS NULL
    AND NOT EXISTS (SELECT 1 FROM ripe AS other WHERE other.kind <> 'work' OR other.conditional)
    AND (front.id IS NULL OR (front.run_now, front.priority, holdfast_task.position, holdfast_task.id) < (holdfast_task.run_now, holdfast_task.priority, front.position, front.id))
    AND NOT EXISTS (SELECT 1 FROM holdfast_task AS special WHERE special.agent = :agent AND (special.concurrency_key IS NOT NULL OR special.tags <> '[]') AND special.status = 'queued' AND special.kind = 'work' AND NOT special.blocked AND special.holds = 0 AND special.run_holds = 0 AND special.due AND NOT special.parked AND NOT special.bare)
  ORDER BY holdfast_task.run_now DESC, holdfast_task.priority DESC, holdfast_task.position, holdfast_task.id
  LIMIT :count
)
UPDATE holdfast_task SET
  blocked = false,
  status = CASE WHEN r.starts THEN 'running' ELSE status END,
  attempt = attempt + CASE WHEN r.starts THEN 1 ELSE 0 END,
  worker = CASE WHEN r.starts THEN :worker ELSE worker END,
  lease_expires_at = CASE WHEN r.starts THEN (SELECT holdfast_now()) + :lease END,
  leased_at = CASE WHEN r.starts THEN (SELECT holdfast_now()) END,
  started_at = CASE WHEN r.starts THEN (SELECT holdfast_now()) ELSE started_at END,
  version = version + 1, previous = status,
  changed_by = CASE WHEN r.starts THEN :worker ELSE 'advance' END,
  changed_at = (SELECT holdfast_now())
FROM (
  SELECT id, max(place) = 1 AS starts
  FROM (SELECT id, 0 AS place FROM ripe UNION ALL SELECT id, 1 AS place FROM taken) AS found
  GROUP BY id) AS r
WHERE holdfast_task.id = r.id
  AND blocked
  AND status IN ('idle', 'queued')

-- name: claim_task_by_id
-- purpose: Claim one named task for a worker, whatever its position (queued or idle → running)
-- guards: The clauses of claim_tasks hold, except order and idle
-- changes: task
-- event: 'task.running'
-- returning: parent_id, parent_epoch, step, run_now, priority, position, concurrency_key, timeout,
--   item, lease_expires_at, epoch, payload, feedback, CASE WHEN step IS NULL THEN title END AS name,
--   (version > 2 OR (SELECT need_id FROM holdfast_need WHERE task_id = holdfast_task.id LIMIT 1) IS NOT NULL) AS needy,
--   EXISTS (SELECT 1 FROM holdfast_need AS waiting WHERE waiting.need_id = holdfast_task.id) AS needed
UPDATE holdfast_task SET
  status = 'running',
  due = true, parked = false,
  attempt = attempt + 1,
  worker = :worker,
  lease_expires_at = (SELECT holdfast_now()) + :lease, leased_at = (SELECT holdfast_now()),
  started_at = COALESCE(started_at, (SELECT holdfast_now())),
  spent = holdfast_task.spent + {cost holdfast_task}, usage = NULL,
  progress = NULL, waits_for = NULL,
  version = version + 1, previous = status,
  changed_by = :worker, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('queued', 'idle')
  AND kind = 'work'
  AND NOT blocked
  AND holds = 0
  AND run_holds = 0
  AND CASE WHEN scheduled_for IS NULL THEN due ELSE scheduled_for <= (SELECT holdfast_now()) END
  AND planning_phase = 'none'
  AND agent IN (SELECT value FROM {each agents})
  AND NOT EXISTS (SELECT 1 FROM holdfast_limit AS reached WHERE reached.agent = holdfast_task.agent AND reached.until > (SELECT holdfast_now()))
  AND (tags = '[]' OR holdfast_within(tags, :tags))
  AND (concurrency_key IS NULL OR EXISTS (SELECT 1 FROM holdfast_slot AS slot WHERE slot.key = holdfast_task.concurrency_key AND slot.used < slot.capacity))

-- name: ready_agents
-- purpose: List the agents that have ready tasks, for a worker that serves every agent
-- The recursion goes from one agent to the next, because an agent may have thousands of tasks.
WITH RECURSIVE ready (agent) AS (
  SELECT (
    SELECT task.agent FROM holdfast_task AS task
    WHERE task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due AND NOT task.parked
    ORDER BY task.agent LIMIT 1)
  UNION ALL
  SELECT (
    SELECT task.agent FROM holdfast_task AS task
    WHERE task.agent > ready.agent AND task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due AND NOT task.parked
    ORDER BY task.agent LIMIT 1)
  FROM ready WHERE ready.agent IS NOT NULL)
SELECT agent FROM ready WHERE agent IS NOT NULL

-- name: lines
-- purpose: List the lines of ready tasks that a worker may serve: an agent below its limit, and a set of tags
-- The recursion goes from one line to the next, because a line may hold thousands of tasks.
WITH RECURSIVE line (agent, tags) AS (
  SELECT served.value, (
    SELECT task.tags FROM holdfast_task AS task
    WHERE task.agent = served.value AND task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due AND NOT task.parked
    ORDER BY task.tags LIMIT 1)
  FROM {each agents} AS served
  WHERE NOT EXISTS (SELECT 1 FROM holdfast_limit AS reached WHERE reached.agent = served.value AND reached.until > (SELECT holdfast_now()))
  UNION ALL
  SELECT line.agent, (
    SELECT task.tags FROM holdfast_task AS task
    WHERE task.agent = line.agent AND task.tags > line.tags AND task.status = 'queued'
      AND task.kind = 'work' AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0
      AND task.due AND NOT task.parked
    ORDER BY task.tags LIMIT 1)
  FROM line WHERE line.tags IS NOT NULL)
SELECT agent, tags FROM line
WHERE CASE WHEN tags IS NULL THEN false WHEN tags = '[]' THEN true ELSE holdfast_within(tags, :tags) END
ORDER BY agent, tags

-- name: special_waits
-- purpose: Tell whether a ready task that is not bare has a key or tags, so that a claim has to look at all lines
SELECT EXISTS (SELECT 1 FROM holdfast_task AS special WHERE special.agent = :agent AND (special.concurrency_key IS NOT NULL OR special.tags <> '[]') AND special.status = 'queued' AND special.kind = 'work' AND NOT special.blocked AND special.holds = 0 AND special.run_holds = 0 AND special.due AND NOT special.parked AND NOT special.bare) AS waits

-- name: peek_tasks
-- purpose: Read the first ready tasks of one line, to split a claim among lines and to lock their counters
SELECT agent, tags, bare, run_now, priority, position, id, concurrency_key
FROM holdfast_task
WHERE {clauses claim_tasks}
  AND tags = :line
  AND NOT parked
  AND bare = :bare
ORDER BY run_now DESC, priority DESC, position, id
LIMIT :count

-- name: keys_of_tasks
-- purpose: List the concurrency keys of some tasks, to lock the counters before a claim
SELECT DISTINCT concurrency_key FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})
  AND concurrency_key IS NOT NULL

-- name: needed_outputs
-- purpose: Read the outputs of the needs of some tasks, and of what these verified, for the worker
SELECT need.task_id, needed.id, needed.step, needed.parent_id, needed.item, needed.output
FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
WHERE need.task_id IN (SELECT value FROM {each ids})
UNION ALL
SELECT need.task_id, subject.id, subject.step, subject.parent_id, subject.item, subject.output
FROM holdfast_need AS need JOIN holdfast_task AS judge ON judge.id = need.need_id
  JOIN holdfast_task AS subject ON subject.id = judge.verifies
WHERE need.task_id IN (SELECT value FROM {each ids})

-- name: items_around
-- purpose: Read the values and feedback of the items and groups around some tasks, the nearest first
WITH RECURSIVE above (root, id, parent_id, payload, feedback, depth) AS (
  SELECT task.id, task.id, task.parent_id, task.payload, task.feedback, 0
  FROM holdfast_task AS task
  WHERE task.id IN (SELECT value FROM {each ids})
    AND task.item IS NOT NULL
  UNION ALL
  SELECT above.root, task.id, task.parent_id, NULL, task.feedback, above.depth + 1
  FROM holdfast_task AS task JOIN above ON task.id = above.parent_id)
SELECT root, payload, feedback FROM above ORDER BY root, depth

-- name: needed_around
-- purpose: Read the outputs of the needs of a task and of the groups around it, with the distance of each
WITH RECURSIVE above (id, parent_id, depth) AS (
  SELECT task.id, task.parent_id, 0 FROM holdfast_task AS task WHERE task.id = :task_id
  UNION ALL
  SELECT task.id, task.parent_id, above.depth + 1 FROM holdfast_task AS task JOIN above ON task.id = above.parent_id)
SELECT above.depth, above.parent_id AS around, needed.id, needed.step, needed.parent_id, needed.item, needed.output
FROM above JOIN holdfast_need AS need ON need.task_id = above.id
  JOIN holdfast_task AS needed ON needed.id = need.need_id
UNION ALL
SELECT above.depth, above.parent_id, subject.id, subject.step, subject.parent_id, subject.item, subject.output
FROM above JOIN holdfast_need AS need ON need.task_id = above.id
  JOIN holdfast_task AS judge ON judge.id = need.need_id
  JOIN holdfast_task AS subject ON subject.id = judge.verifies

-- name: run_facts
-- purpose: Read the columns of some runs that never change, for workers and loops
SELECT id, workflow, workflow_version, key, input, root_id, depth, budget_usd_per_attempt,
  budget_usd IS NOT NULL OR budget_attempts IS NOT NULL AS limited, concurrency_key IS NOT NULL AS keyed
FROM holdfast_run
WHERE id IN (SELECT value FROM {each ids})

-- name: mark_due
-- purpose: Mark scheduled tasks whose time has come as due, without a version or an event
-- guards: The task is queued and not due, and its time has passed
UPDATE holdfast_task SET due = true
WHERE id IN (
  SELECT id FROM holdfast_task
  WHERE status = 'queued'
    AND NOT due
    AND scheduled_for <= (SELECT holdfast_now())
  ORDER BY scheduled_for LIMIT :count {skip_locked})
RETURNING id

-- name: renew_leases
-- purpose: Renew the leases of running attempts, with progress and usage, without a version or an event
-- guards: The task is running under this fence, and its lease has not expired
-- rows: task_id text, fence integer, lease integer, note text, spent text
UPDATE holdfast_task SET
  lease_expires_at = (SELECT holdfast_now()) + r.lease, leased_at = (SELECT holdfast_now()),
  progress = COALESCE(r.note, progress),
  usage = COALESCE(r.spent, usage)
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND lease_expires_at > (SELECT holdfast_now())
RETURNING id, run_id, lease_expires_at

-- name: complete_tasks
-- purpose: Complete running tasks with the results that their attempts report (running → done)
-- guards: The task is running under this fence; a verifier completes only with a verdict that accepts,
--   and a step that declares an output only with a checked result
-- rows: task_id text, fence integer, result text, digest text, spent text,
--   accepts boolean, checked boolean
-- changes: task
-- event: 'task.done'
-- data: '{"digest":"' || result_digest || '"' || COALESCE(',"usage":' || usage, '') || '}'
-- returning: concurrency_key, parent_id, step, verifies, EXISTS (SELECT 1 FROM holdfast_hook) AS hooked
UPDATE holdfast_task SET
  status = 'done',
  output = r.result, result_digest = r.digest, usage = COALESCE(r.spent, usage), error = NULL,
  lease_expires_at = NULL, finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = worker, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND (verifies IS NULL OR r.accepts)
  AND (NOT declares OR r.checked)

-- name: fail_tasks
-- purpose: Fail an attempt: retry its task later while the budget lasts (→ queued), else fail it (→ failed)
-- guards: The task is running under this fence; a final failure is left to another statement unless
--   on_failure is fail
-- rows: task_id text, fence integer, problem text, digest text, retryable boolean, jitter real,
--   spent text
-- changes: task
-- event: CASE WHEN status = 'queued' THEN 'task.retrying' ELSE 'task.failed' END
-- data: '{"failures":' || failures || ',"scheduled_for":'
--   || COALESCE(CAST(scheduled_for AS text), 'null') || ',"digest":"' || result_digest
--   || '","error":' || error || COALESCE(',"usage":' || usage, '')
--   || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END || '}'
-- returning: concurrency_key, parent_id
UPDATE holdfast_task SET
  status = CASE WHEN r.retryable AND failures + 1 < max_attempts THEN 'queued' ELSE 'failed' END,
  failures = failures + 1, blocked = {waiting holdfast_task},
  error = r.problem, result_digest = r.digest, usage = COALESCE(r.spent, usage), output = NULL,
  due = NOT (r.retryable AND failures + 1 < max_attempts),
  scheduled_for = CASE WHEN r.retryable AND failures + 1 < max_attempts THEN
    (SELECT holdfast_now()) + CAST(floor(r.jitter * CASE
      WHEN backoff = 0 THEN 0
      WHEN failures >= 40 OR backoff >= (backoff_max >> failures) THEN backoff_max
      ELSE backoff << failures END) AS bigint) END,
  finished_at = CASE WHEN r.retryable AND failures + 1 < max_attempts THEN NULL
    ELSE (SELECT holdfast_now()) END,
  lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = worker, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND (on_failure = 'fail' OR (r.retryable AND failures + 1 < max_attempts))

-- name: release_tasks
-- purpose: Release running tasks that a worker gives back (running → queued); no budget is charged
-- guards: The task is running under this fence
-- rows: task_id text, fence integer, until integer, spent text
-- changes: task
-- event: 'task.released'
-- data: '{"scheduled_for":' || COALESCE(CAST(scheduled_for AS text), 'null')
--   || COALESCE(',"usage":' || usage, '') || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END
--   || COALESCE((SELECT ',"draft":"' || made.sha || '"' FROM holdfast_commit AS made WHERE made.task_id = holdfast_task.id AND made.attempt = holdfast_task.attempt AND made.kind = 'draft'), '') || '}'
-- returning: concurrency_key, parent_id, agent
UPDATE holdfast_task SET
  status = 'queued', blocked = {waiting holdfast_task},
  due = (r.until IS NULL), scheduled_for = r.until,
  usage = COALESCE(r.spent, usage),
  lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = worker, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence

-- name: expired_tasks
-- purpose: List the running tasks whose lease has expired, the longest expired first
SELECT id, attempt
FROM holdfast_task
WHERE created_at >= 0
  AND lease_expires_at <= (SELECT holdfast_now())
ORDER BY lease_expires_at, id
LIMIT :count

-- name: leases_ahead
-- purpose: List the running tasks whose lease was taken or renewed before the clock was set back
SELECT id, attempt
FROM holdfast_task
WHERE created_at >= 0
  AND lease_expires_at > (SELECT holdfast_now())
  AND leased_at > (SELECT holdfast_now())
ORDER BY lease_expires_at, id
LIMIT :count

-- name: shorten_leases
-- purpose: Shorten leases taken before the clock was set back: each lasts its full time from now
-- guards: The lease was taken or renewed later than now
UPDATE holdfast_task SET
  lease_expires_at = lease_expires_at - leased_at + (SELECT holdfast_now()),
  leased_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND leased_at > (SELECT holdfast_now())
RETURNING id

-- name: lose_tasks
-- purpose: Requeue tasks whose attempts vanished (running → queued), or fail those that vanished too often
-- guards: The task is running under this fence and its lease is still expired, so that a renewal in
--   between wins; a final loss is left to another statement unless on_failure is fail
-- rows: task_id text, fence integer, problem text
-- changes: task
-- event: CASE WHEN status = 'queued' THEN 'task.lost' ELSE 'task.failed' END
-- data: '{"lost":' || lost || ',"scheduled_for":null' || COALESCE(',"usage":' || usage, '')
--   || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END || '}'
-- returning: concurrency_key, parent_id
UPDATE holdfast_task SET
  status = CASE WHEN lost + 1 < max_lost THEN 'queued' ELSE 'failed' END,
  lost = lost + 1, blocked = {waiting holdfast_task},
  due = true, scheduled_for = NULL,
  error = r.problem, output = NULL,
  finished_at = CASE WHEN lost + 1 < max_lost THEN NULL ELSE (SELECT holdfast_now()) END,
  lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = 'recovery', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND lease_expires_at <= (SELECT holdfast_now())
  AND (on_failure = 'fail' OR lost + 1 < max_lost)

-- name: attempt_records
-- purpose: Read how some attempts ended, to answer a report that arrives again
-- rows: task_id text, fence integer
SELECT r.task_id, r.fence, task.status, task.attempt, task.lease_expires_at,
  (SELECT holdfast_now()) AS now,
  (SELECT event.type FROM holdfast_event AS event
   WHERE event.entity = r.task_id AND event.attempt = r.fence AND event.from_status = 'running'
     AND event.to_status <> 'running' ORDER BY event.version DESC LIMIT 1) AS type,
  (SELECT event.data FROM holdfast_event AS event
   WHERE event.entity = r.task_id AND event.attempt = r.fence AND event.from_status = 'running'
     AND event.to_status <> 'running' ORDER BY event.version DESC LIMIT 1) AS data
FROM {rows} AS r LEFT JOIN holdfast_task AS task ON task.id = r.task_id

-- name: lock_runs
-- purpose: Lock some runs and the runs of some tasks, in id order, root runs first, before any other lock
SELECT id FROM holdfast_run
WHERE id IN (
  SELECT task.run_id FROM holdfast_task AS task WHERE task.id IN (SELECT value FROM {each tasks})
  UNION SELECT value FROM {each runs}
  UNION SELECT called.id FROM holdfast_run AS called WHERE called.parent_id IN (SELECT value FROM {each tasks})
  UNION SELECT run.root_id FROM holdfast_run AS run WHERE run.id IN (
    SELECT task.run_id FROM holdfast_task AS task WHERE task.id IN (SELECT value FROM {each tasks})
    UNION SELECT value FROM {each runs}))
ORDER BY root_id IS NOT NULL, id {lock}

-- name: lock_needs
-- purpose: Lock the one row that lets a single transaction at a time add needs between existing tasks
SELECT name FROM holdfast_meta
WHERE name = 'secret' {lock}

-- name: lock_tasks
-- purpose: Lock some tasks in id order; without a run, also their dependents and all tasks around them
-- A subquery for each row keeps PostgreSQL from beginning with all tasks that have no run.
SELECT id FROM holdfast_task
WHERE id IN (
  SELECT value FROM {each tasks}
  UNION SELECT value FROM {each beside}
  UNION SELECT need.task_id FROM holdfast_need AS need
  WHERE need.need_id IN (SELECT value FROM {each tasks})
    AND (SELECT task.run_id FROM holdfast_task AS task WHERE task.id = need.task_id) IS NULL
  UNION SELECT id FROM (
    WITH RECURSIVE around (id) AS (
      SELECT (SELECT task.parent_id FROM holdfast_task AS task WHERE task.id = named.value AND task.run_id IS NULL)
      FROM {each tasks} AS named
      UNION SELECT (SELECT task.parent_id FROM holdfast_task AS task WHERE task.id = around.id)
      FROM around WHERE around.id IS NOT NULL)
    SELECT id FROM around) AS parents)
ORDER BY id {lock}

-- name: reached_tasks
-- purpose: List every task that a rollback of undone tasks reaches, and that a cancel of trees reaches
SELECT id FROM (
    WITH RECURSIVE above (id, parent_id) AS (
      SELECT named.id, named.parent_id FROM holdfast_task AS named WHERE named.id IN (SELECT value FROM {each undone})
      UNION SELECT parent.id, parent.parent_id FROM holdfast_task AS parent JOIN above ON parent.id = above.parent_id),
    reached (id) AS (
      SELECT above.id FROM above
      UNION SELECT following.id FROM reached JOIN (
        SELECT need.task_id AS id, need.need_id AS source FROM holdfast_need AS need
        UNION ALL SELECT child.id, child.parent_id FROM holdfast_task AS child) AS following
        ON following.source = reached.id)
    SELECT id FROM reached) AS rolled_back
UNION SELECT id FROM (
    WITH RECURSIVE tree (id) AS (
      SELECT top.id FROM holdfast_task AS top WHERE top.id IN (SELECT value FROM {each trees})
      UNION SELECT child.id FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
    SELECT id FROM tree) AS cancelled

-- name: lock_slots
-- purpose: Lock concurrency counters in key order, after every task
SELECT key FROM holdfast_slot
WHERE key IN (SELECT value FROM {each keys})
ORDER BY key {lock}

-- name: try_slots
-- purpose: Lock the concurrency counters, of some given, that no other transaction has locked
SELECT key FROM holdfast_slot
WHERE key IN (SELECT value FROM {each keys})
ORDER BY key {skip_locked}

-- name: take_slots
-- purpose: Count claimed tasks or admitted runs against their concurrency keys
-- guards: The counter stays within its capacity
-- rows: slot_key text, taken integer
UPDATE holdfast_slot SET used = used + r.taken
FROM {rows} AS r
WHERE key = r.slot_key
  AND used + r.taken <= capacity
RETURNING key

-- name: free_slots
-- purpose: Free the concurrency keys that ended tasks and runs held
-- guards: The counter does not fall below zero
-- rows: slot_key text, freed integer
UPDATE holdfast_slot SET used = used - r.freed
FROM {rows} AS r
WHERE key = r.slot_key
  AND used >= r.freed
RETURNING key

-- name: park_tasks
-- purpose: Park ready tasks whose concurrency key is full: out of the line, without a version or an event
-- guards: The task is ready and not parked, and its key has no room
UPDATE holdfast_task SET parked = true
WHERE id IN (
  SELECT id FROM holdfast_task
  WHERE concurrency_key IN (SELECT value FROM {each keys})
    AND status = 'queued'
    AND kind = 'work'
    AND NOT blocked
    AND holds = 0
    AND run_holds = 0
    AND due
    AND NOT parked
    AND EXISTS (SELECT 1 FROM holdfast_slot AS slot WHERE slot.key = holdfast_task.concurrency_key AND slot.used >= slot.capacity)
  LIMIT :count {skip_locked})
RETURNING id

-- name: parked_lines
-- purpose: List the lines (agent and tags) in which tasks are parked for a concurrency key
-- The recursion goes from one line to the next, because a line may hold thousands of tasks.
WITH RECURSIVE
served (agent) AS (
  SELECT (
    SELECT task.agent FROM holdfast_task AS task
    WHERE task.concurrency_key = :key AND task.parked AND task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due
    ORDER BY task.agent LIMIT 1)
  UNION ALL
  SELECT (
    SELECT task.agent FROM holdfast_task AS task
    WHERE task.concurrency_key = :key AND task.parked AND task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due
      AND task.agent > served.agent
    ORDER BY task.agent LIMIT 1)
  FROM served WHERE served.agent IS NOT NULL),
line (agent, tags) AS (
  SELECT served.agent, (
    SELECT task.tags FROM holdfast_task AS task
    WHERE task.concurrency_key = :key AND task.parked AND task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due
      AND task.agent = served.agent
    ORDER BY task.tags LIMIT 1)
  FROM served WHERE served.agent IS NOT NULL
  UNION ALL
  SELECT line.agent, (
    SELECT task.tags FROM holdfast_task AS task
    WHERE task.concurrency_key = :key AND task.parked AND task.status = 'queued' AND task.kind = 'work'
      AND NOT task.blocked AND task.holds = 0 AND task.run_holds = 0 AND task.due
      AND task.agent = line.agent AND task.tags > line.tags
    ORDER BY task.tags LIMIT 1)
  FROM line WHERE line.tags IS NOT NULL)
SELECT agent, tags FROM line WHERE tags IS NOT NULL

-- name: unpark_tasks
-- purpose: Unpark the first tasks of each line for the room under a concurrency key
-- guards: The task is parked and otherwise ready, in one of the given lines, and its key has room
-- rows: served text, labels text, half boolean
-- Every line gets tasks for all the room, because no statement can tell which lines a worker serves.
UPDATE holdfast_task SET parked = false
WHERE id IN (
  SELECT task.id FROM {rows} AS r CROSS JOIN holdfast_task AS task
  WHERE task.id IN (
    SELECT waiting.id FROM holdfast_task AS waiting
    WHERE waiting.concurrency_key = :key
      AND waiting.agent = r.served
      AND waiting.tags = r.labels
      AND waiting.bare = r.half
      AND waiting.parked
      AND waiting.status = 'queued'
      AND waiting.kind = 'work'
      AND NOT waiting.blocked
      AND waiting.holds = 0
      AND waiting.run_holds = 0
      AND waiting.due
      AND EXISTS (SELECT 1 FROM holdfast_slot AS slot WHERE slot.key = :key AND slot.used < slot.capacity)
    ORDER BY waiting.run_now DESC, waiting.priority DESC, waiting.position, waiting.id
    LIMIT :count {skip_locked}))
RETURNING id

-- name: define_slots
-- purpose: Create the counters of concurrency keys, or change their capacity; the newest capacity stands
-- guards: The key is new or its capacity changes, because a conflict would lock the counter even
--   without a change
-- rows: slot_key text, slot_capacity integer
INSERT INTO holdfast_slot (key, capacity, highest)
SELECT r.slot_key, r.slot_capacity, r.slot_capacity FROM {rows} AS r
WHERE NOT EXISTS (SELECT 1 FROM holdfast_slot AS known WHERE known.key = r.slot_key AND known.capacity = r.slot_capacity)
ON CONFLICT (key) DO UPDATE SET capacity = excluded.capacity, highest = CASE
  WHEN excluded.capacity > holdfast_slot.highest THEN excluded.capacity
  ELSE holdfast_slot.highest END
