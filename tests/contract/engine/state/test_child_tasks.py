"""What a step has made fails nothing but the step, if that says so; what is needed, its run."""

from __future__ import annotations

import pytest

from holdfast import Context, Holdfast, TaskFailed, needs
from holdfast.engine.engine import Engine
from holdfast.model.effect import WakeCondition
from holdfast.model.status import Hold, Status
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import OnFailure, Step
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.task_states import break_for_good, finish, take

PATIENCE = 30
STEPS = (Step(id="one"), Step(id="beside"), Step(id="last", needs=("one",)))


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def spawn(engine: Engine, attempt: Assignment, name: str = "map") -> str:
    made = engine.work.spawn(attempt.task.id, attempt.token, [NewTask(title="child")], name=name)
    return str(made.value[0])


def spawning(engine: Engine, run: str, *, below: bool = False) -> tuple[Assignment, str]:
    """The first step under way, and a task that it has made and that failed, as one below did."""
    attempt = take(engine, of(engine, run, "one")[0].id)
    child = spawn(engine, attempt)
    made = take(engine, child)
    if below:
        break_for_good(engine, spawn(engine, made))
    assert engine.work.fail(child, made.token, "broken", retryable=False).ok
    return attempt, child


def test_a_step_may_catch_what_became_of_its_tasks_or_be_skipped_for_it(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def divide(number: int) -> float:
        return 1 / number

    flow = hf.workflow("flow")

    @flow.step(max_attempts=1)
    def careful(ctx: Context) -> list[float] | str:
        try:
            return list(ctx.map(divide, [1, 0]))
        except TaskFailed:
            return "caught"

    @flow.step(max_attempts=1, on_failure="skip")
    def bold(ctx: Context) -> list[float]:
        return list(ctx.map(divide, [1, 0]))

    @flow.step
    def last(
        first: list[float] | str = needs(careful), second: list[float] | None = needs(bold)
    ) -> list[object]:
        return [first, second]

    with hf.worker():
        assert flow.start().result(PATIENCE) == ["caught", None]


def test_a_run_goes_on_and_completes_without_what_a_step_made_in_vain(engine: Engine) -> None:
    run = begin(engine, *STEPS)
    attempt, child = spawning(engine, run)
    assert not engine.runs.get(run).holds
    assert engine.runs.advance(run).completed is False
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    for step in ("beside", "last"):
        assert engine.runs.get(run).status == "running"
        finish(engine, of(engine, run, step)[0].id)
    assert engine.runs.get(run).status == "completed"
    assert not engine.runs.retry(run).ok
    assert engine.tasks.get(child).status is Status.FAILED


def test_a_run_is_open_while_something_is_that_a_step_has_made(engine: Engine) -> None:
    run = begin(engine, Step(id="one"))
    attempt = take(engine, of(engine, run, "one")[0].id)
    child = spawn(engine, attempt)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    assert engine.runs.get(run).status == "running"
    break_for_good(engine, child)
    assert engine.runs.get(run).status == "completed"


def test_a_run_that_goes_on_is_not_failing_for_what_a_step_is_done_without(engine: Engine) -> None:
    run = begin(engine, *STEPS, Step(id="long"))
    take(engine, of(engine, run, "long")[0].id)
    attempt, _ = spawning(engine, run)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    break_for_good(engine, of(engine, run, "beside")[0].id)
    assert engine.runs.get(run).holds == Hold.FAILING
    assert engine.runs.retry(run).ok
    assert not engine.runs.get(run).holds


def test_a_retry_leaves_alone_what_a_step_is_done_without(engine: Engine) -> None:
    run = begin(engine, *STEPS)
    attempt, _ = spawning(engine, run, below=True)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    beside = of(engine, run, "beside")[0].id
    break_for_good(engine, beside)
    failed = engine.runs.get(run)
    assert (failed.status, failed.error) == ("failed", "broken")
    assert engine.runs.retry(run).ok
    made = [task.status for task in engine.runs.tasks(run) if task.title == "child"]
    assert made == [Status.FAILED] * 2
    for task in (beside, of(engine, run, "last")[0].id):
        finish(engine, task)
    assert engine.runs.get(run).status == "completed"


def test_a_retry_takes_up_what_a_failed_step_made_and_that_step(engine: Engine) -> None:
    run = begin(engine, *STEPS)
    finish(engine, of(engine, run, "beside")[0].id)
    attempt, child = spawning(engine, run)
    one = attempt.task.id
    assert engine.work.fail(one, attempt.token, "child failed", retryable=False).ok
    assert engine.runs.get(run).error == "child failed"
    assert engine.runs.failed_at(run) == "one"
    assert engine.runs.retry(run).ok
    assert [engine.tasks.get(each).state for each in (one, child)] == ["ready", "ready"]


def test_a_step_that_goes_back_leaves_behind_what_it_made(engine: Engine) -> None:
    back = OnFailure(action="goto", step="plan")
    run = begin(engine, Step(id="plan"), Step(id="one", needs=("plan",), on_failure=back))
    finish(engine, of(engine, run, "plan")[0].id)
    attempt, child = spawning(engine, run)
    assert engine.work.fail(attempt.task.id, attempt.token, "red", retryable=False).ok
    assert engine.tasks.get(child).superseded
    for step in ("plan", "one"):
        finish(engine, of(engine, run, step)[0].id)
    assert engine.runs.get(run).status == "completed"


def test_items_are_not_failed_for_what_one_of_their_steps_made(engine: Engine) -> None:
    body = (Step(id="one"), Step(id="two", needs=("one",)))
    run = begin(engine, loop("input", body=body), Step(id="beside"), given=["a"])
    attempt, _ = spawning(engine, run)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    break_for_good(engine, of(engine, run, "beside")[0].id)
    assert engine.runs.get(run).status == "failed"
    assert {task.status for task in of(engine, run, "build")} == {Status.QUEUED}


def needing(engine: Engine, *steps: Step, sibling: bool = False) -> tuple[str, Assignment, str]:
    """A run in which something needs, by hand, what the first step has made."""
    run = begin(engine, *steps)
    attempt = take(engine, of(engine, run, "one")[0].id)
    child = spawn(engine, attempt)
    other = spawn(engine, attempt, "other") if sibling else of(engine, run, "last")[0].id
    assert engine.tasks.block(other, [child]).ok
    return run, attempt, child


@pytest.mark.parametrize("sibling", [True, False])
def test_a_run_fails_for_a_made_task_that_something_needs(engine: Engine, *, sibling: bool) -> None:
    run, attempt, child = needing(engine, *STEPS, sibling=sibling)
    break_for_good(engine, child)
    assert engine.runs.get(run).holds == Hold.FAILING
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    failed = engine.runs.get(run)
    assert (failed.status, failed.error) == ("failed", "broken")
    assert engine.runs.retry(run).ok
    assert engine.tasks.get(child).state == "ready"
    assert not engine.runs.get(run).holds


def test_a_need_of_a_made_task_that_has_failed_fails_the_run_and_goes_with_it(
    engine: Engine,
) -> None:
    run = begin(engine, *STEPS)
    _, child = spawning(engine, run)
    beside, last = (of(engine, run, step)[0].id for step in ("beside", "last"))
    for each in (beside, last):
        assert engine.tasks.block(each, [child]).ok
        assert engine.runs.get(run).holds == Hold.FAILING
    assert engine.tasks.unblock(last, [child]).ok
    assert engine.runs.get(run).holds == Hold.FAILING
    assert engine.tasks.unblock(beside, [child]).ok
    assert not engine.runs.get(run).holds


def test_a_run_in_which_nothing_runs_ends_with_a_need_of_a_made_task_that_has_failed(
    engine: Engine,
) -> None:
    run = begin(engine, *STEPS)
    attempt, child = spawning(engine, run)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    assert engine.tasks.block(of(engine, run, "beside")[0].id, [child]).ok
    assert engine.runs.get(run).status == "failed"


def test_the_items_around_fail_with_a_made_task_that_is_needed_and_its_step_does_not(
    engine: Engine,
) -> None:
    body = (Step(id="one"), Step(id="last", needs=("one",)))
    run = begin(engine, loop("input", body=body), given=["a"])
    attempt = take(engine, of(engine, run, "one")[0].id)
    child = spawn(engine, attempt)
    assert engine.tasks.block(of(engine, run, "last")[0].id, [child]).ok
    assert engine.work.suspend(attempt.task.id, attempt.token, WakeCondition(children=True)).ok
    break_for_good(engine, child)
    assert engine.runs.get(run).status == "failed"
    assert {task.status for task in of(engine, run, "build")} == {Status.FAILED}
    assert of(engine, run, "one")[0].status is Status.QUEUED


@pytest.mark.parametrize("ended", [True, False])
def test_a_retry_by_its_id_takes_up_what_a_step_is_done_without(
    engine: Engine, *, ended: bool
) -> None:
    run = begin(engine, *STEPS)
    attempt, child = spawning(engine, run)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    for step in ("beside", "last") if ended else ():
        finish(engine, of(engine, run, step)[0].id)
    assert engine.runs.get(run).status == ("completed" if ended else "running")
    assert engine.tasks.retry(child).ok
    assert (engine.tasks.get(child).state, engine.runs.get(run).status) == ("ready", "running")
    finish(engine, child)
    assert engine.runs.get(run).status == ("completed" if ended else "running")


def test_a_retry_of_what_counts_no_more_changes_nothing(engine: Engine) -> None:
    run = begin(engine, Step(id="one"))
    attempt, child = spawning(engine, run)
    assert engine.work.complete(attempt.task.id, attempt.token).ok
    assert engine.runs.retry(run, step="one").ok
    finish(engine, of(engine, run, "one")[0].id)
    assert not engine.tasks.retry(child).ok
    assert engine.runs.get(run).status == "completed"
