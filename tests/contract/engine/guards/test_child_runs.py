"""Calls move only the tasks and runs that are meant, statement by statement."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.called_workflows import LAST, begin, call, of
from tests.contract.single_statements import complete, fail, write
from tests.contract.task_states import StartedRun, create

BACK = OnFailure(action="goto", step="plan", max_rounds=2)
ENDS = pytest.mark.parametrize("query", ["finish_calls", "break_calls", "turn_back_calls"])


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def waiting(engine: Engine) -> StartedRun:
    """A run whose call waits for the run that it has called."""
    run = begin(engine, Step(id="plan"), call(needs=("plan",), on_failure=BACK), LAST)
    run.finish("plan")
    return run


def ended(engine: Engine, query: str) -> tuple[StartedRun, StartedRun]:
    """The same, and that one has just ended, as somebody died who was to tell."""
    run = waiting(engine)
    below = of(run)
    below.take("pack")
    if query == "finish_calls":
        complete(engine, below.steps["pack"])
        write(engine, "unblock_dependents", ids=[below.steps["pack"]])
        below.take("send")
        complete(engine, below.steps["send"])
    else:
        fail(engine, below.steps["pack"])
        assert write(engine, "mark_failing", ids=[below.id]) == {below.id}
        write(engine, "copy_run_holds", ids=[below.id])
    assert write(engine, "settle_runs", ids=[below.id]) == {below.id}
    return run, below


def end(engine: Engine, query: str, task: str, run: str, most: int = 2) -> set[str]:
    row = (task, run, "7") if query != "turn_back_calls" else (task, run, "7", most)
    return write(engine, query, rows=[row])


@ENDS
def test_a_call_ends_with_its_own_run_alone(engine: Engine, query: str) -> None:
    run, below = ended(engine, query)
    other = waiting(engine)
    assert end(engine, query, other.steps["ship"], below.id) == set()
    assert end(engine, query, run.steps["plan"], below.id) == set()
    assert end(engine, query, run.steps["ship"], of(other).id) == set()
    engine.runs.advance(run.id)
    assert run.states["ship"] == ("done" if query == "finish_calls" else "blocked")


@ENDS
def test_a_call_whose_run_goes_on_does_not_end(engine: Engine, query: str) -> None:
    over, _ = ended(engine, query)
    engine.runs.advance(over.id)
    run = waiting(engine)
    assert end(engine, query, run.steps["ship"], of(run).id) == set()


@ENDS
def test_a_call_that_was_cancelled_does_not_end_again(engine: Engine, query: str) -> None:
    run, below = ended(engine, query)
    assert write(engine, "cancel_tasks", ids=[run.steps["ship"]], actor="user")
    assert end(engine, query, run.steps["ship"], below.id) == set()
    engine.runs.advance(run.id)
    assert run.status == "failed"


@ENDS
def test_a_call_that_is_blocked_does_not_end(engine: Engine, query: str) -> None:
    run, below = ended(engine, query)
    assert write(engine, "block_dependents", ids=[run.steps["plan"]], actor="user")
    assert end(engine, query, run.steps["ship"], below.id) == set()
    engine.runs.advance(run.id)


def test_a_call_goes_back_only_as_often_as_it_may(engine: Engine) -> None:
    run, below = ended(engine, "turn_back_calls")
    assert end(engine, "turn_back_calls", run.steps["ship"], below.id, most=0) == set()
    engine.runs.advance(run.id)


def test_only_a_ready_call_step_begins_to_wait_for_its_run(engine: Engine) -> None:
    ready = create(engine, "ready")
    started = waiting(engine)
    blocked = begin(engine, Step(id="plan"), call(needs=("plan",)))
    skipped = begin(engine, call(when=Reference.parse("when", "input")), LAST, given=False)
    held, paused = (begin(engine, Step(id="plan"), call(needs=("plan",))) for _ in range(2))
    assert engine.tasks.hold(held.steps["ship"]).ok
    assert engine.runs.pause(paused.id).ok
    for run in (held, paused):
        plan = engine.tasks.run_now(run.steps["plan"])
        assert plan.ok
        run.finish("plan")
    rows = [(run.steps["ship"], "r_other") for run in (started, blocked, skipped, held, paused)]
    assert write(engine, "await_runs", rows=[*rows, ("t_none", "r_other")]) == set()
    assert engine.tasks.get(ready).waits_for is None


def test_runs_are_cancelled_only_below_the_tasks_that_left_them(engine: Engine) -> None:
    run, other, done = waiting(engine), waiting(engine), waiting(engine)
    of(done).finish("pack", "send")
    below = of(run)
    assert write(engine, "cancel_children", ids=[run.steps["ship"]]) == set()
    assert write(engine, "cancel_tasks", ids=[run.steps["ship"]], actor="user")
    apart = [other.steps["ship"], done.steps["ship"]]
    assert write(engine, "cancel_children", ids=apart) == set()
    engine.runs.advance(run.id)
    assert (below.status, of(other).status, of(done).status) == (
        "cancelled",
        "running",
        "completed",
    )


def test_a_run_that_fails_waits_for_what_it_has_called_itself(engine: Engine) -> None:
    busy = begin(engine, Step(id="plan"), call())
    run = begin(engine, Step(id="plan"), call(), LAST)
    of(run).finish("pack", "send")
    run.break_for_good("plan")
    assert run.status == "failed"
    busy.break_for_good("plan")
    assert busy.status == "running"


def test_a_pause_holds_a_run_and_what_it_has_called_and_no_other(engine: Engine) -> None:
    run, other = waiting(engine), waiting(engine)
    assert engine.runs.pause(run.id).ok
    assert (of(run).holds, other.holds, of(other).holds) == (["paused"], [], [])
    assert engine.runs.pause(other.id).ok
    assert engine.runs.resume(run.id).ok
    assert (run.holds, of(run).holds, of(other).holds) == ([], [], ["paused"])
