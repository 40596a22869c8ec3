"""What follows from a change reaches its own run and its own dependents, and nothing beside them.

One statement of an operation is written and nothing of what should follow it, as if its process
had died there: whatever waits like that waits for its own advance.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.raw_store import Row, raw
from tests.contract.single_statements import complete, fail, write
from tests.contract.task_states import StartedRun, create, start, take

SIDES = Workflow.define(
    "sides", (Step(id="plan"), Step(id="work", needs=("plan",)), Step(id="aside"))
)


def rows_of(url: str, run: StartedRun) -> list[Row]:
    with raw(url) as read:
        rows = read("SELECT * FROM holdfast_run WHERE id = ?", run.id)
        return rows + read("SELECT * FROM holdfast_task WHERE run_id = ? ORDER BY id", run.id)


def with_a_task_done(engine: Engine, run: StartedRun) -> None:
    run.take("plan")
    complete(engine, run.steps["plan"])


def with_all_tasks_done(engine: Engine, run: StartedRun) -> None:
    run.finish("plan", "aside")
    run.take("work")
    complete(engine, run.steps["work"])


def with_a_task_failed(engine: Engine, run: StartedRun) -> None:
    run.take("plan")
    fail(engine, run.steps["plan"])


def with_a_hold_of_its_own(engine: Engine, run: StartedRun) -> None:
    reason = int(Hold.PAUSED)
    assert write(engine, "hold_run", run_id=run.id, reason=reason, actor="user") == {run.id}


def with_its_failed_task_back(engine: Engine, run: StartedRun) -> None:
    run.take("aside")
    run.break_for_good("plan")
    plan = run.steps["plan"]
    assert write(engine, "retry_run_tasks", run_id=run.id, named=None, actor="user") == {plan}


@pytest.mark.parametrize(
    "left",
    [
        with_a_task_done,
        with_all_tasks_done,
        with_a_task_failed,
        with_a_hold_of_its_own,
        with_its_failed_task_back,
    ],
)
def test_advance_of_a_run_heals_that_run_alone(
    engine: Engine, store_url: str, left: Callable[[Engine, StartedRun], None]
) -> None:
    first, second = start(engine, SIDES), start(engine, SIDES)
    for run in (first, second):
        left(engine, run)
    before = rows_of(store_url, first), rows_of(store_url, second)
    engine.runs.advance(first.id)
    assert rows_of(store_url, first) != before[0]
    assert rows_of(store_url, second) == before[1]
    engine.runs.advance(second.id)
    assert rows_of(store_url, second) != before[1]


def test_an_end_unblocks_only_what_needed_that_task(engine: Engine) -> None:
    needed, other = create(engine), create(engine)
    dependent, beside = create(engine, needs=(needed,)), create(engine, needs=(other,))
    take(engine, other)
    complete(engine, other)
    assignment = take(engine, needed)
    assert engine.work.complete(needed, assignment.token).ok
    assert not engine.tasks.get(dependent).blocked
    assert engine.tasks.get(beside).blocked
    assert write(engine, "unblock_dependents", ids=[other]) == {beside}
    assert write(engine, "unblock_dependents", ids=[other, needed]) == set()


def test_advance_unblocks_nothing_in_a_run_that_has_ended(engine: Engine, store_url: str) -> None:
    run = start(engine, SIDES)
    run.take("plan")
    complete(engine, run.steps["plan"])
    run.break_for_good("aside")
    assert run.status == "failed"
    before = rows_of(store_url, run)
    engine.runs.advance(run.id)
    assert rows_of(store_url, run) == before
    assert engine.runs.retry(run.id).ok
    assert engine.runs.advance(run.id).advanced


def test_a_run_completes_whatever_is_still_open_in_another(engine: Engine) -> None:
    first, second = start(engine, SIDES), start(engine, SIDES)
    second.take("aside")
    first.finish("plan", "work", "aside")
    assert (first.status, second.status) == ("completed", "running")


def test_a_run_that_is_failing_already_is_not_marked_again(engine: Engine, store_url: str) -> None:
    run = start(engine, SIDES)
    aside = run.take("aside")
    run.break_for_good("plan")
    assert run.holds == ["failing"]
    before = rows_of(store_url, run)
    engine.runs.advance(run.id)
    assert rows_of(store_url, run) == before
    assert engine.work.complete(run.steps["aside"], aside.token).ok
    assert run.status == "failed"


def test_failing_is_lifted_from_a_run_whatever_has_failed_in_another(engine: Engine) -> None:
    first, second = start(engine, SIDES), start(engine, SIDES)
    for run in (first, second):
        run.take("aside")
        run.break_for_good("plan")
    assert engine.runs.retry(first.id).ok
    assert (first.holds, second.holds) == ([], ["failing"])


def test_a_cancelled_task_stays_as_it_is_when_its_need_is_done(engine: Engine) -> None:
    run = start(engine, SIDES)
    plan = run.take("plan")
    aside = run.take("aside")
    assert engine.tasks.cancel(run.steps["work"]).ok
    before = run.task("work")
    assert engine.work.complete(run.steps["plan"], plan.token).ok
    assert run.task("work") == before
    assert not engine.runs.advance(run.id).advanced
    assert run.task("work") == before
    assert engine.work.complete(run.steps["aside"], aside.token).ok
    assert run.status == "failed"
