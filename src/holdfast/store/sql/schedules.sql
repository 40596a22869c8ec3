-- name: put_schedules
-- purpose: Create schedules, or replace those whose content has changed
-- guards: The content has changed, and the run that the schedule belongs to, if any, is running
-- rows: schedule text, rule text, place text, policy text, flow text, digest text, pattern text,
--   given text, owner text, body text, upcoming integer
INSERT INTO holdfast_schedule (name, cron, zone, missed, workflow, workflow_version, template,
  input, run_id, body_digest, next_at, created_at)
SELECT r.schedule, r.rule, r.place, r.policy, r.flow, r.digest, r.pattern,
  r.given, r.owner, r.body, r.upcoming, (SELECT holdfast_now())
FROM {rows} AS r
WHERE (r.owner IS NULL OR EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = r.owner AND run.status = 'running'))
ON CONFLICT (name) DO UPDATE SET
  cron = excluded.cron, zone = excluded.zone, missed = excluded.missed,
  workflow = excluded.workflow, workflow_version = excluded.workflow_version,
  template = excluded.template, input = excluded.input, run_id = excluded.run_id,
  body_digest = excluded.body_digest,
  next_at = CASE
    WHEN holdfast_schedule.next_at IS NULL THEN NULL
    WHEN holdfast_schedule.cron = excluded.cron AND holdfast_schedule.zone = excluded.zone THEN holdfast_schedule.next_at
    ELSE excluded.next_at END,
  last_error = NULL,
  version = holdfast_schedule.version + 1
WHERE holdfast_schedule.body_digest <> excluded.body_digest
RETURNING name

-- name: fire_schedules
-- purpose: Move schedules past the ticks that fire in the same transaction
-- guards: The version is the one that the ticks were computed from, the schedule is due by the clock of
--   the database, and the run that it belongs to, if any, is running
-- rows: schedule text, from_version integer, latest integer, upcoming integer, problem text
UPDATE holdfast_schedule SET
  next_at = r.upcoming,
  last_at = COALESCE(r.latest, last_at),
  last_error = r.problem,
  version = version + 1
FROM {rows} AS r
WHERE name = r.schedule
  AND version = r.from_version
  AND next_at <= (SELECT holdfast_now())
  AND (run_id IS NULL OR EXISTS (SELECT 1 FROM holdfast_run AS run WHERE run.id = holdfast_schedule.run_id AND run.status = 'running'))
RETURNING name, workflow, workflow_version, template, input

-- name: note_schedule_errors
-- purpose: Record why a schedule could not start its task or run
-- guards: The schedule has fired in this transaction
-- rows: schedule text, problem text
UPDATE holdfast_schedule SET last_error = r.problem
FROM {rows} AS r
WHERE name = r.schedule

-- name: pause_schedule
-- purpose: Pause a schedule: no tick fires until it is resumed
-- guards: The schedule is not paused yet
UPDATE holdfast_schedule SET next_at = NULL, version = version + 1
WHERE name = :name
  AND next_at IS NOT NULL
RETURNING name

-- name: resume_schedule
-- purpose: Resume a paused schedule from its next tick
-- guards: The schedule is paused, and its version is the one that the tick was computed from
UPDATE holdfast_schedule SET next_at = :upcoming, last_error = NULL, version = version + 1
WHERE name = :name
  AND version = :from_version
  AND next_at IS NULL
RETURNING name

-- name: remove_schedule
-- purpose: Delete a schedule; the tasks and runs that it has started stay
-- guards: The schedule has that name
DELETE FROM holdfast_schedule
WHERE name = :name
RETURNING name

-- name: remove_schedules_of_runs
-- purpose: Delete the schedules that belong to some runs, in the transaction that ends the runs
-- guards: The schedule belongs to one of the runs
DELETE FROM holdfast_schedule
WHERE run_id IN (SELECT value FROM {each ids})

-- name: lock_schedules
-- purpose: Lock schedules in the order of their names, and read the runs that they belong to
SELECT name, run_id FROM holdfast_schedule
WHERE name IN (SELECT value FROM {each names})
ORDER BY name {lock}

-- name: schedule_owners
-- purpose: Read the status of the runs that some schedules belong to
SELECT schedule.name, run.id, run.status
FROM holdfast_schedule AS schedule JOIN holdfast_run AS run ON run.id = schedule.run_id
WHERE schedule.name IN (SELECT value FROM {each names})

-- name: due_schedules
-- purpose: List the schedules that have a tick to fire, the longest due first
SELECT name, cron, zone, missed, next_at, version, length(input) AS size,
  (SELECT holdfast_now()) AS now
FROM holdfast_schedule
WHERE next_at <= (SELECT holdfast_now())
ORDER BY next_at, name LIMIT :count

-- name: schedule_by_name
-- purpose: Read one schedule
SELECT * FROM holdfast_schedule WHERE name = :name

-- name: schedules_by_name
-- purpose: Read some schedules
SELECT * FROM holdfast_schedule WHERE name IN (SELECT value FROM {each names})

-- name: list_schedules
-- purpose: List a page of schedules, by name
SELECT * FROM holdfast_schedule
WHERE name > :after
ORDER BY name LIMIT :count

-- name: failing_schedules
-- purpose: List the schedules that could not start anything at their last tick
SELECT name, last_error FROM holdfast_schedule
WHERE last_error IS NOT NULL
ORDER BY name
