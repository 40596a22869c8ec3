-- name: workflow_definition
-- purpose: Read the graph of one version of a workflow
SELECT definition FROM holdfast_workflow WHERE name = :name AND version = :version

-- name: ripe_tasks
-- purpose: Read the unblocked tasks, of some given, whose condition, list or called workflow is to be evaluated
SELECT task.id, task.run_id, task.parent_id, task.step, task.kind, task.conditional, task.due,
  task.epoch, task.item, task.calls, task.priority, task.generation, task.feedback, task.on_failure,
  task.tags, CASE WHEN task.run_id IS NULL THEN task.payload END AS payload
FROM holdfast_task AS task
WHERE task.id IN (SELECT value FROM {each ids})
  AND task.status = 'queued'
  AND NOT task.blocked
  AND (task.run_holds & 256) = 0
  AND ((task.conditional AND NOT task.due AND task.scheduled_for IS NULL AND task.waits_for IS NULL)
    OR (task.kind = 'group' AND task.total IS NULL AND task.item IS NULL AND task.waits_for IS NULL
      AND (task.calls IS NULL OR (task.holds = 0 AND task.run_holds = 0))))
ORDER BY task.id

-- name: ripe_in_run
-- purpose: List the unblocked tasks of a run whose condition, list or called workflow is to be evaluated
SELECT id FROM holdfast_task
WHERE run_id = :run_id
  AND status <> 'done'
  AND status = 'queued'
  AND NOT blocked
  AND ((conditional AND NOT due AND scheduled_for IS NULL AND waits_for IS NULL)
    OR (kind = 'group' AND total IS NULL AND item IS NULL AND waits_for IS NULL))

-- name: open_groups
-- purpose: List the queued groups of a run, and its tasks that wait for their children
SELECT id FROM holdfast_task
WHERE run_id = :run_id
  AND (kind = 'group' OR '*' || waits_for LIKE '%*children')
  AND status <> 'done'
  AND status = 'queued'

-- name: ancestors
-- purpose: List the groups around a task, the nearest first
WITH RECURSIVE above (id, parent_id, step, payload, item, depth) AS (
  SELECT task.id, task.parent_id, task.step, task.payload, task.item, 0 FROM holdfast_task AS task WHERE task.id = :task_id
  UNION ALL
  SELECT task.id, task.parent_id, task.step, task.payload, task.item, above.depth + 1
  FROM holdfast_task AS task JOIN above ON task.id = above.parent_id)
SELECT id, parent_id, step, payload, item FROM above WHERE depth > 0 ORDER BY depth

-- name: landings_of_items
-- purpose: Read the landings of some items of a loop, by the numbers of the items
SELECT landing.item, landing.id
FROM holdfast_task AS item JOIN holdfast_task AS landing ON landing.parent_id = item.id
WHERE item.parent_id = :loop_id
  AND item.item IN (SELECT CAST(value AS integer) FROM {each items})
  AND NOT item.superseded
  AND landing.step = :step
  AND NOT landing.superseded

-- name: step_beside
-- purpose: Read the status and output of a step among the tasks of one group
SELECT id, status, output, skipped FROM holdfast_task
WHERE parent_id = :parent_id
  AND step = :step
  AND NOT superseded

-- name: step_in_run
-- purpose: Read the status and output of a step of a run outside all loops
SELECT id, status, output, skipped FROM holdfast_task
WHERE run_id = :run_id
  AND step = :step
  AND parent_id IS NULL

-- name: done_since_expanded
-- purpose: Find an event by which a task was done after a loop was expanded last
SELECT event.seq FROM holdfast_event AS event
WHERE event.entity = :task_id
  AND event.to_status = 'done'
  AND event.from_status <> 'done'
  AND event.seq > (SELECT max(noted.seq) FROM holdfast_event AS noted WHERE noted.entity = :loop_id AND noted.type = 'task.expanded')
LIMIT 1

-- name: verifiers_of
-- purpose: List the verifiers of a task or loop in its run
SELECT id FROM holdfast_task
WHERE run_id = :run_id
  AND verifies = :task_id
  AND NOT superseded

-- name: let_tasks_start
-- purpose: Make tasks due whose condition is true
-- guards: The task is queued and not blocked, and has a condition, no time and no wait; it is not due
--   yet
-- changes: task
-- event: 'task.admitted'
-- returning: kind
UPDATE holdfast_task SET
  due = true,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'queued'
  AND NOT blocked
  AND conditional
  AND NOT due
  AND scheduled_for IS NULL
  AND waits_for IS NULL

-- name: skip_tasks
-- purpose: Skip tasks whose condition is false (queued → done, skipped)
-- guards: The task is queued and not blocked, and has a condition, no time and no wait; it is not due
--   yet
-- changes: task
-- event: 'task.skipped'
-- data: '{"skipped":true}'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = 'done', skipped = true, output = NULL, finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'queued'
  AND NOT blocked
  AND conditional
  AND NOT due
  AND scheduled_for IS NULL
  AND waits_for IS NULL

-- name: fail_unresolved
-- purpose: Settle tasks whose condition, list or text cannot be evaluated, by what follows: skip, ask or fail
-- guards: The task is queued and not blocked, and not already on hold approval by a failure
-- rows: task_id text, problem text, following text
-- changes: task
-- event: CASE WHEN skipped THEN 'task.skipped' WHEN status = 'queued' THEN 'task.asked'
--   ELSE 'task.failed' END
-- data: '{"skipped":' || CASE WHEN skipped THEN 'true' ELSE 'false' END || ',"holds":' || holds
--   || ',"error":' || error || '}'
-- returning: kind, parent_id, verifies, skipped
UPDATE holdfast_task SET
  status = CASE r.following WHEN 'skip' THEN 'done' WHEN 'ask' THEN 'queued' ELSE 'failed' END,
  skipped = (r.following = 'skip'), on_failure = r.following,
  holds = CASE WHEN r.following = 'ask' THEN holds | 2 ELSE holds END,
  error = r.problem, output = NULL,
  finished_at = CASE WHEN r.following = 'ask' THEN NULL ELSE (SELECT holdfast_now()) END,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND (r.following <> 'ask' OR (holds & 2) = 0)

-- name: turn_back_unresolved
-- purpose: Send a task whose condition or text cannot be evaluated back to an earlier step: blocked again
-- guards: The task is queued and not blocked, and has detours left
-- rows: task_id text, problem text, most integer
-- changes: task
-- event: 'task.went_back'
-- data: '{"blocked":true,"round":0,"detours":' || detours || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"error":' || error || '}'
-- returning: kind
UPDATE holdfast_task SET
  blocked = true, detours = detours + 1, round = 0,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0,
  error = r.problem, output = NULL,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'queued'
  AND NOT blocked
  AND detours < r.most

-- name: expand_loop
-- purpose: Record the number of items of a loop
-- guards: The loop is queued and not expanded yet
-- changes: task
-- event: 'task.expanded'
-- data: '{"total":' || total || '}'
-- returning: kind
UPDATE holdfast_task SET
  total = :total,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'queued'
  AND total IS NULL

-- name: first_open_item
-- purpose: Find the first open item of a loop at or after a position
SELECT min(place) AS place FROM (
  SELECT min(position) AS place FROM holdfast_task
  WHERE parent_id = :loop_id AND status IN ('idle', 'queued', 'running') AND status = 'idle' AND position >= :first
  UNION ALL
  SELECT min(position) FROM holdfast_task
  WHERE parent_id = :loop_id AND status IN ('idle', 'queued', 'running') AND status = 'queued' AND position >= :first) AS places

-- name: count_items
-- purpose: Record how many items of a loop are made, and the position before which all have ended
-- guards: The number of items made is the one that the caller saw
UPDATE holdfast_task SET made = made + :count, ended_before = :place
WHERE id = :task_id
  AND made = :seen
RETURNING made

-- name: loops_with_room
-- purpose: List the unblocked loops, of some given, with items left to start, and their active items
-- No item before `first` is open; starting there spares PostgreSQL the dead index entries before it.
SELECT task.id, task.run_id, task.parent_id, task.step, task.kind, task.epoch, task.item, task.tags,
  task.total, task.made, task.priority, COALESCE(task.ended_before, -2147483648) AS first,
  (SELECT run.holds FROM holdfast_run AS run WHERE run.id = task.run_id) AS run_holds,
  (SELECT count(*) FROM holdfast_task AS active
   WHERE active.parent_id = task.id AND active.status IN ('idle', 'queued', 'running') AND active.status = 'queued'
     AND active.position >= COALESCE(task.ended_before, -2147483648)) AS active
FROM holdfast_task AS task
WHERE task.id IN (SELECT value FROM {each ids})
  AND task.status = 'queued'
  AND NOT task.blocked
  AND task.total IS NOT NULL
  AND (task.made < task.total
    OR (SELECT waiting.id FROM holdfast_task AS waiting
      WHERE waiting.parent_id = task.id AND waiting.status IN ('idle', 'queued', 'running') AND waiting.status = 'idle'
        AND waiting.position >= COALESCE(task.ended_before, -2147483648)
      LIMIT 1) IS NOT NULL)

-- name: needed_items
-- purpose: List the idle, unblocked items of a loop that another task needs, from a position on
-- A subquery for each item keeps PostgreSQL from beginning with all needs.
SELECT item.id FROM holdfast_task AS item
WHERE item.parent_id = :loop_id
  AND item.status IN ('idle', 'queued', 'running')
  AND item.status = 'idle'
  AND NOT item.blocked
  AND item.position >= :first
  AND (SELECT need.need_id FROM holdfast_need AS need WHERE need.need_id = item.id LIMIT 1) IS NOT NULL
ORDER BY item.position

-- name: start_items
-- purpose: Start the next items of a loop (idle → queued)
-- guards: The item is idle and not blocked, belongs to this loop, and is among the next in list order
--   from a position on
-- changes: task
-- event: 'task.queued'
-- returning: kind, parent_id, item, epoch
UPDATE holdfast_task SET
  status = 'queued',
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    SELECT id FROM holdfast_task
    WHERE parent_id = :loop_id
      AND status IN ('idle', 'queued', 'running')
      AND status = 'idle'
      AND NOT blocked
      AND position >= :first
    ORDER BY position, id LIMIT :count)

-- name: let_items_in
-- purpose: Start items beyond the limit of a full loop, because its active items wait for them (idle → queued)
-- guards: The item is idle and not blocked
-- changes: task
-- event: 'task.queued'
-- returning: kind, parent_id, item, epoch
UPDATE holdfast_task SET
  status = 'queued',
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND status = 'idle'
  AND NOT blocked

-- name: settle_groups
-- purpose: Finish groups whose children are all done (queued → done), with the outputs of the children
-- guards: The group is queued and not blocked, all its items are made, no child is open, and no child
--   that is not superseded is failed or cancelled
-- changes: task
-- event: 'task.done'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = 'done', finished_at = (SELECT holdfast_now()), error = NULL,
  output = CASE WHEN item IS NULL THEN (
    SELECT '[' || COALESCE(string_agg(COALESCE(child.output, 'null'), ',' ORDER BY child.item), '') || ']'
    FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND NOT child.superseded)
  ELSE (
    SELECT CASE WHEN count(*) = 1 THEN min(COALESCE(child.output, 'null'))
      ELSE '{' || COALESCE(string_agg('"' || child.step || '":' || COALESCE(child.output, 'null'), ',' ORDER BY child.id), '') || '}' END
    FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND NOT child.superseded AND child.gives) END,
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (SELECT value FROM {each ids})
  AND kind = 'group'
  AND status = 'queued'
  AND NOT blocked
  AND (item IS NOT NULL OR made = total)
  AND (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('idle', 'queued', 'running') LIMIT 1) IS NULL
  AND (SELECT child.id FROM holdfast_task AS child WHERE child.parent_id = holdfast_task.id AND child.status IN ('failed', 'cancelled') AND NOT child.superseded LIMIT 1) IS NULL

-- name: fail_groups
-- purpose: Fail the groups around failed or cancelled tasks in failed runs (idle or queued → failed)
-- guards: The group is idle or queued, around a failed or cancelled task; one that a step made and no
--   task needs does not count
-- changes: task
-- event: 'task.failed'
-- returning: kind
UPDATE holdfast_task SET
  status = 'failed', finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = 'advance', changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE above (id) AS (
      SELECT task.parent_id FROM holdfast_task AS task
      WHERE task.run_id IN (SELECT value FROM {each ids})
        AND task.status <> 'done'
        AND task.status IN ('failed', 'cancelled')
        AND NOT task.superseded
        AND NOT {spared task}
      UNION SELECT task.parent_id FROM holdfast_task AS task JOIN above ON task.id = above.id)
    SELECT id FROM above)
  AND kind = 'group'
  AND status IN ('idle', 'queued')
