"""An operation on one task or one run touches no other that stands just like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.result import TransitionResult
from holdfast.model.status import RunStatus, Status
from holdfast.model.task import Renewal
from tests.contract.engine.state.test_run_transitions import bring_run
from tests.contract.single_statements import write
from tests.contract.task_states import Stage, bring, create

REPORTS: dict[str, tuple[object, ...]] = {
    "complete_tasks": ('"output"', "digest", None),
    "fail_tasks": ('"broken"', "digest", True, 0.5, None),
    "release_tasks": (None, None),
    "lose_tasks": ('"lost"',),
    "suspend_tasks": (None, "t_1 go"),
    "ask_tasks": ('"which?"',),
    "conclude_tasks": ('"broken"', "digest", None, 1, 0, 0, None),
    "escalate_tasks": (
        *('"broken"', "digest", None, None, "senior", "[]"),
        *(3, 5, 0, 0, None, False, "fail"),
    ),
}
OnTask = Callable[[Engine, str], TransitionResult]
TASKS: dict[str, tuple[Status, OnTask]] = {
    "enqueue": (Status.IDLE, lambda engine, task: engine.tasks.enqueue(task)),
    "run_now": (Status.QUEUED, lambda engine, task: engine.tasks.run_now(task)),
    "cancel": (Status.QUEUED, lambda engine, task: engine.tasks.cancel(task)),
    "reset": (Status.DONE, lambda engine, task: engine.tasks.reset(task)),
    "retry": (Status.FAILED, lambda engine, task: engine.tasks.retry(task)),
    "reopen": (Status.DONE, lambda engine, task: engine.tasks.reopen(task)),
    "hold": (Status.QUEUED, lambda engine, task: engine.tasks.hold(task, "paused")),
    "unhold": (Status.QUEUED, lambda engine, task: engine.tasks.unhold(task, "question")),
    "block": (Status.QUEUED, lambda engine, task: engine.tasks.block(task, [create(engine)])),
    "unblock": (Status.QUEUED, lambda engine, task: engine.tasks.unblock(task)),
    "edit": (Status.QUEUED, lambda engine, task: engine.tasks.edit(task, {"priority": 7})),
    "delete": (Status.DONE, lambda engine, task: engine.tasks.delete(task)),
}
RUNS: dict[str, tuple[RunStatus, OnTask]] = {
    "cancel": (RunStatus.RUNNING, lambda engine, run: engine.runs.cancel(run)),
    "pause": (RunStatus.RUNNING, lambda engine, run: engine.runs.pause(run)),
    "unhold": (RunStatus.RUNNING, lambda engine, run: engine.runs.unhold(run, "budget")),
    "retry": (RunStatus.FAILED, lambda engine, run: engine.runs.retry(run)),
    "retry_from": (RunStatus.COMPLETED, lambda engine, run: engine.runs.retry(run, step="work")),
}


@pytest.mark.parametrize("name", TASKS)
def test_an_operation_on_one_task_touches_no_other(engine: Engine, name: str) -> None:
    status, operate = TASKS[name]
    stages: list[Stage] = [bring(engine, status) for _ in range(3)]
    if name == "unhold":
        for stage in stages:
            assert engine.tasks.hold(stage.task_id, "question").ok
    before = [engine.tasks.get(stage.task_id) for stage in (stages[0], stages[2])]
    assert operate(engine, stages[1].task_id).ok
    assert [engine.tasks.get(stage.task_id) for stage in (stages[0], stages[2])] == before


@pytest.mark.parametrize("name", RUNS)
def test_an_operation_on_one_run_touches_no_other(engine: Engine, name: str) -> None:
    status, operate = RUNS[name]
    runs = [bring_run(engine, status) for _ in range(3)]
    if name == "unhold":
        for run in runs:
            assert engine.runs.hold(run.id, "budget").ok
    others = (runs[0].id, runs[2].id)
    before = [(engine.runs.get(run), engine.runs.tasks(run)) for run in others]
    assert operate(engine, runs[1].id).ok
    assert [(engine.runs.get(run), engine.runs.tasks(run)) for run in others] == before


@pytest.mark.parametrize("query", REPORTS)
def test_a_report_is_about_one_attempt_of_one_task(
    engine: Engine, clock: ManualClock, query: str
) -> None:
    create(engine)
    named, *_ = (bring(engine, Status.RUNNING).task_id for _ in range(2))
    clock.advance(60)
    assert write(engine, query, rows=[(named, 2, *REPORTS[query])]) == set()
    assert write(engine, query, rows=[(named, 1, *REPORTS[query])]) == {named}
    assert write(engine, query, rows=[(named, 1, *REPORTS[query])]) == set()


def test_a_renewal_keeps_one_lease_of_one_attempt(engine: Engine, clock: ManualClock) -> None:
    stages = [bring(engine, Status.RUNNING) for _ in range(2)]
    before = engine.tasks.get(stages[1].task_id)
    clock.advance(5)
    renewals = [Renewal(task_id=stages[0].task_id, token=stages[0].token)]
    assert [answer.ok for answer in engine.work.renew(renewals)] == [True]
    assert engine.tasks.get(stages[1].task_id) == before
    swapped = [Renewal(task_id=stages[1].task_id, token=stages[0].token)]
    assert [answer.ok for answer in engine.work.renew(swapped)] == [False]
    assert engine.tasks.get(stages[1].task_id) == before
