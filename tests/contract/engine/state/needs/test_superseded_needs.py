"""Who needs what counts no more, and is not done, waits for what that was a part of."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.effect import WakeCondition
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_linked_loops import named
from tests.contract.engine.state.loops.test_loops import begin, loop, ready, work_off
from tests.contract.engine.state.plans.test_plans import plan as make_plan
from tests.contract.engine.state.test_child_tasks import spawn
from tests.contract.engine.state.verdicts.test_verifiers import do
from tests.contract.task_states import finish, take

BODY = (Step(id="one"), Step(id="two", needs=("one",)))
ORDER = [f"{step} {item}" for item in range(2) for step in ("one", "two")]


def linked(engine: Engine, step: str) -> str:
    """A run in which a step beside a loop needs one of the first item."""
    run = begin(engine, Step(id="aside"), loop("input", body=BODY), given=["a", "b"])
    assert engine.tasks.block(named(engine, run, "aside"), [named(engine, run, step)]).ok
    return run


@pytest.mark.parametrize(("again", "around"), [("build", 0), ("build.1", 1)])
def test_a_step_that_needs_a_superseded_task_waits_for_the_loop_or_item_that_begins_again(
    engine: Engine, again: str, around: int
) -> None:
    run = linked(engine, "two")
    aside = named(engine, run, "aside")
    one, two = (named(engine, run, step) for step in ("one", "two"))
    assert engine.tasks.block(aside, [one]).ok
    before = engine.tasks.get(aside).version
    assert engine.runs.retry(run, step=again).ok
    assert list(engine.tasks.blocked_by(aside)) == [named(engine, run, "build", around)]
    last = engine.tasks.events(aside)[-1]
    assert (last.type, last.version) == ("task.blocked", before + 1)
    assert list(engine.tasks.blocked_by(two)) == [one], "it counts no more itself"
    order = [*ORDER, "aside"] if around == 0 else [*ORDER[:2], "aside", *ORDER[2:]]
    assert work_off(engine, run) == order
    assert engine.doctor().ok


def test_a_cancelled_step_that_needs_a_superseded_task_comes_back_waiting_for_the_loop(
    engine: Engine,
) -> None:
    run = linked(engine, "two")
    aside = named(engine, run, "aside")
    assert engine.tasks.cancel(aside).ok
    assert engine.runs.retry(run, step="build").ok
    assert list(engine.tasks.blocked_by(aside)) == [named(engine, run, "build")]
    assert work_off(engine, run) == [*ORDER, "aside"]


def test_a_superseded_need_that_was_done_stays_done_for_its_dependent(engine: Engine) -> None:
    run = linked(engine, "one")
    do(engine, run, "one")
    aside = named(engine, run, "aside")
    assert engine.runs.retry(run, step="build").ok
    assert take(engine, aside).needs == {"one": "output"}


def test_a_step_whose_superseded_need_was_done_does_not_wait_for_it_again(
    engine: Engine,
) -> None:
    run = begin(engine, Step(id="first"), Step(id="aside"), loop("input", body=BODY), given=["a"])
    first, aside, one = (named(engine, run, step) for step in ("first", "aside", "one"))
    assert engine.tasks.block(one, [first]).ok
    assert engine.tasks.block(aside, [one]).ok
    do(engine, run, "first", "one")
    assert engine.runs.retry(run, step="build.1").ok
    assert engine.runs.retry(run, step="first").ok
    assert engine.tasks.get(aside).state == "ready"
    assert sorted(work_off(engine, run)) == ["aside", "first", "one 0", "two 0"]
    assert engine.doctor().ok


def test_a_need_on_a_superseded_child_moves_to_the_step_that_made_it(engine: Engine) -> None:
    run = begin(engine, Step(id="one"), Step(id="aside"))
    child = spawn(engine, take(engine, named(engine, run, "one")))
    aside = named(engine, run, "aside")
    assert engine.tasks.block(aside, [child]).ok
    assert engine.runs.retry(run, step="one").ok
    assert list(engine.tasks.blocked_by(aside)) == [named(engine, run, "one")]
    do(engine, run, "one")
    assert ready(engine, run) == ["aside None"]


def test_a_task_that_also_needs_the_step_around_its_superseded_need_keeps_one_need_on_it(
    engine: Engine,
) -> None:
    run = begin(engine, Step(id="one"), Step(id="aside"))
    one, aside = named(engine, run, "one"), named(engine, run, "aside")
    child = spawn(engine, take(engine, one))
    assert engine.tasks.block(aside, [child, one]).ok
    assert engine.runs.retry(run, step="one").ok
    assert list(engine.tasks.blocked_by(aside)) == [one]
    do(engine, run, "one")
    assert ready(engine, run) == ["aside None"]


@pytest.mark.parametrize("between", [True, False])
def test_a_step_that_waits_for_what_it_had_made_begins_again_without_it(
    engine: Engine, *, between: bool
) -> None:
    wanted = Reference.parse("when", "input.go")
    late = Step(id="aside", needs=("first",), when=wanted)
    run = begin(engine, Step(id="one"), Step(id="first"), late, given={"go": True})
    one, aside = named(engine, run, "one"), named(engine, run, "aside")
    attempt = take(engine, one)
    child = spawn(engine, attempt)
    assert engine.work.suspend(one, attempt.token, WakeCondition(children=True)).ok
    waits = [(aside, child), (one, aside)] if between else [(one, child)]
    for task, need in waits:
        assert engine.tasks.block(task, [need]).ok
    do(engine, run, "first")
    assert engine.runs.retry(run, step="one").ok
    assert ready(engine, run)[0] == ("aside None" if between else "one None")
    finish(engine, aside)
    finish(engine, one)
    assert engine.runs.get(run).status == "completed"
    assert engine.doctor().ok


def test_a_task_without_a_run_waits_so_too(engine: Engine) -> None:
    maker, aside = (engine.tasks.create(NewTask(title=title)).id for title in ("maker", "aside"))
    attempt = take(engine, maker)
    child = spawn(engine, attempt)
    assert engine.tasks.block(aside, [child]).ok
    assert engine.work.complete(maker, attempt.token, None).ok
    assert engine.tasks.reopen(maker).ok
    assert list(engine.tasks.blocked_by(aside)) == [maker]
    finish(engine, maker)
    assert engine.tasks.get(aside).state == "ready"
    with pytest.raises(InvalidInput, match="counts no more"):
        engine.tasks.create(NewTask(title="late", needs=(child,)))


def test_a_superseded_task_that_is_not_done_is_refused_as_a_new_need(engine: Engine) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=BODY), given=["a"])
    old = named(engine, run, "one")
    assert engine.runs.retry(run, step="build").ok
    with pytest.raises(InvalidInput, match="counts no more"):
        engine.tasks.block(named(engine, run, "aside"), [old])


def test_a_need_passed_on_to_a_planned_child_outlives_a_reset_of_its_plan(engine: Engine) -> None:
    plan, (maker, child) = make_plan(engine, "maker", "child")
    assert engine.tasks.finalize_plan(plan, graph={}).ok
    attempt = take(engine, maker)
    assert engine.tasks.block(child, [spawn(engine, attempt)]).ok
    assert engine.work.complete(maker, attempt.token, None).ok
    assert engine.tasks.reopen(maker).ok
    assert list(engine.tasks.blocked_by(child)) == [maker]
    assert engine.tasks.cancel(plan).ok
    assert engine.tasks.reset(plan).ok
    assert list(engine.tasks.blocked_by(child)) == [maker]
