"""Loops and conditions move only what waits for them, statement by statement."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.effect import WakeCondition
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.raw_store import raw
from tests.contract.single_statements import complete, fail, keep, write
from tests.contract.task_states import StartedRun, create, start, take

ONE = (Step(id="one"),)
ASKED = Workflow.define(
    "asked",
    (
        Step(id="plan"),
        Step(
            id="deploy",
            needs=("plan",),
            when=Reference.parse("when", "steps.plan"),
            retry=RetryPolicy(max_attempts=2, backoff=60),
        ),
    ),
)
CONDITIONS = pytest.mark.parametrize("query", ["let_tasks_start", "skip_tasks"])


def blocked(engine: Engine) -> StartedRun:
    """A run with a step that has a condition, and still waits for its need."""
    return start(engine, ASKED)


def ripe(engine: Engine) -> StartedRun:
    """A run with a step that waits for nothing but its condition."""
    run = blocked(engine)
    run.take("plan")
    complete(engine, run.steps["plan"])
    assert write(engine, "unblock_dependents", ids=[run.steps["plan"]]) == {run.steps["deploy"]}
    return run


def cancelled(engine: Engine) -> StartedRun:
    run = ripe(engine)
    with_status = write(engine, "cancel_tasks", ids=[run.steps["deploy"]], actor="user")
    assert with_status == {run.steps["deploy"]}
    return run


def begun(engine: Engine) -> StartedRun:
    run = blocked(engine)
    run.finish("plan")
    assert run.task("deploy").state == "ready"
    return run


def failed_once(engine: Engine) -> StartedRun:
    run = begun(engine)
    attempt = run.take("deploy")
    assert engine.work.fail(attempt.task.id, attempt.token, "red").ok
    return run


def listening(engine: Engine) -> StartedRun:
    run = begun(engine)
    attempt = run.take("deploy")
    wait = WakeCondition(target=run.id, signals=("go",))
    assert engine.work.suspend(attempt.task.id, attempt.token, wait).ok
    return run


@CONDITIONS
def test_only_a_named_step_that_waits_for_its_condition_is_started_or_skipped_and_once(
    engine: Engine, query: str
) -> None:
    named, other = ripe(engine), ripe(engine)
    ids = [named.steps["deploy"]]
    before = other.task("deploy")
    assert write(engine, query, ids=ids) == set(ids)
    assert write(engine, query, ids=ids) == set()
    assert other.task("deploy") == before
    for run in (named, other):
        engine.runs.advance(run.id)


@CONDITIONS
@pytest.mark.parametrize("bring", [blocked, cancelled, begun, failed_once, listening])
def test_steps_that_wait_for_more_or_for_no_condition_are_neither_started_nor_skipped(
    engine: Engine, query: str, bring: Callable[[Engine], StartedRun]
) -> None:
    run = bring(engine)
    assert write(engine, query, ids=[run.steps["deploy"]]) == set()
    engine.runs.advance(run.id)


@CONDITIONS
def test_a_task_without_a_condition_is_neither_started_nor_skipped(
    engine: Engine, query: str
) -> None:
    task_id = create(engine)
    take(engine, task_id)
    assert write(engine, "suspend_tasks", rows=[(task_id, 1, None, None)]) == {task_id}
    assert write(engine, query, ids=[task_id]) == set()
    assert engine.tasks.cancel(task_id).ok


def test_advance_ends_no_wait_of_a_step_with_a_condition(
    engine: Engine, clock: ManualClock
) -> None:
    runs = [failed_once(engine), listening(engine)]
    before = [run.task("deploy") for run in runs]
    for run in runs:
        engine.runs.advance(run.id)
    assert [run.task("deploy") for run in runs] == before
    assert engine.work.claim("worker", count=2) == []
    clock.advance(61)
    assert [each.task.id for each in engine.work.claim("worker")] == [runs[0].steps["deploy"]]


def test_a_step_is_given_a_time_only_once_its_condition_was_looked_at(engine: Engine) -> None:
    run = blocked(engine)
    assert not engine.tasks.edit(run.steps["deploy"], {"scheduled_for": None}).ok
    assert engine.tasks.edit(run.steps["deploy"], {"priority": 3}).ok
    assert engine.tasks.edit(run.steps["plan"], {"scheduled_for": None}).ok
    run.take("plan")
    complete(engine, run.steps["plan"])
    engine.runs.advance(run.id)
    assert engine.tasks.edit(run.steps["deploy"], {"scheduled_for": None}).ok
    later = failed_once(engine).steps["deploy"]
    assert engine.tasks.edit(later, {"scheduled_for": None}).ok


@pytest.mark.parametrize("verb", ["enqueue", "run_now"])
def test_a_step_taken_out_and_queued_again_is_asked_for_its_condition(
    engine: Engine, verb: str
) -> None:
    run = begun(engine)
    assert engine.tasks.reset(run.steps["deploy"]).ok
    assert getattr(engine.tasks, verb)(run.steps["deploy"]).ok
    assert run.task("deploy").state == "ready"


def test_a_task_fails_without_its_condition_only_where_it_has_all_it_needs(
    engine: Engine,
) -> None:
    named, other, waits, gone = ripe(engine), ripe(engine), blocked(engine), cancelled(engine)
    rows = [(run.steps["deploy"], '"none"', "fail") for run in (named, waits, gone)]
    assert write(engine, "fail_unresolved", rows=rows) == {named.steps["deploy"]}
    assert other.task("deploy").status is Status.QUEUED
    for run in (named, other, waits, gone):
        engine.runs.advance(run.id)


def listed(engine: Engine) -> str:
    """A run with a loop whose list is there, and that nobody has looked at yet."""
    run = begin(engine, Step(id="plan"), loop("steps.plan", body=ONE, needs=("plan",), parallel=2))
    plan, build = (of(engine, run, step)[0].id for step in ("plan", "build"))
    take(engine, plan)
    report = (plan, 1, '["a","b"]', "digest", None, False)
    assert write(engine, "complete_tasks", rows=[report]) == {plan}
    assert write(engine, "unblock_dependents", ids=[plan]) == {build}
    return run


def test_a_loop_is_expanded_once(engine: Engine) -> None:
    runs = [listed(engine) for _ in range(3)]
    named, other, gone = (of(engine, run, "build")[0].id for run in runs)
    assert write(engine, "cancel_tasks", ids=[gone], actor="user") == {gone}
    assert write(engine, "expand_loop", task_id=gone, total=2) == set()
    assert write(engine, "settle_groups", ids=[named]) == set()
    assert write(engine, "expand_loop", task_id=named, total=2) == {named}
    assert write(engine, "expand_loop", task_id=named, total=2) == set()
    assert engine.tasks.get(other).total is None
    assert write(engine, "settle_groups", ids=[named]) == set()
    for run in runs:
        engine.runs.advance(run)
    assert len(of(engine, runs[0], "build")) == 3


def test_items_are_counted_by_who_saw_the_last_count(engine: Engine, store_url: str) -> None:
    named, other = (of(engine, listed(engine), "build")[0].id for _ in range(2))
    assert keep(engine, "count_items", task_id=named, count=2, seen=1, place=0) == []
    assert keep(engine, "count_items", task_id=named, count=2, seen=0, place=0) == [{"made": 2}]
    assert keep(engine, "count_items", task_id=named, count=2, seen=0, place=0) == []
    with raw(store_url) as read:
        (row,) = read("SELECT made FROM holdfast_task WHERE id = ?", other)
    assert row["made"] == 0


def under_way(engine: Engine, *, parallel: int = 2, count: int = 3) -> tuple[str, list[str]]:
    """A run with a loop that has begun: the loop itself, then its items."""
    run = begin(engine, loop("input", body=ONE, parallel=parallel), given=list("abcd"[:count]))
    return run, [task.id for task in of(engine, run, "build")]


def test_the_next_idle_item_of_a_loop_starts_and_no_other(engine: Engine) -> None:
    run, (build, first, second, third) = under_way(engine, parallel=1)
    _, (_, *others) = under_way(engine, parallel=1)
    begun_ones = [engine.tasks.get(each) for each in (first, *others)]
    assert write(engine, "start_items", loop_id=build, first=3, count=5) == set()
    assert write(engine, "start_items", loop_id=build, first=0, count=1) == {second}
    assert write(engine, "start_items", loop_id=build, first=0, count=5) == {third}
    assert write(engine, "start_items", loop_id=build, first=0, count=5) == set()
    assert [engine.tasks.get(each) for each in (first, *others)] == begun_ones
    assert engine.runs.cancel(run).ok


def test_a_group_is_done_when_its_own_children_are(engine: Engine) -> None:
    run, (build, *items) = under_way(engine, parallel=4, count=4)
    steps = [task.id for task in of(engine, run, "one")]
    for step in steps[:3]:
        take(engine, step)
    for step in steps[:2]:
        complete(engine, step)
    fail(engine, steps[2])
    assert write(engine, "settle_groups", ids=[build, items[0], *items[2:], *steps]) == {items[0]}
    assert write(engine, "settle_groups", ids=[items[0]]) == set()
    assert engine.tasks.get(items[1]).status is Status.QUEUED
    engine.runs.advance(run)


def test_a_group_is_done_whatever_became_of_items_that_count_no_more(engine: Engine) -> None:
    run, (build, *_) = under_way(engine, parallel=1, count=1)
    assert engine.runs.retry(run, step="build").ok
    step = of(engine, run, "one")[0].id
    take(engine, step)
    complete(engine, step)
    item = of(engine, run, "build")[1].id
    assert write(engine, "settle_groups", ids=[item]) == {item}
    assert write(engine, "settle_groups", ids=[build]) == {build}
    engine.runs.advance(run)


def broken(engine: Engine) -> tuple[str, list[str], list[str]]:
    """A run with a loop of two, in which the step of the first item has failed."""
    run, groups = under_way(engine, count=2)
    steps = [task.id for task in of(engine, run, "one")]
    take(engine, steps[0])
    fail(engine, steps[0])
    return run, groups, steps


def test_the_groups_around_a_failure_fail_in_their_own_run_alone(engine: Engine) -> None:
    run, (build, first, second), _ = broken(engine)
    other, groups, _ = broken(engine)
    assert write(engine, "fail_groups", ids=[run]) == {build, first}
    assert write(engine, "fail_groups", ids=[run]) == set()
    assert engine.tasks.get(second).status is Status.QUEUED
    assert {engine.tasks.get(each).status for each in groups} == {Status.QUEUED}
    for each in (run, other):
        engine.runs.advance(each)


def test_a_function_that_waits_for_a_failed_child_fails_by_itself(engine: Engine) -> None:
    run = start(engine, Workflow.define("parent", (Step(id="map"),)))
    attempt = run.take("map")
    made = engine.work.spawn(
        attempt.task.id, attempt.token, [NewTask(title="child")], name="children"
    )
    (child,) = made.value
    take(engine, child)
    assert engine.work.suspend(attempt.task.id, attempt.token, WakeCondition(children=True)).ok
    fail(engine, child)
    assert write(engine, "fail_groups", ids=[run.id]) == set()
    engine.runs.advance(run.id)
    assert run.states["map"] == "ready"


def test_superseded_tasks_fail_no_group_and_no_run(engine: Engine) -> None:
    run, (build, *_) = under_way(engine, parallel=1, count=1)
    assert engine.runs.retry(run, step="build").ok
    assert write(engine, "fail_groups", ids=[run]) == set()
    assert write(engine, "mark_failing", ids=[run]) == set()
    step = of(engine, run, "one")[0].id
    attempt = take(engine, step)
    assert engine.work.fail(step, attempt.token, "red", retryable=False).ok
    assert engine.runs.get(run).status == "failed"
    assert engine.runs.retry(run).ok
    assert engine.runs.get(run).holds.names == ()
    assert engine.tasks.get(build).status is Status.QUEUED
    superseded = [task for task in engine.runs.tasks(run) if task.superseded]
    assert {task.status for task in superseded} == {Status.CANCELLED}
    take(engine, step)
    complete(engine, step)
    engine.runs.advance(run)
    assert engine.runs.get(run).status == "completed"


def test_failing_is_lifted_whatever_became_of_what_counts_no_more(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), Step(id="aside"), given=["a"])
    take(engine, of(engine, run, "aside")[0].id)
    assert engine.runs.retry(run, step="build").ok
    step = of(engine, run, "one")[0].id
    attempt = take(engine, step)
    assert engine.work.fail(step, attempt.token, "red", retryable=False).ok
    assert engine.runs.get(run).holds.names == ("failing",)
    assert engine.runs.retry(run).ok
    assert engine.runs.get(run).holds.names == ()
    assert engine.tasks.get(step).state == "ready"


def test_only_an_idle_item_that_has_all_it_needs_is_let_in_beyond_what_may_be(
    engine: Engine,
) -> None:
    run, (_, first, second, third, _) = under_way(engine, parallel=1, count=4)
    assert engine.tasks.block(third, [second]).ok
    begun_one = engine.tasks.get(first)
    assert write(engine, "let_items_in", ids=[first, second, third]) == {second}
    assert engine.tasks.get(first) == begun_one
    assert engine.runs.cancel(run).ok
