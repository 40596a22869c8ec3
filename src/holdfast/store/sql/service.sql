-- name: run_ids_between
-- purpose: the first runs whose ids lie in a range, to find one by the beginning of its id
SELECT id FROM holdfast_run WHERE id >= :first AND id < :last ORDER BY id LIMIT :count

-- name: task_ids_between
-- purpose: the first tasks whose ids lie in a range, to find one by the beginning of its id
SELECT id FROM holdfast_task WHERE id >= :first AND id < :last ORDER BY id LIMIT :count

-- name: progress_of_runs
-- purpose: how much of some runs is done, counting what is done by somebody and not in groups, and
--   as one each workflow that is called
SELECT run_id, count(*) AS total, sum(CASE WHEN status = 'done' THEN 1 ELSE 0 END) AS done
FROM holdfast_task
WHERE run_id IN (SELECT value FROM {each ids})
  AND (kind <> 'group' OR calls IS NOT NULL)
  AND NOT superseded
GROUP BY run_id

-- name: outputs_of_runs
-- purpose: what the last steps of some completed runs gave
SELECT task.run_id, task.step, task.output
FROM holdfast_run AS run JOIN holdfast_task AS task ON task.run_id = run.id
WHERE run.id IN (SELECT value FROM {each ids})
  AND run.status = 'completed'
  AND task.parent_id IS NULL
  AND task.gives
ORDER BY task.run_id, task.id

-- name: usages_of_runs
-- purpose: what each attempt of some runs used up: as its end says, or so far
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
-- purpose: what each attempt of some tasks used up: as its end says, or so far
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
-- purpose: whether some runs have more tasks than so many
SELECT count(*) > :most AS many FROM (
  SELECT 1 FROM holdfast_task
  WHERE run_id IN (SELECT value FROM {each runs})
  LIMIT :most + 1) AS found

-- name: run_events_near
-- purpose: the first events of some runs and their tasks among all events of a range of numbers
SELECT * FROM holdfast_event
WHERE seq > :after
  AND seq <= :last
  AND run_id IN (SELECT value FROM {each runs})
ORDER BY seq LIMIT :count

-- name: run_events_after
-- purpose: the history of some runs and their tasks from an event on, looked up task by task: by the
--   plain number a database would rather walk past the events of everything else
SELECT * FROM holdfast_event
WHERE entity IN (
    SELECT value FROM {each runs}
    UNION ALL SELECT id FROM holdfast_task WHERE run_id IN (SELECT value FROM {each runs}))
  AND seq + 0 > :after
ORDER BY seq + 0 LIMIT :count

-- name: first_event_of
-- purpose: the number of the event with which a run or a task began
SELECT seq FROM holdfast_event WHERE entity = :entity AND version = 1

-- name: first_behind_gap
-- purpose: the first event of a range with a number missing between its beginning and the event; read
--   from the beginning up to there
SELECT seq FROM (
  SELECT seq, seq - row_number() OVER (ORDER BY seq) AS ahead FROM holdfast_event
  WHERE seq > :after
    AND seq <= :last) AS numbered
WHERE ahead > :after
ORDER BY seq LIMIT 1

-- name: task_events_after
-- purpose: the history of one task from an event on
SELECT * FROM holdfast_event WHERE entity = :task_id AND seq > :after ORDER BY version LIMIT :count

-- name: latest_events
-- purpose: the newest events of the whole store
SELECT * FROM holdfast_event ORDER BY seq DESC LIMIT :count

-- name: runs_ended_since
-- purpose: the newest of the runs that have ended since a moment; what they called is part of them
SELECT * FROM holdfast_run
WHERE finished_at >= :since
  AND parent_id IS NULL
ORDER BY id DESC LIMIT :count

-- name: lone_tasks_failed_since
-- purpose: the newest of the tasks without a run or a parent that have failed since a moment
SELECT * FROM holdfast_task
WHERE status = 'failed'
  AND status IN ('idle', 'queued', 'failed', 'cancelled')
  AND created_at >= 0
  AND run_id IS NULL
  AND parent_id IS NULL
  AND finished_at >= :since
ORDER BY id DESC LIMIT :count

-- name: tasks_below
-- purpose: all that counts of what is below a task without a run
SELECT * FROM holdfast_task
WHERE id IN (
    WITH RECURSIVE below (id) AS (
      SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = :task_id
      UNION SELECT child.id FROM holdfast_task AS child JOIN below ON child.parent_id = below.id)
    SELECT id FROM below)
  AND NOT superseded

-- name: tasks_for_people
-- purpose: the tasks that go on only when somebody approves or answers
SELECT * FROM holdfast_task
WHERE status IN ('idle', 'queued')
  AND status IN ('idle', 'queued', 'failed', 'cancelled')
  AND created_at >= 0
  AND NOT blocked
  AND run_holds = 0
  AND (kind = 'approval' OR (holds & 6) <> 0)
ORDER BY id LIMIT :count

-- name: steps_out_of_queue
-- purpose: the tasks of runs that go on only when somebody puts them in the queue; an item is started
--   by its loop
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
-- purpose: the tasks of one run, and of what it has called, that go on only when somebody approves
--   or answers; those of a run that is held too
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

-- name: known_workflows
-- purpose: every version of every workflow, the newest of each name first
SELECT name, version, created_at FROM holdfast_workflow ORDER BY name, created_at DESC, version

-- name: versions_of_workflow
-- purpose: the versions of one workflow, the newest first
SELECT name, version, created_at, definition FROM holdfast_workflow
WHERE name = :name
ORDER BY created_at DESC, version

-- name: workflows_since
-- purpose: the versions of all workflows that are not older than a moment
SELECT name, version, created_at FROM holdfast_workflow
WHERE created_at >= :since

-- name: leased_tasks
-- purpose: tasks that somebody works on just now
SELECT id, worker FROM holdfast_task
WHERE lease_expires_at > (SELECT holdfast_now())
  AND attempt >= 1
ORDER BY id LIMIT :count

-- name: events_within
-- purpose: the events in some ranges of numbers, both ends included
-- rows: first_seq integer, last_seq integer
SELECT event.* FROM {rows} AS r
  JOIN holdfast_event AS event ON event.seq BETWEEN r.first_seq AND r.last_seq
ORDER BY event.seq LIMIT :count

-- name: events_behind
-- purpose: the events behind one
SELECT * FROM holdfast_event WHERE seq > :after ORDER BY seq LIMIT :count

-- name: open_tasks_by_agent
-- purpose: how many tasks wait or run, by agent and by what they wait for
SELECT agent, state, count(*) AS tasks FROM (
  SELECT agent,
    CASE WHEN blocked THEN 'blocked' WHEN holds <> 0 OR run_holds <> 0 THEN 'held'
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

-- name: count_running_runs
-- purpose: how many runs have not ended
SELECT count(*) AS runs FROM holdfast_run
WHERE status = 'running'
  AND created_at >= 0
