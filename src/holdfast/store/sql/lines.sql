-- name: insert_run_line
-- purpose: Record the line of commits of a run with its base, once
-- guards: The task has a live lease under this fence, so it is running, and its run has no line yet
INSERT INTO holdfast_line (id, run_id, base, repository, host, branch, task_id, attempt, created_at)
SELECT task.run_id, task.run_id, :base, :repository, :host, :branch, task.id, task.attempt, (SELECT holdfast_now())
FROM holdfast_task AS task
WHERE task.id = :task_id
  AND task.attempt = :fence
  AND task.lease_expires_at > (SELECT holdfast_now())
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: insert_item_line
-- purpose: Record the line of an item with the head of the line around it as its base, once
-- guards: The task has a live lease under this fence, so it is running, the line around belongs to its run,
--   and the item has no line yet
INSERT INTO holdfast_line (id, run_id, base, task_id, attempt, created_at)
SELECT :line, around.run_id,
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = around.id AND made.number IS NOT NULL ORDER BY made.number DESC LIMIT 1), around.base),
  task.id, task.attempt, (SELECT holdfast_now())
FROM holdfast_line AS around JOIN holdfast_task AS task ON task.run_id = around.run_id
WHERE around.id = :around
  AND task.id = :task_id
  AND task.attempt = :fence
  AND task.lease_expires_at > (SELECT holdfast_now())
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: line_states
-- purpose: Read the heads of some lines, and where each begins
SELECT line.id, line.run_id, line.repository, line.host, line.branch,
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = line.id AND made.kind = 'anew' ORDER BY made.number DESC LIMIT 1), line.base) AS base,
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = line.id AND made.number IS NOT NULL ORDER BY made.number DESC LIMIT 1), line.base) AS head,
  COALESCE((SELECT max(made.number) FROM holdfast_commit AS made WHERE made.line_id = line.id), 0) AS number
FROM holdfast_line AS line
WHERE line.id IN (SELECT value FROM {each ids})

-- name: heads_around
-- purpose: Read the newest heads of the lines that some tasks stand in, of their items and their run, the nearest last
WITH RECURSIVE above (root, line, depth) AS (
  SELECT task.id, COALESCE(task.parent_id, task.run_id), 0
  FROM holdfast_task AS task WHERE task.id IN (SELECT value FROM {each ids})
  UNION ALL
  SELECT above.root, COALESCE(around.parent_id, around.run_id), above.depth + 1
  FROM above JOIN holdfast_task AS around ON around.id = above.line)
SELECT above.root, above.depth,
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = line.id AND made.number IS NOT NULL ORDER BY made.number DESC LIMIT 1), line.base) AS head
FROM above JOIN holdfast_line AS line ON line.id = above.line
ORDER BY above.depth DESC

-- name: lines_of_host
-- purpose: List the lines of runs in the repositories of a host, of those that run or ended not long ago
SELECT line.id, line.run_id, line.repository, line.branch, run.workflow, run.workflow_version,
  run.finished_at, (SELECT holdfast_now()) AS now,
  line.base,
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = line.id AND made.number IS NOT NULL ORDER BY made.number DESC LIMIT 1), line.base) AS head,
  COALESCE((SELECT max(made.number) FROM holdfast_commit AS made WHERE made.line_id = line.id), 0) AS number
FROM holdfast_line AS line JOIN holdfast_run AS run ON run.id = line.run_id
WHERE line.host = :host
  AND line.id = line.run_id
  AND (run.finished_at IS NULL OR run.finished_at > (SELECT holdfast_now()) - :longest)
  AND (CAST(:before AS text) IS NULL OR line.run_id < :before)
ORDER BY line.run_id DESC
LIMIT :count

-- name: insert_heads
-- purpose: Record the commits of attempts as the new heads of their lines
-- guards: The task is running under this fence, judges nothing, and is of the run of the line; the
--   commit descends from the newest head of the line, and no other commit has become the next one
-- rows: task_id text, fence integer, line text, place integer, base text, sha text
INSERT INTO holdfast_commit (task_id, attempt, kind, line_id, number, base, sha, generation, failures, created_at)
SELECT task.id, task.attempt, 'head', line.id, r.place + 1, r.base, r.sha, task.generation, task.failures, (SELECT holdfast_now())
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  JOIN holdfast_line AS line ON line.id = r.line
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND task.verifies IS NULL
  AND line.run_id = task.run_id
  AND r.place = COALESCE((SELECT max(made.number) FROM holdfast_commit AS made WHERE made.line_id = line.id), 0)
ON CONFLICT (line_id, number) DO NOTHING
RETURNING task_id

-- name: insert_drafts
-- purpose: Record commits beside a line: drafts of attempts that give their task back, and what failed ones left
-- guards: The task is running under this fence, the line is of its run, and nothing of the kind is
--   recorded for the attempt
-- rows: task_id text, fence integer, kind text, line text, base text, sha text
INSERT INTO holdfast_commit (task_id, attempt, kind, line_id, base, sha, generation, failures, created_at)
SELECT task.id, task.attempt, r.kind, line.id, r.base, r.sha, task.generation, task.failures, (SELECT holdfast_now())
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  JOIN holdfast_line AS line ON line.id = r.line
WHERE task.status = 'running'
  AND task.attempt = r.fence
  AND line.run_id = task.run_id
ON CONFLICT (task_id, attempt, kind) DO NOTHING
RETURNING task_id

-- name: begin_line_anew
-- purpose: Let the line of an item begin again at the head of the line around it
-- guards: The task is running under this fence, both lines are of its run, and the attempt has done so
--   never before
INSERT INTO holdfast_commit (task_id, attempt, kind, line_id, number, base, sha, generation, failures, created_at)
SELECT task.id, task.attempt, 'anew', line.id,
  COALESCE((SELECT max(made.number) FROM holdfast_commit AS made WHERE made.line_id = line.id), 0) + 1,
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = line.id AND made.number IS NOT NULL ORDER BY made.number DESC LIMIT 1), line.base),
  COALESCE((SELECT made.sha FROM holdfast_commit AS made WHERE made.line_id = around.id AND made.number IS NOT NULL ORDER BY made.number DESC LIMIT 1), around.base),
  task.generation, task.failures, (SELECT holdfast_now())
FROM holdfast_task AS task JOIN holdfast_line AS line ON line.run_id = task.run_id
  JOIN holdfast_line AS around ON around.run_id = task.run_id
WHERE task.id = :task_id
  AND task.status = 'running'
  AND task.attempt = :fence
  AND line.id = :line
  AND around.id = :around
ON CONFLICT (task_id, attempt, kind) DO NOTHING
RETURNING task_id

-- name: conflicted_landings
-- purpose: List the failed landings of a run whose last attempt began the line of its item anew
SELECT landing.id, landing.run_id, landing.step, landing.error
FROM holdfast_task AS landing
WHERE landing.run_id = :run_id
  AND landing.status = 'failed'
  AND landing.on_failure = 'goto'
  AND NOT landing.superseded
  AND EXISTS (SELECT 1 FROM holdfast_commit AS anew WHERE anew.task_id = landing.id AND anew.attempt = landing.attempt AND anew.kind = 'anew')
ORDER BY landing.item, landing.id

-- name: keep_aside
-- purpose: Record what a former attempt of a task left, for people
-- guards: The task is running under this fence, which is later than the former attempt, the line is of
--   its run, and nothing is recorded as left by that attempt
INSERT INTO holdfast_commit (task_id, attempt, kind, line_id, base, sha, generation, failures, created_at)
SELECT task.id, :former, 'left', line.id, :base, :sha, task.generation, task.failures, (SELECT holdfast_now())
FROM holdfast_task AS task JOIN holdfast_line AS line ON line.run_id = task.run_id
WHERE task.id = :task_id
  AND task.status = 'running'
  AND task.attempt = :fence
  AND task.attempt > :former
  AND line.id = :line
ON CONFLICT (task_id, attempt, kind) DO NOTHING
RETURNING task_id

-- name: draft_of
-- purpose: Read the newest draft of a task since its last failure and its last reopening
SELECT draft.base, draft.sha
FROM holdfast_commit AS draft JOIN holdfast_task AS task ON task.id = draft.task_id
WHERE draft.task_id = :task_id
  AND draft.kind = 'draft'
  AND draft.generation = task.generation
  AND draft.failures = task.failures
ORDER BY draft.attempt DESC
LIMIT 1

-- name: commits_of_tasks
-- purpose: List the commits that the attempts of some tasks recorded, the oldest first
SELECT task_id, attempt, kind, line_id, number, base, sha, created_at
FROM holdfast_commit
WHERE task_id IN (SELECT value FROM {each ids})
ORDER BY task_id, attempt, kind

-- name: heads_of_tasks
-- purpose: Read the commits that the newest attempts of some tasks gave their lines
SELECT task.id, made.sha
FROM holdfast_task AS task JOIN holdfast_commit AS made ON made.task_id = task.id
WHERE task.id IN (SELECT value FROM {each ids})
  AND made.attempt = task.attempt
  AND made.kind = 'head'

-- name: complete_with_heads
-- purpose: Complete running tasks whose commits have been recorded as heads of their lines (running → done)
-- guards: The task is running under this fence, and this attempt has recorded a head
-- rows: task_id text, fence integer, result text, digest text, spent text,
--   accepts boolean, checked boolean
-- changes: task
-- event: 'task.done'
-- data: '{"digest":"' || result_digest || '"' || COALESCE(',"usage":' || usage, '')
--   || (SELECT ',"commit":"' || made.sha || '","line":"' || made.line_id || '","number":' || made.number
--     FROM holdfast_commit AS made WHERE made.task_id = holdfast_task.id AND made.attempt = holdfast_task.attempt AND made.kind = 'head') || '}'
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
  AND EXISTS (SELECT 1 FROM holdfast_commit AS made WHERE made.task_id = holdfast_task.id AND made.attempt = r.fence AND made.kind = 'head')

-- name: newest_head
-- purpose: Read where the line of a run began, and the attempt that gave it its newest head
SELECT line.branch, line.base AS begun_at, made.task_id, made.attempt, made.sha
FROM holdfast_line AS line LEFT JOIN holdfast_commit AS made ON made.line_id = line.id
  AND made.kind = 'head'
  AND made.number = (SELECT max(head.number) FROM holdfast_commit AS head WHERE head.line_id = line.id)
WHERE line.id = :run_id
