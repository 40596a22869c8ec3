-- name: conclude_tasks
-- purpose: Settle running tasks that failed for good, by on_failure: skip, ask or fail
-- guards: The task is running under this fence
-- rows: task_id text, fence integer, problem text, digest text, spent text, failed integer,
--   vanished integer, rejected integer, who text
-- changes: task
-- event: CASE WHEN skipped THEN 'task.skipped' WHEN status = 'queued' THEN 'task.asked'
--   ELSE 'task.failed' END
-- data: '{"failures":' || failures || ',"lost":' || lost || ',"round":' || round || ',"skipped":'
--   || CASE WHEN skipped THEN 'true' ELSE 'false' END || ',"holds":' || holds
--   || ',"scheduled_for":null,"digest":"' || COALESCE(result_digest, '') || '","error":' || error
--   || ',"outcome":"' || CASE WHEN changed_by = 'recovery' THEN 'lost'
--   WHEN verifies IS NOT NULL AND round >= max_rounds THEN 'rejected' ELSE 'failed' END || '"'
--   || COALESCE(',"usage":' || usage, '') || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END || '}'
-- returning: concurrency_key, parent_id, kind, verifies, skipped
UPDATE holdfast_task SET
  status = CASE on_failure WHEN 'skip' THEN 'done' WHEN 'ask' THEN 'queued' ELSE 'failed' END,
  skipped = (on_failure = 'skip'), blocked = {waiting holdfast_task},
  holds = CASE WHEN on_failure = 'ask' THEN holds | 2 ELSE holds END,
  generation = generation + CASE WHEN on_failure = 'ask' THEN 1 ELSE 0 END,
  failures = CASE WHEN on_failure = 'ask' THEN 0 ELSE failures + r.failed END,
  lost = CASE WHEN on_failure = 'ask' THEN 0 ELSE lost + r.vanished END,
  round = round + r.rejected,
  error = r.problem, result_digest = r.digest, usage = COALESCE(r.spent, usage), output = NULL,
  due = true, scheduled_for = NULL,
  finished_at = CASE WHEN on_failure = 'ask' THEN NULL ELSE (SELECT holdfast_now()) END,
  lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = COALESCE(r.who, worker), changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence

-- name: escalate_tasks
-- purpose: Hand running tasks that failed for good to another agent, with budgets of its own (running → queued)
-- guards: The task is running under this fence, and was not handed over before
-- rows: task_id text, fence integer, problem text, digest text, spent text, who text, role text,
--   labels text, attempts integer, losses integer, wait_first integer, wait_most integer,
--   time_limit integer, outside boolean, following text
-- changes: task
-- event: 'task.escalated'
-- data: '{"failures":0,"lost":0,"scheduled_for":null,"agent":"' || agent || '","digest":"'
--   || COALESCE(result_digest, '') || '","error":' || error || ',"outcome":"'
--   || CASE WHEN changed_by = 'recovery' THEN 'lost' ELSE 'failed' END || '"'
--   || COALESCE(',"usage":' || usage, '') || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END || '}'
-- returning: concurrency_key, parent_id, kind
UPDATE holdfast_task SET
  status = 'queued', blocked = {waiting holdfast_task},
  escalated_from = agent, agent = r.role, tags = r.labels, bare = r.outside, on_failure = r.following,
  max_attempts = r.attempts, max_lost = r.losses, backoff = r.wait_first, backoff_max = r.wait_most,
  timeout = r.time_limit,
  generation = generation + 1, failures = 0, lost = 0,
  feedback = r.problem, error = r.problem, result_digest = r.digest,
  usage = COALESCE(r.spent, usage), output = NULL,
  due = true, scheduled_for = NULL, lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = COALESCE(r.who, worker), changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND escalated_from IS NULL

-- name: skip_unaccepted
-- purpose: Skip the subject of a skipped verifier, and the tasks between both, because no verdict accepted it
-- guards: The task is done and not skipped, and is the verified task, or needs it and is needed by the
--   verifier
-- changes: task
-- event: 'task.skipped'
-- data: '{"skipped":true}'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  skipped = true, output = NULL,
  version = version + 1, previous = status,
  changed_by = 'verifier', changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE before (id) AS (
      SELECT need.need_id FROM holdfast_need AS need WHERE need.task_id = :task_id
      UNION SELECT need.need_id FROM holdfast_need AS need JOIN before ON need.task_id = before.id),
    judged (id) AS (
      SELECT subject.id FROM holdfast_task AS verifier JOIN holdfast_task AS subject ON subject.id = verifier.verifies
      WHERE verifier.id = :task_id
      UNION SELECT need.task_id FROM holdfast_need AS need JOIN judged ON need.need_id = judged.id
      WHERE need.task_id IN (SELECT before.id FROM before))
    SELECT id FROM judged)
  AND status = 'done'
  AND NOT skipped

-- name: left_out
-- purpose: List the verifiers, of some given, whose subject was skipped with them
SELECT task.id, task.verifies, subject.kind AS subject_kind
FROM holdfast_task AS task JOIN holdfast_task AS subject ON subject.id = task.verifies
WHERE task.id IN (SELECT value FROM {each ids})
  AND subject.skipped
  AND subject.changed_by = 'verifier'

-- name: reject_round
-- purpose: Block a verifier again after a rejection with rounds left (running → queued, blocked)
-- guards: The task is running under this fence, is a verifier, and has rounds left
-- rows: task_id text, fence integer, result text, digest text, spent text
-- changes: task
-- event: 'task.rejected'
-- data: '{"blocked":true,"round":' || round || ',"epoch":' || epoch || ',"failures":0,"lost":0'
--   || ',"scheduled_for":null,"digest":"' || result_digest || '","verdict":' || output
--   || COALESCE(',"usage":' || usage, '') || '}'
-- returning: concurrency_key, verifies
UPDATE holdfast_task SET
  status = 'queued', blocked = true,
  round = round + 1, generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0,
  output = r.result, result_digest = r.digest, usage = COALESCE(r.spent, usage), error = NULL,
  due = NOT conditional, scheduled_for = NULL, lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = worker, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND verifies IS NOT NULL
  AND round + 1 < max_rounds

-- name: go_back
-- purpose: Send a failed step back to an earlier step (running → queued, blocked)
-- guards: The task is running under this fence and has detours left
-- rows: task_id text, fence integer, problem text, digest text, spent text, most integer,
--   who text
-- changes: task
-- event: 'task.went_back'
-- data: '{"blocked":true,"round":0,"detours":' || detours || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"scheduled_for":null,"digest":"' || COALESCE(result_digest, '')
--   || '","error":' || error || ',"outcome":"' || CASE WHEN changed_by = 'recovery' THEN 'lost'
--   ELSE 'failed' END || '"' || COALESCE(',"usage":' || usage, '') || '}'
-- returning: concurrency_key
UPDATE holdfast_task SET
  status = 'queued', blocked = true,
  detours = detours + 1, round = 0,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0,
  error = r.problem, result_digest = r.digest, usage = COALESCE(r.spent, usage), output = NULL,
  due = NOT conditional, scheduled_for = NULL, lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = COALESCE(r.who, worker), changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence
  AND detours < r.most

-- name: reopen_above
-- purpose: Reopen the ended groups around reopened tasks (done, failed or cancelled → queued; a plan → idle)
-- guards: The group has ended, is around one of the tasks, and is not superseded
-- changes: task
-- event: 'task.reopened'
-- data: '{"blocked":' || CASE WHEN blocked THEN 'true' ELSE 'false' END || ',"skipped":false,"run_holds":' || run_holds || '}'
-- returning: kind
UPDATE holdfast_task SET
  status = CASE WHEN planning_phase = 'none' THEN 'queued' ELSE 'idle' END,
  generation = generation + 1, skipped = false,
  blocked = blocked AND EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done'),
  run_holds = COALESCE((SELECT run.holds FROM holdfast_run AS run WHERE run.id = run_id), 0),
  output = NULL, error = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id IN (
    WITH RECURSIVE above (id) AS (
      SELECT task.parent_id FROM holdfast_task AS task WHERE task.id IN (SELECT value FROM {each ids})
      UNION SELECT task.parent_id FROM holdfast_task AS task JOIN above ON task.id = above.id)
    SELECT id FROM above)
  AND kind = 'group'
  AND NOT superseded
  AND status IN ('done', 'failed', 'cancelled')

-- name: reopen_items
-- purpose: Reset rejected items of a loop (done, failed or cancelled → idle), with the feedback
-- guards: The item belongs to this loop, has ended, is not superseded, and is named by its place,
--   unless all items are
-- changes: task
-- event: 'task.reset'
-- data: '{"epoch":' || epoch || ',"run_holds":' || run_holds || '}'
-- returning: kind
UPDATE holdfast_task SET
  status = 'idle', generation = generation + 1, epoch = epoch + 1,
  run_holds = (SELECT run.holds FROM holdfast_run AS run WHERE run.id = run_id),
  feedback = :feedback, output = NULL, error = NULL, finished_at = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE parent_id = :loop_id
  AND NOT superseded
  AND status IN ('done', 'failed', 'cancelled')
  AND (:every OR CAST(item AS text) IN (SELECT value FROM {each places}))

-- name: task_judged
-- purpose: Read the verifier, subject and workflow of running attempts that failed for good or give a verdict
-- rows: task_id text, fence integer
SELECT task.id, task.run_id, task.status, task.step, task.verifies,
  task.lease_expires_at <= (SELECT holdfast_now()) AS expired, task.round, task.max_rounds,
  task.on_failure, subject.kind AS subject_kind, subject.total AS subject_total, subject.epoch AS subject_epoch,
  run.workflow, run.workflow_version
FROM {rows} AS r JOIN holdfast_task AS task ON task.id = r.task_id
  LEFT JOIN holdfast_task AS subject ON subject.id = task.verifies
  LEFT JOIN holdfast_run AS run ON run.id = task.run_id
WHERE task.status = 'running'
  AND task.attempt = r.fence

-- name: spent_verifiers
-- purpose: List the failed or cancelled verifiers of a run that have no round left
SELECT task.id, task.verifies, task.error, subject.kind AS subject_kind, subject.epoch AS subject_epoch
FROM holdfast_task AS task JOIN holdfast_task AS subject ON subject.id = task.verifies
WHERE task.run_id = :run_id
  AND task.status IN ('failed', 'cancelled')
  AND task.round >= task.max_rounds
  AND NOT task.superseded

-- name: settle_by_person
-- purpose: Settle an approval task by the verdict of a person (idle or queued → done or failed)
-- guards: The task is an approval, idle or queued, not blocked, and its run has no holds
-- changes: task
-- event: 'task.' || status
-- data: COALESCE('{"error":' || error || '}', '{"note":' || CAST(:note AS text) || '}', '{}')
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = :verdict, output = COALESCE(CAST(:note AS text), 'null'),
  error = CASE WHEN :verdict = 'failed' THEN COALESCE(CAST(:note AS text), '"rejected"') END,
  finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND kind = 'approval'
  AND status IN ('idle', 'queued')
  AND NOT blocked
  AND run_holds = 0

-- name: send_approval_back
-- purpose: Send an approval that a person rejects back to an earlier step: queued, and blocked again
-- guards: The task is an approval, idle or queued, not blocked, its run has no holds, and it has detours left
-- changes: task
-- event: 'task.went_back'
-- data: '{"blocked":true,"round":0,"detours":' || detours || ',"epoch":' || epoch
--   || ',"failures":0,"lost":0,"error":' || error || '}'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = 'queued', blocked = true, detours = detours + 1, round = 0,
  generation = generation + 1, epoch = epoch + 1, failures = 0, lost = 0,
  error = COALESCE(CAST(:note AS text), '"rejected"'), output = NULL,
  due = NOT conditional,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND kind = 'approval'
  AND status IN ('idle', 'queued')
  AND NOT blocked
  AND run_holds = 0
  AND detours < :most

-- name: approve_held
-- purpose: Remove hold approval from a task, so that it runs again; a verifier out of rounds gets one more
-- guards: The task is queued and on hold approval
-- changes: task
-- event: 'task.approved'
-- data: '{"holds":' || holds || ',"epoch":' || epoch
--   || COALESCE(',"note":' || CAST(:note AS text), '') || '}'
-- returning: kind, conditional, blocked, parent_id, calls
-- A call whose run completed gets a new epoch, so that the call starts a new run.
UPDATE holdfast_task SET
  holds = holds & ~2,
  epoch = epoch + CASE WHEN (verifies IS NOT NULL AND round >= max_rounds) OR (calls IS NOT NULL AND EXISTS (
    SELECT 1 FROM holdfast_run AS run WHERE run.parent_id = holdfast_task.id AND run.parent_epoch = holdfast_task.epoch AND run.status = 'completed'))
    THEN 1 ELSE 0 END,
  max_rounds = CASE WHEN verifies IS NOT NULL AND round >= max_rounds THEN round + 1 ELSE max_rounds END,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'queued'
  AND (holds & 2) <> 0

-- name: reject_held
-- purpose: Fail a task on hold approval (queued → failed)
-- guards: The task is queued and on hold approval
-- changes: task
-- event: 'task.failed'
-- data: '{"holds":' || holds || ',"error":' || error || '}'
-- returning: kind, parent_id
UPDATE holdfast_task SET
  status = 'failed', holds = holds & ~2,
  error = COALESCE(:note, error, '"rejected"'), finished_at = (SELECT holdfast_now()),
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status = 'queued'
  AND (holds & 2) <> 0

-- name: ask_tasks
-- purpose: Stop running tasks at a question, on hold question (running → queued)
-- guards: The task is running under this fence
-- rows: task_id text, fence integer, asked text
-- changes: task
-- event: 'task.asked'
-- data: '{"holds":' || holds || ',"scheduled_for":null,"question":' || question
--   || COALESCE(',"usage":' || usage, '') || CASE WHEN blocked THEN ',"blocked":true' ELSE '' END
--   || COALESCE((SELECT ',"draft":"' || made.sha || '"' FROM holdfast_commit AS made WHERE made.task_id = holdfast_task.id AND made.attempt = holdfast_task.attempt AND made.kind = 'draft'), '') || '}'
-- returning: concurrency_key, parent_id
UPDATE holdfast_task SET
  status = 'queued', blocked = {waiting holdfast_task}, holds = holds | 4, question = r.asked,
  due = true, scheduled_for = NULL, lease_expires_at = NULL,
  version = version + 1, previous = status,
  changed_by = worker, changed_at = (SELECT holdfast_now())
FROM {rows} AS r
WHERE id = r.task_id
  AND status = 'running'
  AND attempt = r.fence

-- name: answer_task
-- purpose: Answer the question of a task: remove hold question, and store the answer as feedback
-- guards: The task is idle or queued, and on hold question
-- changes: task
-- event: 'task.answered'
-- data: '{"holds":' || holds || '}'
-- returning: kind
UPDATE holdfast_task SET
  holds = holds & ~4, feedback = :answer, question = NULL,
  version = version + 1, previous = status,
  changed_by = :actor, changed_at = (SELECT holdfast_now())
WHERE id = :task_id
  AND status IN ('idle', 'queued')
  AND (holds & 4) <> 0

-- name: task_beside
-- purpose: Find the task of a step in the same item as another task, or outside all loops as that task
SELECT other.id FROM holdfast_task AS task JOIN holdfast_task AS other ON other.run_id = task.run_id
WHERE task.id = :task_id
  AND other.step = :step
  AND NOT other.superseded
  AND COALESCE(other.parent_id, '') = COALESCE(task.parent_id, '')

-- name: out_of_rounds
-- purpose: Read a verifier that has no round left, and its subject, if that is done
SELECT task.id, task.verifies, task.error, subject.kind AS subject_kind, subject.epoch AS subject_epoch
FROM holdfast_task AS task JOIN holdfast_task AS subject ON subject.id = task.verifies
WHERE task.id = :task_id
  AND task.round >= task.max_rounds
  AND subject.status = 'done'
