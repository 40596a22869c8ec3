"""The database itself refuses an illegal row: hand-written SQL does not slip a task backwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import (
    RUN_TERMINAL,
    RUN_TRANSITIONS,
    TASK_TRANSITIONS,
    TERMINAL,
    RunStatus,
    Status,
    Transition,
)
from tests.contract.engine.state.test_run_transitions import bring_run
from tests.contract.raw_store import REFUSED, Raw, raw
from tests.contract.task_states import bring, create, start

MOVE_TASK = """
UPDATE holdfast_task SET status = ?, generation = generation + ?, lease_expires_at = ?,
  finished_at = ? WHERE id = ?
"""
MOVE_RUN = """
UPDATE holdfast_run SET status = ?, generation = generation + ?, finished_at = ? WHERE id = ?
"""


@pytest.fixture
def run(engine: Engine, store_url: str) -> Iterator[Raw]:
    assert engine.doctor().ok
    with raw(store_url) as connection:
        yield connection


def accepts(run: Raw, statement: str, *values: object) -> bool:
    """Whether the database would take a statement; it never keeps it."""
    run("BEGIN")
    accepted = False
    with suppress(*REFUSED):
        run(statement, *values)
        accepted = True
    run("ROLLBACK")
    return accepted


def move_task(run: Raw, task_id: str, target: Status, generations: int) -> bool:
    lease = 5 if target is Status.RUNNING else None
    finished = 5 if target in TERMINAL else None
    return accepts(run, MOVE_TASK, target.value, generations, lease, finished, task_id)


def move_run(run: Raw, run_id: str, target: RunStatus, generations: int) -> bool:
    finished = 5 if target in RUN_TERMINAL else None
    return accepts(run, MOVE_RUN, target.value, generations, finished, run_id)


def pairs(table: tuple[Transition, ...]) -> set[tuple[str, str]]:
    return {(move.source, move.target) for move in table}


def test_the_trigger_on_tasks_allows_exactly_the_table(engine: Engine, run: Raw) -> None:
    allowed = {
        (source.value, target.value)
        for source, target in permutations(Status, 2)
        if move_task(run, bring(engine, source).task_id, target, int(source in TERMINAL))
    }
    assert allowed == pairs(TASK_TRANSITIONS)


def test_the_trigger_on_runs_allows_exactly_the_table(engine: Engine, run: Raw) -> None:
    runs = {status: bring_run(engine, status).id for status in RunStatus}
    allowed = {
        (source.value, target.value)
        for source, target in permutations(RunStatus, 2)
        if move_run(run, runs[source], target, int(source in RUN_TERMINAL))
    }
    assert allowed == pairs(RUN_TRANSITIONS)


@pytest.mark.parametrize("generations", [-1, 0, 2])
def test_a_terminal_row_moves_only_with_the_next_generation(
    engine: Engine, run: Raw, generations: int
) -> None:
    for source in TERMINAL:
        task_id = bring(engine, source).task_id
        assert not any(
            move_task(run, task_id, target, generations)
            for target in Status
            if target is not source
        )
    for ended in RUN_TERMINAL:
        run_id = bring_run(engine, ended).id
        assert not move_run(run, run_id, RunStatus.RUNNING, generations)


def test_the_table_says_which_moves_begin_a_generation() -> None:
    for move in TASK_TRANSITIONS:
        assert move.new_generation == (move.source in TERMINAL)
    for move in RUN_TRANSITIONS:
        assert move.new_generation == (move.source in RUN_TERMINAL)


ILLEGAL_TASKS = {
    "running without a lease": ("queued", "status = 'running'"),
    "a lease that is taken from a running task": ("running", "lease_expires_at = NULL"),
    "queued with a lease": ("queued", "lease_expires_at = 5"),
    "done without an end": ("running", "status = 'done', lease_expires_at = NULL"),
    "done with a lease": ("running", "status = 'done', finished_at = 5"),
    "cancelled without an end": ("queued", "status = 'cancelled'"),
    "an end that is taken from a done task": ("done", "finished_at = NULL"),
    "an end of a queued task": ("queued", "finished_at = 5"),
    "an end of a running task": ("running", "finished_at = 5"),
    "a status nobody knows": ("queued", "status = 'waiting'"),
    "no status": ("queued", "status = ''"),
    "a kind nobody knows": ("queued", "kind = 'magic'"),
    "a planning phase nobody knows": ("queued", "planning_phase = 'soon'"),
    "more failures than the budget": ("queued", "failures = max_attempts + 1"),
    "more lost attempts than the budget": ("queued", "lost = max_lost + 1"),
}


@pytest.mark.parametrize("row", ILLEGAL_TASKS)
def test_an_illegal_task_is_refused(engine: Engine, run: Raw, row: str) -> None:
    status, change = ILLEGAL_TASKS[row]
    task_id = bring(engine, Status(status)).task_id
    assert not accepts(run, f"UPDATE holdfast_task SET {change} WHERE id = ?", task_id)  # noqa: S608
    assert accepts(run, "UPDATE holdfast_task SET title = 'x' WHERE id = ?", task_id)


ILLEGAL_RUNS = {
    "ended without an end": ("running", "status = 'completed'"),
    "an end of a running run": ("running", "finished_at = 5"),
    "an end that is taken from a completed run": ("completed", "finished_at = NULL"),
    "a status nobody knows": ("running", "status = 'paused'"),
    "back to running with its end": ("failed", "status = 'running', generation = generation + 1"),
}


@pytest.mark.parametrize("row", ILLEGAL_RUNS)
def test_an_illegal_run_is_refused(engine: Engine, run: Raw, row: str) -> None:
    status, change = ILLEGAL_RUNS[row]
    run_id = bring_run(engine, RunStatus(status)).id
    assert not accepts(run, f"UPDATE holdfast_run SET {change} WHERE id = ?", run_id)  # noqa: S608


def test_a_row_is_not_born_illegal_either(engine: Engine, run: Raw) -> None:
    create(engine)
    copied = """
    INSERT INTO holdfast_task (id, title, status, body_digest, max_attempts, max_lost, backoff,
      backoff_max, payload, changed_by, changed_at, created_at, lease_expires_at, finished_at)
    VALUES ('t_new', 'x', ?, '', 3, 5, 1, 1, 'null', 'hand', 0, 0, ?, ?)
    """
    assert accepts(run, copied, "queued", None, None)
    assert accepts(run, copied, "running", 5, None)
    for illegal in (("running", None, None), ("done", None, None), ("idle", 5, None), ("x", 5, 5)):
        assert not accepts(run, copied, *illegal)


def test_a_task_does_not_need_itself(engine: Engine, run: Raw) -> None:
    task_id, other = create(engine), create(engine)
    insert = "INSERT INTO holdfast_need (task_id, need_id, since) VALUES (?, ?, 1)"
    assert accepts(run, insert, task_id, other)
    assert not accepts(run, insert, task_id, task_id)


def test_a_counter_neither_falls_below_zero_nor_is_without_room(engine: Engine, run: Raw) -> None:
    start(engine)
    insert = "INSERT INTO holdfast_slot (key, capacity, highest, used) VALUES ('k', ?, 1, ?)"
    assert accepts(run, insert, 1, 0)
    assert not accepts(run, insert, 0, 0)
    assert not accepts(run, insert, 1, -1)
