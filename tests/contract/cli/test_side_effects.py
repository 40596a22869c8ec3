"""What is taken up again says what is above it that goes on too: its run, its caller, its plan."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Step
from tests.contract import called_workflows
from tests.contract.called_workflows import LAST, call, of
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.task_states import FORK, break_for_good, create, finish, start, take


@pytest.fixture
def url(store_url: str) -> str:
    """On each database: these are the queries of the service."""
    return store_url


def test_a_retry_of_one_step_says_that_its_run_goes_on_and_how_many_tasks_with_it(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine)
    run.finish("plan")
    work, back = run.steps["work"], f"chain {run.id} goes on too"
    typed.ok("cancel", run.id)
    said = [f"work {work} is ready", f"{back}, with 1 other task re-opened"]
    assert typed.ok("retry", work).splitlines() == said
    assert typed.ok("retry", work) == f"{said[0]} (as before)\n"
    run.break_for_good("work")
    assert typed.ok("retry", work).splitlines() == [said[0], back]
    typed.ok("cancel", run.id)
    assert typed.json("retry", work).keys() == {"ok", "repeated", "task"}


def test_a_task_that_is_done_again_says_what_of_its_run_comes_back_with_it(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine)
    run.finish("plan", "work", "review")
    plan = run.steps["plan"]
    said = [f"plan {plan} is ready", f"chain {run.id} goes on too, with 2 other tasks re-opened"]
    assert typed.ok("retry", "--again", plan).splitlines() == said
    run.finish("plan", "work", "review")
    assert typed.ok("continue", plan, "more").splitlines() == said
    typed.ok("pause", run.id)
    typed.ok("cancel", run.id)
    held = f"chain {run.id} comes back too (held: paused), with 2 other tasks re-opened"
    assert typed.ok("retry", plan).splitlines()[1:] == [held]


def test_a_retry_counts_no_group_around_the_step(engine: Engine, typed: Typed) -> None:
    run = begin(engine, loop("input", body=(Step(id="one"),)), given=["a"])
    (one,) = (task.id for task in engine.runs.tasks(run) if task.step == "one")
    break_for_good(engine, one)
    told = typed.ok("retry", one, "--dry-run").splitlines()[0]
    assert told == f"would retry {one}: 1 task, and 2 others change"
    assert typed.ok("retry", one).splitlines()[1:] == [f"w {run} goes on too"]


def ended(told: dict[str, Any]) -> set[str]:
    """Of what a dry run lists, what would be tried again: others are only held no more."""
    return {each["id"] for each in told["tasks"] if each["status"] in {"failed", "cancelled"}}


def test_a_retry_in_a_called_run_says_that_its_caller_goes_on_too(
    engine: Engine, typed: Typed
) -> None:
    run = called_workflows.begin(engine, call(), Step(id="beside"), LAST)
    below = of(run)
    beside = run.take("beside")
    break_for_good(engine, below.steps["pack"])
    assert engine.work.fail(beside.task_id, beside.token, "broken", retryable=False).ok
    assert (below.status, run.status) == ("failed", "failed")
    would = {below.steps["pack"], run.steps["ship"], run.steps["beside"]}
    for each in (below.steps["pack"], below.id):
        assert ended(typed.json("retry", each, "--dry-run")) == would
    goes_on = f"order {run.id} goes on too, with 1 other task re-opened"
    assert typed.ok("retry", below.steps["pack"]).splitlines() == [
        f"pack {below.steps['pack']} is ready",
        f"shipping {below.id} goes on too",
        goes_on,
    ]
    typed.ok("cancel", run.id)
    assert typed.ok("retry", below.id).splitlines() == [
        f"shipping {below.id} is running",
        f"order {run.id} goes on too, with 2 other tasks re-opened",
    ]
    assert typed.ok("retry", below.id) == f"shipping {below.id} is running (as before)\n"


def test_a_retry_in_a_called_run_says_nothing_of_a_caller_that_went_on_all_the_while(
    engine: Engine, typed: Typed
) -> None:
    run = called_workflows.begin(engine, call(), LAST)
    below = of(run)
    below.finish("pack")
    assert typed.refused(1, "retry", below.id, "--dry-run") == typed.refused(1, "retry", below.id)
    said = typed.ok("retry", below.steps["pack"], "--again").splitlines()
    assert said == [
        f"pack {below.steps['pack']} is ready",
        f"shipping {below.id} goes on too, with 1 other task re-opened",
    ]


def test_a_retry_of_a_part_of_a_plan_says_that_the_plan_goes_on_too(
    engine: Engine, typed: Typed
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three", agent="default")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    goes_on = f"feature {parent} goes on too"
    other = take(engine, two)
    break_for_good(engine, one)
    assert engine.tasks.get(three).state == "stalled"
    assert typed.ok("retry", one).splitlines() == [f"one {one} is ready", goes_on]
    break_for_good(engine, one)
    assert engine.work.fail(two, other.token, "broken", retryable=False).ok
    assert engine.tasks.get(parent).status == "failed"
    assert ended(typed.json("retry", one, "--dry-run")) == {parent, one, two}
    said = [f"one {one} is ready", f"{goes_on}, with 1 other task re-opened"]
    assert typed.ok("retry", one).splitlines() == said
    assert typed.ok("retry", one) == f"{said[0]} (as before)\n"
    for each in (one, two, three):
        finish(engine, each)
    assert typed.ok("retry", one, "--again").splitlines() == [said[0], goes_on]
    assert typed.ok("cancel", parent)
    assert typed.json("retry", one).keys() == {"ok", "repeated", "task"}


def test_the_topmost_of_plans_inside_each_other_is_told(engine: Engine, typed: Typed) -> None:
    parent, (one,) = plan(engine, "one", agent="default")
    assert engine.tasks.start_planning(one).ok
    part, beside = (create(engine, each, parent=one, enqueue=False) for each in ("in", "beside"))
    for each in (one, parent):
        assert engine.tasks.finalize_plan(each, graph={}).ok
    typed.ok("cancel", parent)
    assert typed.ok("retry", part).splitlines() == [
        f"in {part} is ready",
        f"feature {parent} goes on too, with 1 other task re-opened",
    ]
    assert engine.tasks.get(beside).state == "ready"


def test_a_task_that_is_a_part_of_nothing_comes_back_alone(engine: Engine, typed: Typed) -> None:
    lone = create(engine)
    break_for_good(engine, lone)
    assert typed.ok("retry", lone) == f"task {lone} is ready\n"


def test_a_cancel_of_a_part_says_that_what_it_is_part_of_fails_because_of_it(
    engine: Engine, typed: Typed
) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    run.take("left")
    for step, fails in (
        ("right", "begins nothing more, and will fail"),
        ("join", ""),
        ("left", "has failed"),
    ):
        task = run.steps[step]
        said = typed("cancel", task)
        more = f"fork {run.id} {fails} because of it\n" if fails else ""
        assert said.out == f"{step} {task} is cancelled\n{more}"
        assert said.err == (f"next:  holdfast retry {task}\n" if fails else "")
    above = called_workflows.begin(engine, call(), LAST)
    below = of(above)
    assert typed.ok("cancel", below.steps["pack"]).splitlines()[1:] == [
        f"shipping {below.id} has failed because of it",
        f"order {above.id} has failed because of it",
    ]
    parent, (one, two) = plan(engine, "one", "two", agent="default")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    take(engine, two)
    will = f"feature {parent} begins nothing more, and will fail because of it"
    assert typed.ok("cancel", one).splitlines()[1:] == [will]
    assert typed.json("cancel", two).keys() == {"ok", "repeated", "task"}
    for whole in (start(engine).id, create(engine)):
        assert typed("cancel", whole).err == ""
