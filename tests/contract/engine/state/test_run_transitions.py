"""Every operation on a run in every status: what the table allows happens, the rest is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.result import AdvanceResult, Refusal, TransitionResult
from holdfast.model.status import RUN_TERMINAL, RUN_TRANSITIONS, RunStatus, is_allowed
from tests.contract.raw_store import dump
from tests.contract.task_states import MISSING_RUN, StartedRun, start

Expected = str | Refusal
Operate = Callable[[Engine, str], TransitionResult]
ENDED = ("completed", "failed", "cancelled")


def bring_run(engine: Engine, status: RunStatus) -> StartedRun:
    run = start(engine)
    match status:
        case RunStatus.COMPLETED:
            run.finish("plan", "work", "review")
        case RunStatus.FAILED:
            run.finish("plan")
            run.break_for_good("work")
        case RunStatus.CANCELLED:
            run.finish("plan")
            run.take("work")
            assert engine.runs.cancel(run.id).ok
    assert run.status == status
    return run


def expect(refusal: Refusal, **targets: Expected) -> dict[str, Expected]:
    return {status: targets.get(status, refusal) for status in ("running", *ENDED)}


TERMINAL_ALREADY = expect(Refusal.ALREADY_TERMINAL, running="running")
OPERATIONS: dict[str, tuple[Operate, dict[str, Expected]]] = {
    "cancel": (
        lambda engine, run_id: engine.runs.cancel(run_id),
        expect(Refusal.ALREADY_TERMINAL, running="cancelled"),
    ),
    "pause": (lambda engine, run_id: engine.runs.pause(run_id), TERMINAL_ALREADY),
    "resume": (lambda engine, run_id: engine.runs.resume(run_id), TERMINAL_ALREADY),
    "hold": (lambda engine, run_id: engine.runs.hold(run_id, "budget"), TERMINAL_ALREADY),
    "unhold": (lambda engine, run_id: engine.runs.unhold(run_id, "budget"), TERMINAL_ALREADY),
    "retry": (
        lambda engine, run_id: engine.runs.retry(run_id),
        expect(Refusal.INVALID_TRANSITION, failed="running", cancelled="running"),
    ),
    "retry_from": (
        lambda engine, run_id: engine.runs.retry(run_id, step="work"),
        dict.fromkeys(("running", *ENDED), "running"),
    ),
}
REPEATED = {("resume", "running"), ("unhold", "running")}
PAIRS = [(name, status) for name in OPERATIONS for status in RunStatus]


@pytest.mark.parametrize(("name", "status"), PAIRS)
def test_an_operation_moves_a_run_along_the_table_or_is_refused_without_a_trace(
    engine: Engine, store_url: str, name: str, status: RunStatus
) -> None:
    run = bring_run(engine, status)
    before, store = engine.runs.get(run.id), dump(store_url)
    operate, expected = OPERATIONS[name]
    answer = operate(engine, run.id)
    after, target = engine.runs.get(run.id), expected[status]
    if isinstance(target, Refusal):
        assert (answer.ok, answer.reason, answer.status) == (False, target, status)
        assert dump(store_url) == store
        return
    assert answer.ok
    assert answer.repeated == ((name, status) in REPEATED)
    assert after.status == answer.status == target
    assert after.generation == before.generation + (status in RUN_TERMINAL)
    events = [event for event in engine.runs.events(run.id) if event.task_id is None]
    assert [event.version for event in events] == list(range(1, after.version + 1))
    assert status == target or is_allowed(RUN_TRANSITIONS, status, target)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_a_missing_run_is_not_found(engine: Engine, name: str) -> None:
    answer = OPERATIONS[name][0](engine, MISSING_RUN)
    assert (answer.ok, answer.reason, answer.status) == (False, Refusal.NOT_FOUND, None)


def test_every_move_of_the_table_is_driven() -> None:
    driven = {
        (str(status), str(target))
        for _, expected in OPERATIONS.values()
        for status, target in expected.items()
        if not isinstance(target, Refusal) and target != status
    }
    by_advance = {("running", "completed"), ("running", "failed")}
    assert driven | by_advance == {(move.source, move.target) for move in RUN_TRANSITIONS}


@pytest.mark.parametrize("status", list(RunStatus))
def test_advance_changes_nothing_that_state_does_not_ask_for(
    engine: Engine, store_url: str, status: RunStatus
) -> None:
    run = bring_run(engine, status)
    store = dump(store_url)
    for _ in range(3):
        assert engine.runs.advance(run.id) == AdvanceResult(advanced=False, completed=False)
    assert dump(store_url) == store


def test_a_hold_of_a_run_is_added_and_removed_alone(engine: Engine) -> None:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    assert engine.runs.hold(run.id, "budget").ok
    assert run.holds == ["paused", "budget"]
    assert {task.run_holds.names for task in engine.runs.tasks(run.id)} == {("paused", "budget")}
    assert engine.work.claim("worker") == []
    assert engine.runs.resume(run.id).ok
    assert run.holds == ["budget"]
    assert engine.work.claim("worker") == []
    assert engine.runs.unhold(run.id, "budget").ok
    assert run.holds == []
    assert [each.task.step for each in engine.work.claim("worker", count=5)] == ["plan"]


def test_a_hold_asked_for_again_is_repeated_and_writes_nothing(engine: Engine) -> None:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    version = engine.runs.get(run.id).version
    assert engine.runs.pause(run.id) == TransitionResult(ok=True, repeated=True, status="running")
    assert engine.runs.get(run.id).version == version


def test_a_paused_run_lets_what_runs_finish_and_completes_when_nothing_is_left(
    engine: Engine,
) -> None:
    run = start(engine)
    run.finish("plan", "work")
    review = run.take("review")
    assert engine.runs.pause(run.id).ok
    assert engine.work.complete(review.task.id, review.token).ok
    assert run.status == "completed"


def test_retry_from_a_step_the_run_does_not_have_is_refused(engine: Engine) -> None:
    run = start(engine)
    answer = engine.runs.retry(run.id, step="deploy")
    assert (answer.ok, answer.reason) == (False, Refusal.UNKNOWN_STEP)


def test_retry_from_an_idle_step_is_refused(engine: Engine) -> None:
    run = start(engine)
    assert engine.tasks.reset(run.steps["review"]).ok
    answer = engine.runs.retry(run.id, step="review")
    refused = (False, Refusal.INVALID_TRANSITION, "running")
    assert (answer.ok, answer.reason, answer.status) == refused
    assert answer.detail == "step 'review' is idle and cannot be started again"
