"""The workload by hand on SQLite: prepared statements, one durable transaction for each batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

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
from holdfast.clock import SystemClock
from holdfast.store.sqlite.connection import connect

_EVENT = """
INSERT INTO holdfast_event (entity, run_id, version, from_status, to_status, attempt, generation,
  actor, at, type, data)
VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
"""
_TASK = """
INSERT INTO holdfast_task (id, run_id, step, title, status, blocked, body_digest, max_attempts,
  max_lost, backoff, backoff_max, payload, changed_by, changed_at, created_at)
VALUES (?, ?, ?, ?, 'queued', ?, '', 3, 5, 5000000, 300000000, 'null', 'user', ?, ?)
"""
_RUN = """
INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, input, changed_by,
  changed_at, created_at)
VALUES (?, ?, ?, '', 'running', 'null', 'user', ?, ?)
"""
_NEED = "INSERT INTO holdfast_need (task_id, need_id, since) VALUES (?, ?, 1)"
_WORKFLOW = """
INSERT INTO holdfast_workflow (name, version, definition, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT (name, version) DO NOTHING
"""
CLAIM = """
UPDATE holdfast_task SET status = 'running', attempt = attempt + 1, worker = :worker,
  lease_expires_at = :now + :lease, started_at = COALESCE(started_at, :now),
  version = version + 1, previous = status, changed_by = :worker, changed_at = :now
WHERE id IN (
  SELECT id FROM holdfast_task
  WHERE status = 'queued' AND kind = 'work' AND NOT blocked AND holds = 0 AND run_holds = 0
    AND due AND NOT parked AND agent = 'default' AND tags = '[]'
    AND bare = false
  ORDER BY run_now DESC, priority DESC, position, id LIMIT :count)
RETURNING id, run_id, version, attempt
"""
_COMPLETE = """
UPDATE holdfast_task SET status = 'done', output = ?, result_digest = ?, lease_expires_at = NULL,
  finished_at = ?, version = version + 1, previous = status, changed_by = worker, changed_at = ?
WHERE id = ? AND status = 'running' AND attempt = ?
"""
_HAND_ON = """
UPDATE holdfast_task SET blocked = false, status = 'running', attempt = attempt + 1,
  worker = :worker, lease_expires_at = :now + :lease, started_at = COALESCE(started_at, :now),
  version = version + 1, previous = status, changed_by = :worker, changed_at = :now
WHERE id IN (
    SELECT task_id FROM holdfast_need WHERE need_id IN (SELECT value FROM json_each(:ids)))
  AND blocked AND status IN ('idle', 'queued')
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = holdfast_task.id AND needed.status <> 'done')
RETURNING id, run_id, version, attempt
"""
_SETTLE = """
UPDATE holdfast_run SET status = 'completed', finished_at = :now, version = version + 1,
  previous = status, changed_by = 'advance', changed_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'running'
  AND NOT EXISTS (
    SELECT 1 FROM holdfast_task AS task
    WHERE task.run_id = holdfast_run.id AND task.status <> 'done')
RETURNING id, version
"""
_FINISHED = """
INSERT INTO holdfast_task (id, title, status, body_digest, max_attempts, max_lost, backoff,
  backoff_max, payload, attempt, output, result_digest, version, previous, worker, changed_by,
  changed_at, created_at, started_at, finished_at)
VALUES (?, 'job', 'done', '', 3, 5, 5000000, 300000000, 'null', 1, ?, ?, 3, 'running', ?, ?, ?, ?,
  ?, ?)
"""
_TOUCH = "UPDATE holdfast_task SET version = version + 1, changed_at = ? WHERE id = ?"


class SqliteByHand:
    def __init__(self, path: Path) -> None:
        self._connection = connect(path, SystemClock())
        self._rows = Rows()
        self._touched: list[tuple[str, int]] = []

    def create_tasks(self, count: int) -> None:
        self.load_tasks(self._rows.tasks(count))

    def load_tasks(self, ids: Sequence[str]) -> None:
        at = now()
        with self._transaction():
            self._many(_TASK, [(each, None, "job", "job", False, at, at) for each in ids])
            self._events(
                [(i, None, 1, None, "queued", 0, "user", at, CREATED) for i in ids], "task.created"
            )

    def create_pipelines(self, count: int) -> None:
        with self._transaction():
            self._create_pipelines(count, now())

    def begin_pipeline(self) -> list[Held]:
        at = now()
        with self._transaction():
            self._create_pipelines(1, at)
            return self._claim(1, at)

    def _create_pipelines(self, count: int, at: int) -> None:
        new = list(self._rows.pipelines(count))
        tasks = [
            (each, row.run_id, step, step, step != STEPS[0], at, at)
            for row in new
            for each, step in zip(row.task_ids, STEPS, strict=True)
        ]
        needs = [pair for row in new for pair in zip(row.task_ids[1:], row.task_ids, strict=False)]
        pinned = (PIPELINE.name, PIPELINE.version, PIPELINE.definition, at)
        self._connection.execute(_WORKFLOW, pinned)
        runs = [(row.run_id, PIPELINE.name, PIPELINE.version, at, at) for row in new]
        self._many(_RUN, runs)
        started = [
            (row.run_id, row.run_id, 1, None, "running", 0, "user", at, STARTED) for row in new
        ]
        self._events(started, "run.started")
        self._many(_TASK, tasks)
        created = [
            (
                task[0],
                task[1],
                1,
                None,
                "queued",
                0,
                "user",
                at,
                CREATED_BLOCKED if task[4] else CREATED,
            )
            for task in tasks
        ]
        self._events(created, "task.created")
        self._many(_NEED, needs)

    def step(self, done: list[Held], count: int) -> list[Held]:
        at = now()
        with self._transaction():
            started = self._complete(done, at) if done else []
            room = count - len(started)
            return started + (self._claim(room, at) if room else [])

    def _claim(self, count: int, at: int) -> list[Held]:
        parameters: dict[str, int | str] = {"now": at, "worker": WORKER, "lease": LEASE}
        parameters["count"] = count
        return self._start(CLAIM, parameters, None)

    def _start(
        self, statement: str, parameters: Mapping[str, int | str], data: str | None
    ) -> list[Held]:
        started = [Held(*row) for row in self._connection.execute(statement, parameters)]
        at = parameters["now"]
        events = [
            (
                each.id,
                each.run_id,
                each.version,
                "queued",
                "running",
                each.attempt,
                WORKER,
                at,
                data,
            )
            for each in started
        ]
        self._events(events, "task.running")
        return started

    def fill(self, count: int) -> None:
        at = now()
        ids = self._rows.tasks(count)
        with self._transaction():
            row = (OUTPUT, DIGEST, WORKER, WORKER, at, at, at, at)
            self._many(_FINISHED, [(each, *row) for each in ids])
            self._events(
                [(i, None, 1, None, "queued", 0, "user", at, CREATED) for i in ids], "task.created"
            )
            self._events(
                [(i, None, 2, "queued", "running", 1, WORKER, at, None) for i in ids],
                "task.running",
            )
            self._events(
                [(i, None, 3, "running", "done", 1, WORKER, at, DONE) for i in ids], "task.done"
            )
        # Its own work, and not that of whoever writes next.
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def commit_once(self) -> None:
        if not self._touched:
            self.create_tasks(1)
            found = self._connection.execute("SELECT max(id) FROM holdfast_task").fetchone()
            assert found is not None
            self._touched.append((str(found[0]), 1))
        identifier, version = self._touched.pop()
        at = now()
        with self._transaction():
            self._connection.execute(_TOUCH, (at, identifier))
            row = (identifier, None, version + 1, "queued", "queued", 0, "user", at, None)
            self._events([row], "task.edited")
        self._touched.append((identifier, version + 1))

    def close(self) -> None:
        self._connection.close()

    def _complete(self, done: list[Held], at: int) -> list[Held]:
        before = self._connection.total_changes()
        reports = [(OUTPUT, DIGEST, at, at, held.id, held.attempt) for held in done]
        self._many(_COMPLETE, reports)
        assert self._connection.total_changes() - before == len(done)
        ended = [
            (
                held.id,
                held.run_id,
                held.version + 1,
                "running",
                "done",
                held.attempt,
                WORKER,
                at,
                DONE,
            )
            for held in done
        ]
        self._events(ended, "task.done")
        runs = {held.run_id for held in done if held.run_id is not None}
        return self._follow([held.id for held in done], runs, at) if runs else []

    def _follow(self, ids: list[str], runs: set[str], at: int) -> list[Held]:
        """Start what needed some tasks, and end the runs in which nothing did."""
        given: dict[str, int | str] = {
            "now": at,
            "ids": json.dumps(ids),
            "worker": WORKER,
            "lease": LEASE,
        }
        started = self._start(_HAND_ON, given, UNBLOCKED)
        ended = sorted(runs - {str(each.run_id) for each in started})
        if ended:
            parameters = {"now": at, "ids": json.dumps(ended)}
            settled = [
                (run, run, version, "running", "completed", 0, "advance", at, None)
                for run, version in self._connection.execute(_SETTLE, parameters)
            ]
            self._events(settled, "run.completed")
        return started

    def _events(self, rows: Sequence[tuple[object, ...]], kind: str) -> None:
        self._many(_EVENT, [(*row[:-1], kind, row[-1]) for row in rows])

    def _many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        for _ in self._connection.executemany(statement, rows):
            pass

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        yield
        self._connection.execute("COMMIT")
