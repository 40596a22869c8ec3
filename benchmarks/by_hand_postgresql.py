"""The workload by hand on PostgreSQL: each change and its events are one set-based statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from benchmarks.by_hand import (
    CREATED,
    CREATED_BLOCKED,
    DIGEST,
    DONE,
    LEASE,
    OUTPUT,
    PIPELINE,
    STARTED,
    STEPS,
    UNBLOCKED,
    WORKER,
    Held,
    Rows,
    now,
)

# As the engine's writer: plans made while the tables were empty must use their indexes.
INDEXED = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off"

_TASKS = """
WITH new AS (
  INSERT INTO holdfast_task (id, run_id, step, title, status, blocked, body_digest, max_attempts,
    max_lost, backoff, backoff_max, payload, changed_by, changed_at, created_at)
  SELECT id, run_id, step, step, 'queued', blocked, '', 3, 5, 5000000, 300000000,
    'null', 'user', %(now)s, %(now)s
  FROM unnest(%(ids)s::text[], %(runs)s::text[], %(steps)s::text[], %(blocked)s::boolean[])
    AS r (id, run_id, step, blocked)
  RETURNING id, run_id, blocked)
INSERT INTO holdfast_event (entity, run_id, version, to_status, attempt, generation, actor, at,
  type, data)
SELECT id, run_id, 1, 'queued', 0, 1, 'user', %(now)s, 'task.created',
  CASE WHEN blocked THEN %(created_blocked)s ELSE %(created)s END
FROM new
"""
_COPY_TASKS = """
COPY holdfast_task (id, title, status, body_digest, max_attempts, max_lost, backoff, backoff_max,
  payload, changed_by, changed_at, created_at) FROM STDIN
"""
_COPY_EVENTS = """
COPY holdfast_event (entity, version, to_status, attempt, generation, actor, at, type, data)
FROM STDIN
"""
_RUNS = """
WITH new AS (
  INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, input, changed_by,
    changed_at, created_at)
  SELECT id, %(name)s, %(version)s, '', 'running', 'null', 'user', %(now)s, %(now)s
  FROM unnest(%(ids)s::text[]) AS r (id)
  RETURNING id)
INSERT INTO holdfast_event (entity, run_id, version, to_status, attempt, generation, actor, at,
  type, data)
SELECT id, id, 1, 'running', 0, 1, 'user', %(now)s, 'run.started', %(started)s FROM new
"""
_NEEDS = """
INSERT INTO holdfast_need (task_id, need_id, since)
SELECT task_id, need_id, 1 FROM unnest(%s::text[], %s::text[]) AS r (task_id, need_id)
"""
_WORKFLOW = """
INSERT INTO holdfast_workflow (name, version, definition, created_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (name, version) DO NOTHING
"""
CLAIM = """
WITH changed AS (
  UPDATE holdfast_task SET status = 'running', attempt = attempt + 1, worker = %(worker)s,
    lease_expires_at = %(now)s::bigint + %(lease)s, started_at = COALESCE(started_at, %(now)s),
    version = version + 1, previous = status, changed_by = %(worker)s, changed_at = %(now)s
  WHERE id IN (
    SELECT id FROM holdfast_task
    WHERE status = 'queued' AND kind = 'work' AND NOT blocked AND holds = 0 AND run_holds = 0
      AND due AND NOT parked AND agent = 'default' AND tags = '[]'
      AND bare = false
    ORDER BY run_now DESC, priority DESC, position, id LIMIT %(count)s FOR UPDATE SKIP LOCKED)
  RETURNING id, run_id, version, attempt),
recorded AS (
  INSERT INTO holdfast_event (entity, run_id, version, from_status, to_status, attempt, generation,
    actor, at, type)
  SELECT id, run_id, version, 'queued', 'running', attempt, 1, %(worker)s, %(now)s, 'task.running'
  FROM changed)
SELECT id, run_id, version, attempt FROM changed
"""
_COMPLETE = """
WITH changed AS (
  UPDATE holdfast_task AS task SET status = 'done', output = %(output)s,
    result_digest = %(digest)s, lease_expires_at = NULL, finished_at = %(now)s,
    version = version + 1, previous = status, changed_by = worker, changed_at = %(now)s
  FROM unnest(%(ids)s::text[], %(attempts)s::integer[]) AS r (id, attempt)
  WHERE task.id = r.id AND task.status = 'running' AND task.attempt = r.attempt
  RETURNING task.id, task.run_id, task.version, task.attempt)
INSERT INTO holdfast_event (entity, run_id, version, from_status, to_status, attempt, generation,
  actor, at, type, data)
SELECT id, run_id, version, 'running', 'done', attempt, 1, %(worker)s, %(now)s, 'task.done',
  %(done)s
FROM changed
"""
_HAND_ON = """
WITH changed AS (
  UPDATE holdfast_task SET blocked = false, status = 'running', attempt = attempt + 1,
    worker = %(worker)s, lease_expires_at = %(now)s::bigint + %(lease)s,
    started_at = COALESCE(started_at, %(now)s), version = version + 1, previous = status,
    changed_by = %(worker)s, changed_at = %(now)s
  FROM (
    SELECT DISTINCT need.task_id FROM unnest(%(ids)s::text[]) AS done (id)
    JOIN holdfast_need AS need ON need.need_id = done.id) AS following
  WHERE id = following.task_id AND blocked AND status IN ('idle', 'queued')
    AND NOT EXISTS (
      SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
      WHERE need.task_id = holdfast_task.id AND needed.status <> 'done')
  RETURNING id, run_id, version, attempt),
recorded AS (
  INSERT INTO holdfast_event (entity, run_id, version, from_status, to_status, attempt, generation,
    actor, at, type, data)
  SELECT id, run_id, version, 'queued', 'running', attempt, 1, %(worker)s, %(now)s, 'task.running',
    %(unblocked)s
  FROM changed)
SELECT id, run_id, version, attempt FROM changed
"""
_SETTLE = """
WITH changed AS (
  UPDATE holdfast_run SET status = 'completed', finished_at = %(now)s, version = version + 1,
    previous = status, changed_by = 'advance', changed_at = %(now)s
  WHERE id = ANY (%(ids)s) AND status = 'running'
    AND NOT EXISTS (
      SELECT 1 FROM holdfast_task AS task
      WHERE task.run_id = holdfast_run.id AND task.status <> 'done')
  RETURNING id, version)
INSERT INTO holdfast_event (entity, run_id, version, from_status, to_status, attempt, generation,
  actor, at, type)
SELECT id, id, version, 'running', 'completed', 0, 1, 'advance', %(now)s, 'run.completed'
FROM changed
"""
_FINISHED = """
INSERT INTO holdfast_task (id, title, status, body_digest, max_attempts, max_lost, backoff,
  backoff_max, payload, attempt, output, result_digest, version, previous, worker, changed_by,
  changed_at, created_at, started_at, finished_at)
SELECT id, 'job', 'done', '', 3, 5, 5000000, 300000000, 'null', 1, %(output)s, %(digest)s, 3,
  'running', %(worker)s, %(worker)s, %(now)s, %(now)s, %(now)s, %(now)s
FROM unnest(%(ids)s::text[]) AS r (id)
"""
_HISTORY = """
INSERT INTO holdfast_event (entity, version, from_status, to_status, attempt, generation, actor,
  at, type, data)
SELECT id, step.version, step.from_status, step.to_status, step.attempt, 1, %(worker)s, %(now)s,
  step.type, step.data
FROM unnest(%(ids)s::text[]) AS r (id), (VALUES
  (1, NULL, 'queued', 0, 'task.created', %(created)s),
  (2, 'queued', 'running', 1, 'task.running', NULL),
  (3, 'running', 'done', 1, 'task.done', %(done)s))
  AS step (version, from_status, to_status, attempt, type, data)
"""
_TOUCH = """
WITH changed AS (
  UPDATE holdfast_task SET version = version + 1, changed_at = %(now)s
  WHERE id = (SELECT max(id) FROM holdfast_task) RETURNING id, version)
INSERT INTO holdfast_event (entity, version, from_status, to_status, attempt, generation, actor,
  at, type)
SELECT id, version, 'queued', 'queued', 0, 1, 'user', %(now)s, 'task.edited' FROM changed
"""


CHANNEL = "holdfast_bench"
_TOUCH_AND_NOTIFY = """
WITH changed AS (
  UPDATE holdfast_task SET version = version + 1, changed_at = %(now)s
  WHERE id = (SELECT max(id) FROM holdfast_task) RETURNING id, version),
recorded AS (
  INSERT INTO holdfast_event (entity, version, from_status, to_status, attempt, generation, actor,
    at, type)
  SELECT id, version, 'queued', 'queued', 0, 1, 'user', %(now)s, 'task.edited' FROM changed)
SELECT pg_notify('holdfast_bench', id) FROM changed
"""


class PostgresqlByHand:
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            url, autocommit=True, prepare_threshold=0, options=INDEXED
        )
        self._rows = Rows()
        self._touches = False

    def create_tasks(self, count: int) -> None:
        with self._connection.transaction():
            ids = self._rows.tasks(count)
            self._create(ids, [None] * count, ["job"] * count, [False] * count)

    def load_tasks(self, ids: Sequence[str]) -> None:
        at = now()
        with self._connection.transaction(), self._connection.cursor() as cursor:
            with cursor.copy(_COPY_TASKS) as copy:
                for each in ids:
                    row = (each, "job", "queued", "", 3, 5, 5_000_000, 300_000_000, "null", "user")
                    copy.write_row((*row, at, at))
            with cursor.copy(_COPY_EVENTS) as copy:
                for each in ids:
                    event = (each, 1, "queued", 0, 1, "user")
                    copy.write_row((*event, at, "task.created", CREATED))

    def create_pipelines(self, count: int) -> None:
        with self._connection.transaction(), self._connection.pipeline():
            self._create_pipelines(count, now())

    def begin_pipeline(self) -> list[Held]:
        at = now()
        with self._connection.transaction(), self._connection.pipeline():
            self._create_pipelines(1, at)
            return self._claim(1, at)

    def _create_pipelines(self, count: int, at: int) -> None:
        new = list(self._rows.pipelines(count))
        runs = [row.run_id for row in new]
        ids = [each for row in new for each in row.task_ids]
        needs = [pair for row in new for pair in zip(row.task_ids[1:], row.task_ids, strict=False)]
        pinned = (PIPELINE.name, PIPELINE.version, PIPELINE.definition, at)
        self._connection.execute(_WORKFLOW, pinned)
        self._run(
            _RUNS,
            ids=runs,
            now=at,
            name=PIPELINE.name,
            version=PIPELINE.version,
            started=STARTED,
        )
        self._create(
            ids,
            [run for run in runs for _ in STEPS],
            [step for _ in runs for step in STEPS],
            [step != STEPS[0] for _ in runs for step in STEPS],
        )
        pairs = tuple(list(side) for side in zip(*needs, strict=True))
        self._connection.execute(_NEEDS, pairs)

    def step(self, done: list[Held], count: int) -> list[Held]:
        at = now()
        with self._connection.transaction():
            started = self._complete(done, at) if done else []
            room = count - len(started)
            return started + (self._claim(room, at) if room else [])

    def _claim(self, count: int, at: int) -> list[Held]:
        return self._start(CLAIM, now=at, worker=WORKER, lease=LEASE, count=count)

    def _start(self, statement: str, **parameters: object) -> list[Held]:
        return [Held(*row) for row in self._run(statement, **parameters).fetchall()]

    def fill(self, count: int) -> None:
        at = now()
        ids = self._rows.tasks(count)
        with self._connection.transaction():
            self._run(_FINISHED, ids=ids, now=at, worker=WORKER, output=OUTPUT, digest=DIGEST)
            self._run(_HISTORY, ids=ids, now=at, worker=WORKER, created=CREATED, done=DONE)
        self._connection.execute("VACUUM ANALYZE")

    def commit_once(self) -> None:
        if not self._touches:
            self.create_tasks(1)
            self._touches = True
        self._run(_TOUCH, now=now())

    def notify_once(self) -> None:
        """The same, and a NOTIFY with it."""
        self._run(_TOUCH_AND_NOTIFY, now=now())

    def close(self) -> None:
        self._connection.close()

    def _create(
        self,
        ids: list[str],
        runs: Sequence[str | None],
        steps: list[str],
        blocked: list[bool],
    ) -> None:
        self._run(
            _TASKS,
            ids=ids,
            runs=list(runs),
            steps=steps,
            blocked=blocked,
            now=now(),
            created=CREATED,
            created_blocked=CREATED_BLOCKED,
        )

    def _complete(self, done: list[Held], at: int) -> list[Held]:
        ids = [held.id for held in done]
        completed = self._run(
            _COMPLETE,
            ids=ids,
            attempts=[held.attempt for held in done],
            now=at,
            worker=WORKER,
            output=OUTPUT,
            digest=DIGEST,
            done=DONE,
        )
        assert completed.rowcount == len(done)
        runs = {held.run_id for held in done if held.run_id is not None}
        if not runs:
            return []
        started = self._start(
            _HAND_ON, ids=ids, now=at, worker=WORKER, lease=LEASE, unblocked=UNBLOCKED
        )
        ended = sorted(runs - {str(each.run_id) for each in started})
        if ended:
            self._run(_SETTLE, ids=ended, now=at)
        return started

    def _run(self, statement: str, **parameters: object) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(statement.encode(), parameters)
