-- name: run_ids_between
-- purpose: Find the first runs in a range of ids, to complete the beginning of an id
SELECT id FROM holdfast_run WHERE id >= :first AND id < :last ORDER BY id LIMIT :count

-- name: task_ids_between
-- purpose: Find the first tasks in a range of ids, to complete the beginning of an id
SELECT id FROM holdfast_task WHERE id >= :first AND id < :last ORDER BY id LIMIT :count

-- name: progress_of_runs
-- purpose: Count the tasks of some runs and the done ones; groups aside, a called workflow as one
SELECT run_id, count(*) AS total, sum(CASE WHEN status = 'done' THEN 1 ELSE 0 END) AS done
FROM holdfast_task
WHERE run_id IN (SELECT value FROM {each ids})
  AND (kind <> 'group' OR calls IS NOT NULL)
  AND NOT superseded
GROUP BY run_id

-- name: outputs_of_runs
-- purpose: Read the outputs of the last steps of some completed runs
SELECT task.run_id, task.step, task.output
FROM holdfast_run AS run JOIN holdfast_task AS task ON task.run_id = run.id
WHERE run.id IN (SELECT value FROM {each ids})
  AND run.status = 'completed'
  AND task.parent_id IS NULL
  AND task.gives
ORDER BY task.run_id, task.id

-- name: usages_of_runs
-- purpose: Read the usage of each attempt of some runs: from the event of its end, or so far
SELECT task.run_id AS owner, task.id, event.data, NULL AS usage
FROM holdfast_task AS task JOIN holdfast_event AS event ON event.entity = task.id
WHERE task.run_id IN (SELECT value FROM {each ids})
  AND (task.usage IS NOT NULL OR task.attempt > 1 OR task.epoch > 1)
  AND event.from_status = 'running'
  AND event.to_status <> 'running'
  AND event.data LIKE '%"usage":%'
UNION ALL
SELECT run_id, id, NULL, usage FROM holdfast_task
WHERE run_id IN (SELECT value FROM {each ids})
  AND status = 'running'
  AND usage IS NOT NULL

-- name: usages_of_tasks
-- purpose: Read the usage of each attempt of some tasks: from the event of its end, or so far
SELECT task.id AS owner, task.id, event.data, NULL AS usage
FROM holdfast_task AS task JOIN holdfast_event AS event ON event.entity = task.id
WHERE task.id IN (SELECT value FROM {each ids})
  AND event.from_status = 'running'
  AND event.to_status <> 'running'
  AND event.data LIKE '%"usage":%'
UNION ALL
SELECT id, id, NULL, usage FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'running'
  AND usage IS NOT NULL

-- name: are_many_tasks
-- purpose: Tell whether some runs have more tasks than a limit
SELECT count(*) > :most AS many FROM (
  SELECT 1 FROM holdfast_task
  WHERE run_id IN (SELECT value FROM {each runs})
  LIMIT :most + 1) AS found

-- name: run_events_near
-- purpose: List the first events of some runs and their tasks in a range of event numbers
SELECT * FROM holdfast_event
WHERE seq > :after
  AND seq <= :last
  AND run_id IN (SELECT value FROM {each runs})
ORDER BY seq LIMIT :count

-- name: run_events_after
-- purpose: List the events of some runs and their tasks after a number, looked up task by task
-- `seq + 0` keeps a database from walking the index of numbers past the events of all other runs.
SELECT * FROM holdfast_event
WHERE entity IN (
    SELECT value FROM {each runs}
    UNION ALL SELECT id FROM holdfast_task WHERE run_id IN (SELECT value FROM {each runs}))
  AND seq + 0 > :after
ORDER BY seq + 0 LIMIT :count

-- name: run_events_until
-- purpose: List the events of some runs and of all their tasks up to a number
SELECT * FROM holdfast_event
WHERE entity IN (
    SELECT value FROM {each runs}
    UNION ALL SELECT id FROM holdfast_task WHERE run_id IN (SELECT value FROM {each runs}))
  AND seq + 0 <= :until

-- name: all_needs_of
-- purpose: List the needs of some tasks, done or not, each with the version of the task that began it
SELECT task_id, need_id, since FROM holdfast_need WHERE task_id IN (SELECT value FROM {each ids})
ORDER BY task_id, need_id

-- name: event_from
-- purpose: Read the number and the time of the first event from a number on
SELECT seq, at FROM holdfast_event WHERE seq >= :seq ORDER BY seq LIMIT 1

-- name: activity_by_hour
-- purpose: Count what happened to runs and tasks since a moment, by hour and by the type of the event
SELECT at / 3600000000 AS hour, type, count(*) AS events FROM holdfast_event
WHERE seq >= :first
  AND at >= :since
  AND type IN ('run.started', 'run.completed', 'run.failed', 'run.cancelled',
    'task.done', 'task.failed', 'task.retrying', 'task.lost')
GROUP BY at / 3600000000, type

-- name: dispatches_since
-- purpose: List the latest attempts that began since a moment, each with the change before its claim
-- A step that began as soon as its last need was done waited for nobody: its event says so.
SELECT event.at, before.at AS ready_at, before.data AS readiness,
  event.data LIKE '%"blocked":%' AS direct
FROM holdfast_event AS event
  JOIN holdfast_event AS before ON before.entity = event.entity AND before.version = event.version - 1
WHERE event.seq >= :first
  AND event.at >= :since
  AND event.type = 'task.running'
ORDER BY event.seq DESC LIMIT :count

-- name: costs_by_day
-- purpose: Sum what ended attempts have cost since a moment, by day and by workflow, in millionths
SELECT priced.day, priced.workflow, sum(priced.usd) AS usd, count(*) AS attempts
FROM (
  SELECT spent.day, spent.workflow, {cost spent} AS usd
  FROM (
    SELECT (event.at + :offset) / 86400000000 AS day, run.workflow, {data usage} AS usage
    FROM holdfast_event AS event LEFT JOIN holdfast_run AS run ON run.id = event.run_id
    WHERE event.seq >= :first
      AND event.at >= :since
      AND event.from_status = 'running'
      AND event.to_status <> 'running'
      AND event.data LIKE '%"usage":%') AS spent) AS priced
GROUP BY priced.day, priced.workflow

-- name: first_event_of
-- purpose: Read the number of the first event of a run or task
SELECT seq FROM holdfast_event WHERE entity = :entity AND version = 1

-- name: first_behind_gap
-- purpose: Find the first event of a range that follows a missing number
SELECT seq FROM (
  SELECT seq, seq - row_number() OVER (ORDER BY seq) AS ahead FROM holdfast_event
  WHERE seq > :after
    AND seq <= :last) AS numbered
WHERE ahead > :after
ORDER BY seq LIMIT 1

-- name: task_events_after
-- purpose: List the events of one task after a number
SELECT * FROM holdfast_event WHERE entity = :task_id AND seq > :after ORDER BY version LIMIT :count

-- name: latest_events
-- purpose: List the newest events of the store
SELECT * FROM holdfast_event ORDER BY seq DESC LIMIT :count

-- name: titles_of
-- purpose: Read the steps and titles of some tasks, and the workflows of some runs
SELECT id, step, title FROM holdfast_task WHERE id IN (SELECT value FROM {each ids})
UNION ALL
SELECT id, NULL, workflow FROM holdfast_run WHERE id IN (SELECT value FROM {each ids})

-- name: runs_ended_since
-- purpose: List the newest runs that ended since a moment, called runs aside
SELECT * FROM holdfast_run
WHERE finished_at >= :since
  AND parent_id IS NULL
ORDER BY id DESC LIMIT :count

-- name: lone_tasks_failed_since
-- purpose: List the newest tasks without a run or parent that failed since a moment
SELECT * FROM holdfast_task
WHERE status = 'failed'
  AND status IN ('idle', 'queued', 'failed', 'cancelled')
  AND created_at >= 0
  AND run_id IS NULL
  AND parent_id IS NULL
  AND finished_at >= :since
ORDER BY id DESC LIMIT :count

-- name: tasks_below
-- purpose: List every task below a task without a run, superseded ones aside
SELECT * FROM holdfast_task
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = :task_id
      UNION SELECT child.id FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT id FROM below)
  AND NOT superseded

-- name: tasks_for_people
-- purpose: List the tasks that wait for an approval or an answer by a person
SELECT * FROM holdfast_task
WHERE status IN ('idle', 'queued')
  AND status IN ('idle', 'queued', 'failed', 'cancelled')
  AND created_at >= 0
  AND NOT blocked
  AND run_holds = 0
  AND (kind = 'approval' OR (holds & 6) <> 0)
ORDER BY id LIMIT :count

-- name: steps_out_of_queue
-- purpose: List the idle tasks of runs that a person has to queue; items aside, which their loop starts
SELECT * FROM holdfast_task
WHERE status = 'idle'
  AND status IN ('idle', 'queued', 'failed', 'cancelled')
  AND created_at >= 0
  AND run_id IS NOT NULL
  AND NOT blocked
  AND run_holds = 0
  AND (holds & 6) = 0
  AND (kind = 'work' OR (kind = 'group' AND item IS NULL))
ORDER BY id LIMIT :count

-- name: tasks_of_run_for_people
-- purpose: List the tasks of a run and its called runs that wait for a person, held runs included
SELECT * FROM holdfast_task
WHERE run_id IN (
    WITH RECURSIVE below (id) AS (
      SELECT named.id FROM holdfast_run AS named WHERE named.id = :run_id
      UNION SELECT run.id FROM below CROSS JOIN holdfast_run AS run
      WHERE run.parent_id IN (SELECT task.id FROM holdfast_task AS task WHERE task.run_id = below.id AND task.calls IS NOT NULL))
    SELECT id FROM below)
  AND status IN ('idle', 'queued')
  AND NOT blocked
  AND (kind = 'approval' OR (holds & 6) <> 0)
ORDER BY id LIMIT :count

-- name: tasks_of_runs_for_people
-- purpose: List the tasks of some runs that wait for a person; runs on hold aside
SELECT * FROM holdfast_task
WHERE run_id IN (SELECT value FROM {each ids})
  AND status IN ('idle', 'queued')
  AND status <> 'done'
  AND NOT blocked
  AND run_holds = 0
  AND (kind = 'approval' OR (holds & 6) <> 0)
ORDER BY id LIMIT :count

-- name: known_workflows
-- purpose: List every version of every workflow, the newest of each name first
SELECT name, version, created_at FROM holdfast_workflow ORDER BY name, created_at DESC, version

-- name: versions_of_workflow
-- purpose: List the versions of one workflow, the newest first
SELECT name, version, created_at, definition FROM holdfast_workflow
WHERE name = :name
ORDER BY created_at DESC, version

-- name: workflows_since
-- purpose: List the versions of all workflows that were added since a moment
SELECT name, version, created_at FROM holdfast_workflow
WHERE created_at >= :since

-- name: leased_tasks
-- purpose: List the tasks with a live lease, and their workers
SELECT id, worker FROM holdfast_task
WHERE lease_expires_at > (SELECT holdfast_now())
  AND attempt >= 1
ORDER BY id LIMIT :count

-- name: events_within
-- purpose: List the events in some ranges of numbers, both ends included
-- rows: first_seq integer, last_seq integer
SELECT event.* FROM {rows} AS r
  JOIN holdfast_event AS event ON event.seq BETWEEN r.first_seq AND r.last_seq
ORDER BY event.seq LIMIT :count

-- name: events_behind
-- purpose: List the events after a number
SELECT * FROM holdfast_event WHERE seq > :after ORDER BY seq LIMIT :count

-- name: open_tasks_by_agent
-- purpose: Count the queued and running tasks by agent and state: blocked, held, scheduled, ready, running
SELECT agent, state, count(*) AS tasks FROM (
  SELECT agent,
    CASE WHEN blocked THEN 'blocked' WHEN holds = 0 AND run_holds = 256 THEN 'scheduled'
      WHEN holds <> 0 OR run_holds <> 0 THEN 'held'
      WHEN NOT due THEN 'scheduled'
      WHEN agent IN (SELECT reached.agent FROM holdfast_limit AS reached WHERE reached.until > (SELECT holdfast_now())) THEN 'held'
      ELSE 'ready' END AS state
  FROM holdfast_task
  WHERE status = 'queued'
    AND status IN ('idle', 'queued', 'failed', 'cancelled')
    AND created_at >= 0
    AND kind = 'work'
  UNION ALL
  SELECT agent, 'running' FROM holdfast_task
  WHERE lease_expires_at IS NOT NULL
    AND attempt >= 1) AS waiting
GROUP BY agent, state
ORDER BY agent, state

-- name: ready_work
-- purpose: Count the ready tasks by agent and tags, bare ones apart, each with the first of its tasks
SELECT agent, tags, bare, count(*) AS tasks, min(id) AS first FROM (
  SELECT agent, tags, bare, id FROM holdfast_task
  WHERE status = 'queued'
    AND kind = 'work'
    AND NOT blocked
    AND holds = 0
    AND run_holds = 0
    AND due
    AND NOT parked
  LIMIT :most) AS ready
GROUP BY agent, tags, bare
ORDER BY agent, tags, bare

-- name: limited_work
-- purpose: Count the tasks that a usage limit keeps waiting by agent, with the end of their holds
SELECT agent, count(*) AS tasks, max(held_until) AS until FROM (
  SELECT agent, held_until FROM (
    SELECT agent, held_until FROM holdfast_task
    WHERE held_until IS NOT NULL
      AND (holds & 16) <> 0
      AND status IN ('idle', 'queued')
    LIMIT :most) AS held
  UNION ALL
  SELECT agent, held_until FROM (
    SELECT agent, held_until FROM holdfast_task
    WHERE status = 'queued'
      AND kind = 'work'
      AND NOT blocked
      AND holds = 0
      AND run_holds = 0
      AND due
      AND NOT parked
      AND agent IN (SELECT reached.agent FROM holdfast_limit AS reached WHERE reached.until > (SELECT holdfast_now()))
    LIMIT :most) AS ready) AS limited
GROUP BY agent
ORDER BY agent

-- name: steps_skipped_after_failure
-- purpose: List the steps that on_failure skipped in runs that run, or have ended since a moment
SELECT run.workflow, task.run_id, task.step
FROM holdfast_run AS run JOIN holdfast_task AS task ON task.run_id = run.id
WHERE (run.status = 'running' OR run.finished_at >= :since)
  AND task.skipped
  AND task.error IS NOT NULL
  AND NOT task.superseded
ORDER BY run.workflow, task.run_id, task.id LIMIT :most

-- name: count_running_runs
-- purpose: Count the running runs
SELECT count(*) AS runs FROM holdfast_run
WHERE status = 'running'
  AND created_at >= 0
