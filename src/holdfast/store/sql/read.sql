-- name: store_secret
-- purpose: Read the secret of the store, from which attempt tokens are made
SELECT value FROM holdfast_meta WHERE name = 'secret'

-- name: now
-- purpose: Read the clock of the database
SELECT holdfast_now() AS now

-- name: task_by_id
-- purpose: Read one task
SELECT * FROM holdfast_task WHERE id = :task_id

-- name: creator_of_task
-- purpose: Read who created a task
SELECT actor FROM holdfast_event WHERE entity = :task_id AND version = 1

-- name: tasks_by_id
-- purpose: Read some tasks
SELECT * FROM holdfast_task WHERE id IN (SELECT value FROM {each ids})

-- name: run_by_id
-- purpose: Read one run
SELECT * FROM holdfast_run WHERE id = :run_id

-- name: runs_by_id
-- purpose: Read some runs
SELECT * FROM holdfast_run WHERE id IN (SELECT value FROM {each ids})

-- name: run_tasks
-- purpose: List the tasks of a run, in the order of creation
SELECT * FROM holdfast_task WHERE run_id = :run_id ORDER BY id

-- name: tasks_of_runs
-- purpose: List the tasks of some runs, in the order of creation
SELECT * FROM holdfast_task WHERE run_id IN (SELECT value FROM {each ids}) ORDER BY id

-- name: holders_of_key
-- purpose: Find the run and the task that have a key, and those that had it and were removed
SELECT id, workflow AS name, status, CAST(NULL AS bigint) AS removed_at FROM holdfast_run WHERE key = :key
UNION ALL
SELECT id, title, status, NULL FROM holdfast_task WHERE key = :key
UNION ALL
SELECT entity, name, status, removed_at FROM holdfast_tombstone
WHERE kind IN ('run', 'task')
  AND key = :key

-- name: keys_near
-- purpose: List some keys of runs and tasks before and after a text, each part by the index of keys
SELECT key FROM (SELECT key FROM holdfast_run WHERE key >= :key ORDER BY key LIMIT :count) AS runs_after
UNION
SELECT key FROM (SELECT key FROM holdfast_run WHERE key < :key ORDER BY key DESC LIMIT :count) AS runs_before
UNION
SELECT key FROM (SELECT key FROM holdfast_task WHERE key >= :key ORDER BY key LIMIT :count) AS tasks_after
UNION
SELECT key FROM (SELECT key FROM holdfast_task WHERE key < :key ORDER BY key DESC LIMIT :count) AS tasks_before
ORDER BY key

-- name: list_runs
-- purpose: List a page of runs, newest first, with or without called runs
SELECT * FROM holdfast_run
WHERE id < :after
  AND id >= :first
  AND {matching_run holdfast_run}
ORDER BY id DESC LIMIT :count

-- name: list_runs_by_status
-- purpose: List a page of the runs in one status, newest first, with the index of that status
SELECT * FROM holdfast_run
WHERE id < :after
  AND id >= :first
  AND status = :status
  AND created_at >= 0
  AND {matching_run holdfast_run}
ORDER BY id DESC LIMIT :count

-- name: list_runs_of_workflow
-- purpose: List a page of the runs of one workflow, newest first, with the index of workflows
SELECT * FROM holdfast_run
WHERE id < :after
  AND id >= :first
  AND workflow = :workflow
  AND created_at >= 0
  AND {matching_run holdfast_run}
ORDER BY id DESC LIMIT :count

-- name: list_runs_of_label
-- purpose: List a page of the runs with a label, newest first, with the index of labels
SELECT run.* FROM holdfast_label AS label JOIN holdfast_run AS run ON run.id = label.entity
WHERE label.name = :label
  AND label.value = :value
  AND label.entity < :after
  AND label.entity >= :first
  AND {matching_run run}
ORDER BY label.entity DESC LIMIT :count

-- name: list_runs_of_key
-- purpose: List the run that has a key, unless another filter of the page leaves it out
SELECT * FROM holdfast_run
WHERE key = :key
  AND id < :after
  AND id >= :first
  AND {matching_run holdfast_run}
LIMIT :count

-- name: count_runs
-- purpose: Count the runs that fit, by their status
SELECT run.status, count(*) AS runs FROM holdfast_run AS run
WHERE run.id < :after
  AND run.id >= :first
  AND {matching_run run}
GROUP BY run.status

-- name: count_runs_of_workflow
-- purpose: Count the runs of one workflow that fit, by their status, with the index of workflows
SELECT run.status, count(*) AS runs FROM holdfast_run AS run
WHERE run.workflow = :workflow
  AND run.id < :after
  AND run.id >= :first
  AND run.created_at >= 0
  AND {matching_run run}
GROUP BY run.status

-- name: count_runs_of_label
-- purpose: Count the runs with a label that fit, by their status, with the index of labels
SELECT run.status, count(*) AS runs
FROM holdfast_label AS label JOIN holdfast_run AS run ON run.id = label.entity
WHERE label.name = :label
  AND label.value = :value
  AND label.entity < :after
  AND label.entity >= :first
  AND {matching_run run}
GROUP BY run.status

-- name: tasks_not_done
-- purpose: Count the tasks of some runs that are not done
SELECT run_id, count(*) AS tasks FROM holdfast_task
WHERE run_id IN (SELECT value FROM {each ids})
  AND status <> 'done'
GROUP BY run_id

-- name: list_tasks
-- purpose: List a page of tasks, newest first; also the page of `done`, the status of most tasks
SELECT * FROM holdfast_task
WHERE id < :after
  AND id >= :first
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: list_tasks_by_status
-- purpose: List a page of idle, queued, failed or cancelled tasks, newest first, with the index of these
SELECT * FROM holdfast_task
WHERE id < :after
  AND id >= :first
  AND status = :status
  AND status IN ('idle', 'queued', 'failed', 'cancelled')
  AND created_at >= 0
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: list_tasks_running
-- purpose: List a page of running tasks, newest first, with the index of leases
SELECT * FROM holdfast_task
WHERE id < :after
  AND id >= :first
  AND lease_expires_at IS NOT NULL
  AND attempt >= 1
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: list_tasks_of_run
-- purpose: List a page of the tasks of one run, newest first
SELECT * FROM holdfast_task
WHERE run_id = :run_id
  AND id < :after
  AND id >= :first
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: list_tasks_of_workflow
-- purpose: List a page of the tasks of all runs of one workflow, newest first
SELECT * FROM holdfast_task
WHERE id < :after
  AND id >= :first
  AND (SELECT run.workflow FROM holdfast_run AS run WHERE run.id = holdfast_task.run_id) = :workflow
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: list_tasks_of_parent
-- purpose: List a page of the direct children of a task, newest first
SELECT * FROM holdfast_task
WHERE parent_id = :parent_id
  AND id < :after
  AND id >= :first
  AND created_at >= 0
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: list_tasks_of_key
-- purpose: List the task that has a key, unless another filter of the page leaves it out
SELECT * FROM holdfast_task
WHERE key = :key
  AND id < :after
  AND id >= :first
  AND {matching_task holdfast_task}
LIMIT :count

-- name: list_tasks_of_label
-- purpose: List a page of the tasks with a label that few runs and tasks have; reads all tasks of these
SELECT * FROM holdfast_task
WHERE id IN (
    SELECT label.entity FROM holdfast_label AS label WHERE label.name = :label AND label.value = :value
    UNION ALL
    SELECT part.id FROM holdfast_label AS label JOIN holdfast_task AS part ON part.run_id = label.entity
    WHERE label.name = :label AND label.value = :value)
  AND id < :after
  AND id >= :first
  AND {matching_task holdfast_task}
ORDER BY id DESC LIMIT :count

-- name: holders_of_label
-- purpose: Count the runs and tasks with a label, up to a number
SELECT count(*) AS number FROM (
  SELECT 1 AS one FROM holdfast_label AS label
  WHERE label.name = :label AND label.value = :value LIMIT :most) AS found

-- name: children_in_order
-- purpose: List the direct children of a task by position, superseded ones aside
SELECT * FROM holdfast_task
WHERE parent_id = :parent_id
  AND NOT superseded
ORDER BY position, id

-- name: count_children
-- purpose: Count the direct children of some tasks, and how many of these are done
SELECT parent_id, count(CASE WHEN status = 'done' THEN 1 END) AS done, count(*) AS whole
FROM holdfast_task
WHERE parent_id IN (SELECT value FROM {each ids})
  AND NOT superseded
GROUP BY parent_id

-- name: being_verified
-- purpose: List the tasks, of some given, that wait for a verdict
-- A done task waits for its queued or running verifier; a group waits when all that is open and not
-- blocked in it are verifiers.
SELECT subject.id
FROM holdfast_task AS subject JOIN holdfast_need AS need ON need.need_id = subject.id
JOIN holdfast_task AS judge ON judge.id = need.task_id AND judge.verifies = subject.id
WHERE subject.id IN (SELECT value FROM {each ids})
  AND subject.status = 'done'
  AND judge.status IN ('queued', 'running')
  AND NOT judge.blocked
  AND NOT judge.superseded
  AND (judge.run_holds & 64) = 0
UNION
SELECT parent_id
FROM holdfast_task
WHERE parent_id IN (SELECT value FROM {each ids})
  AND status IN ('idle', 'queued', 'running')
  AND NOT blocked
  AND NOT superseded
GROUP BY parent_id
HAVING count(*) = count(verifies)

-- name: places_of
-- purpose: Read some tasks and all groups around them, to build their addresses
WITH RECURSIVE around (id) AS (
  SELECT named.id FROM holdfast_task AS named WHERE named.id IN (SELECT value FROM {each ids})
  UNION SELECT task.parent_id FROM holdfast_task AS task JOIN around ON task.id = around.id
  WHERE task.parent_id IS NOT NULL)
SELECT task.id, task.run_id, task.parent_id, task.kind, task.step, task.title, task.item
FROM holdfast_task AS task JOIN around ON task.id = around.id

-- name: failed_in_run
-- purpose: List the failed and cancelled tasks of a run; of groups, those with an error of their own
-- A task that a step made and no task needs does not count.
SELECT id, status FROM holdfast_task
WHERE run_id = :run_id
  AND status <> 'done'
  AND status IN ('failed', 'cancelled')
  AND NOT superseded
  AND NOT {spared holdfast_task}
  AND (kind <> 'group' OR error IS NOT NULL)
ORDER BY id

-- name: cancelled_in_run
-- purpose: Find the first cancelled task of a failed run
SELECT task.id FROM holdfast_task AS task
  JOIN holdfast_run AS run ON run.id = task.run_id
WHERE task.run_id = :run_id
  AND task.status <> 'done'
  AND task.status = 'cancelled'
  AND NOT task.superseded
  AND run.status = 'failed'
ORDER BY task.id LIMIT 1

-- name: failed_around
-- purpose: List the failed and cancelled tasks in the tree of a task without a run, plans aside
WITH RECURSIVE above (id, parent_id) AS (
    SELECT named.id, named.parent_id FROM holdfast_task AS named WHERE named.id = :task_id
    UNION SELECT parent.id, parent.parent_id FROM holdfast_task AS parent JOIN above ON parent.id = above.parent_id),
  tree (id) AS (
    SELECT above.id FROM above
    UNION SELECT child.id FROM holdfast_task AS child JOIN tree ON child.parent_id = tree.id)
SELECT task.id, task.status FROM holdfast_task AS task
WHERE task.id IN (SELECT id FROM tree)
  AND task.status IN ('failed', 'cancelled')
  AND NOT task.superseded
  AND task.planning_phase = 'none'
ORDER BY task.id

-- name: run_outputs
-- purpose: Read the outputs of the last steps of a run, verifiers aside
SELECT step, output FROM holdfast_task
WHERE run_id = :run_id
  AND parent_id IS NULL
  AND gives
ORDER BY id

-- name: task_in_run
-- purpose: Find the first task of a step in a run, wherever it stands; for a loop, the loop and not an item
SELECT * FROM holdfast_task
WHERE run_id = :run_id
  AND step = :step
  AND NOT superseded
  AND NOT {made holdfast_task}
ORDER BY item IS NOT NULL, id LIMIT 1

-- name: task_at_top
-- purpose: Find the task of a step of a run outside all loops
SELECT * FROM holdfast_task
WHERE run_id = :run_id
  AND step = :step
  AND parent_id IS NULL

-- name: item_of
-- purpose: Find an item of a loop by its place in the list, where its position is that place too
SELECT * FROM holdfast_task
WHERE parent_id = :parent_id
  AND position = :place
  AND item = :place
  AND NOT superseded

-- name: moved_item_of
-- purpose: Find an item of a loop by its place in the list, at any position; reads all items
SELECT * FROM holdfast_task
WHERE parent_id = :parent_id
  AND item = :place
  AND NOT superseded

-- name: task_of_item
-- purpose: Find the task of a step in one item of a loop
SELECT * FROM holdfast_task
WHERE parent_id = :parent_id
  AND step = :step
  AND NOT superseded

-- name: unmet_needs
-- purpose: List the needs of some tasks that are not done
SELECT need.task_id, needed.id, needed.status
FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
WHERE need.task_id IN (SELECT value FROM {each ids})
  AND needed.status <> 'done'
ORDER BY need.task_id, needed.id

-- name: needs_of
-- purpose: List all needs of a task, done or not
SELECT need_id FROM holdfast_need WHERE task_id = :task_id ORDER BY need_id

-- name: links_of
-- purpose: List all needs of a task, each with its start version, its state and the event of a link by hand
SELECT need.need_id, need.since, needed.kind, needed.status, needed.blocked, needed.run_holds, linked.data
FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
  LEFT JOIN holdfast_event AS linked ON linked.entity = need.task_id AND linked.version = need.since AND linked.type = 'task.blocked'
WHERE need.task_id = :task_id
ORDER BY need.need_id

-- name: last_moves
-- purpose: Read the last two changes of the status of a task, the newest first
SELECT type, from_status, to_status FROM holdfast_event
WHERE entity = :task_id
  AND from_status <> to_status
ORDER BY version DESC LIMIT 2

-- name: last_hold
-- purpose: Read the data of the last event that put a task on hold
SELECT data FROM holdfast_event
WHERE entity = :task_id
  AND type = 'task.held'
ORDER BY version DESC LIMIT 1

-- name: entity_events
-- purpose: List the events of one task or of one run alone
SELECT * FROM holdfast_event WHERE entity = :entity ORDER BY version

-- name: run_events
-- purpose: List the events of a run and all its tasks
SELECT * FROM holdfast_event WHERE entity = :run_id
UNION ALL
SELECT event.* FROM holdfast_task AS task JOIN holdfast_event AS event ON event.entity = task.id
WHERE task.run_id = :run_id
ORDER BY seq

-- name: slot_by_key
-- purpose: Read the capacity and use of a concurrency key
SELECT key, capacity, used FROM holdfast_slot WHERE key = :key

-- name: slot_holders
-- purpose: List the running tasks and runs that hold a concurrency key
SELECT id FROM holdfast_task
WHERE status = 'running'
  AND concurrency_key = :key
UNION ALL
SELECT id FROM holdfast_run
WHERE status = 'running'
  AND concurrency_key = :key
  AND (holds & 288) = 0
ORDER BY id

-- name: next_wake
-- purpose: Find the next time at which something becomes due, and whether a key that is waited for has room
SELECT
  (SELECT min(at) FROM (
    SELECT min(scheduled_for) AS at FROM holdfast_task WHERE status = 'queued' AND NOT due
      AND scheduled_for IS NOT NULL
    UNION ALL
    SELECT min(held_until) FROM holdfast_task WHERE held_until IS NOT NULL
      AND status IN ('idle', 'queued', 'running')
    UNION ALL
    SELECT min(until) FROM holdfast_limit
    UNION ALL
    SELECT min(next_at) FROM holdfast_schedule WHERE next_at IS NOT NULL
    UNION ALL
    SELECT min(scheduled_for) FROM holdfast_run WHERE (holds & 256) <> 0
      AND status = 'running'
    UNION ALL
    SELECT min(deadline) FROM holdfast_run WHERE deadline IS NOT NULL
      AND status = 'running') AS times) AS at,
  (SELECT holdfast_now()) AS now,
  EXISTS (
    SELECT 1 FROM holdfast_waited_key AS waited
    WHERE (SELECT slot.used < slot.capacity FROM holdfast_slot AS slot WHERE slot.key = waited.key)) AS waiting

-- name: rows_there
-- purpose: Filter some ids down to tasks and runs that exist
SELECT id FROM holdfast_task WHERE id IN (SELECT value FROM {each ids})
UNION ALL
SELECT id FROM holdfast_run WHERE id IN (SELECT value FROM {each ids})

-- name: awaited_rows
-- purpose: Read the status, output and end of some tasks and runs
SELECT id, status, output, error, finished_at IS NOT NULL AS ended FROM holdfast_task
WHERE id IN (SELECT value FROM {each ids})
UNION ALL
SELECT id, status, NULL, error, finished_at IS NOT NULL FROM holdfast_run
WHERE id IN (SELECT value FROM {each ids})

-- name: attempts_over
-- purpose: Filter some attempts down to those that are no longer running
-- rows: task_id text, attempt integer
SELECT asked.task_id, asked.attempt
FROM {rows} AS asked
WHERE (
  SELECT 1 FROM holdfast_task AS task
  WHERE task.id = asked.task_id AND task.status = 'running' AND task.attempt = asked.attempt
  LIMIT 1) IS NULL

-- name: functions_wanted
-- purpose: Count the tasks on hold version by function, for one page; ended tasks count for the page too
SELECT workflow, version, step, open, count(*) AS tasks, max(id) AS last
FROM (
  SELECT task.id, task.step, task.status IN ('idle', 'queued') AS open,
    CASE WHEN task.parent_epoch IS NULL OR task.item IS NOT NULL THEN run.workflow END AS workflow,
    CASE WHEN task.parent_epoch IS NULL OR task.item IS NOT NULL THEN run.workflow_version END AS version
  FROM (
    SELECT id, step, status, run_id, parent_epoch, item FROM holdfast_task
    WHERE (holds & 128) <> 0 AND id > :after
    ORDER BY id LIMIT :count) AS task
  LEFT JOIN holdfast_run AS run ON run.id = task.run_id) AS held
GROUP BY workflow, version, step, open

-- name: tasks_wanting
-- purpose: List the tasks on hold version, of one page, that want some functions and that a worker may serve
-- rows: flow text, edition text, function text, outside boolean
-- A function that no program has is matched for every agent and tag.
SELECT task.id
FROM holdfast_task AS task
LEFT JOIN holdfast_run AS run ON run.id = task.run_id
JOIN {rows} AS r ON task.step IS NOT DISTINCT FROM r.function
  AND CASE WHEN task.parent_epoch IS NULL OR task.item IS NOT NULL THEN run.workflow END IS NOT DISTINCT FROM r.flow
  AND CASE WHEN task.parent_epoch IS NULL OR task.item IS NOT NULL THEN run.workflow_version END IS NOT DISTINCT FROM r.edition
WHERE (task.holds & 128) <> 0
  AND task.id > :after
  AND task.id <= :until
  AND task.status IN ('idle', 'queued')
  AND (r.outside OR ((:every OR task.agent IN (SELECT value FROM {each agents})) AND holdfast_within(task.tags, :tags)))
ORDER BY task.run_now DESC, task.priority DESC, task.position, task.id

-- name: lifted_since
-- purpose: List the tasks freed of hold version since a version, by a person or by a worker that is gone
-- rows: task_id text, seen integer
-- A worker that is told to go counts as gone. Its lift counts only while the task is free of the hold.
SELECT DISTINCT r.task_id AS id
FROM {rows} AS r
JOIN holdfast_task AS task ON task.id = r.task_id
JOIN holdfast_event AS event ON event.entity = r.task_id AND event.version > r.seen
WHERE event.type = 'task.unheld'
  AND (CAST({data lifted} AS integer) & 128) <> 0
  AND (substr(event.actor, 1, 7) <> 'worker:' OR (
    (task.holds & 128) = 0 AND NOT EXISTS (
      SELECT 1 FROM holdfast_worker AS lifter
      WHERE event.actor = 'worker:' || lifter.name
        AND lifter.started_at <= event.at
        AND lifter.told IS NULL
        AND lifter.expires_at > (SELECT holdfast_now()))))
