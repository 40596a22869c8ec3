"""Needs that an older release left, and that nothing can meet: the doctor finds them."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, advice_of, join_texts
from holdfast.model.effect import WakeCondition
from holdfast.model.result import Refusal
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step
from holdfast.service.admin.store_repair import repair_store
from tests.contract.engine.state.loops.test_linked_loops import named
from tests.contract.engine.state.loops.test_loops import begin, work_off
from tests.contract.engine.state.needs.test_superseded_needs import ORDER, linked
from tests.contract.engine.state.plans.test_plans import plan as make_plan
from tests.contract.engine.state.test_child_tasks import spawn
from tests.contract.raw_store import raw
from tests.contract.task_states import create, finish, take

# That release left the need where it was.
OLD = "UPDATE holdfast_need SET need_id = ? WHERE task_id = ?"


def stuck(engine: Engine, url: str) -> tuple[str, str]:
    """A run, and a step of it that needs what counts no more, as in an older store."""
    run = linked(engine, "two")
    aside, two = named(engine, run, "aside"), named(engine, run, "two")
    assert engine.runs.retry(run, step="build").ok
    with raw(url) as write:
        write(OLD, two, aside)
    assert f"{aside} needs {two}, which counts no more" in str(engine.doctor())
    return run, aside


def test_a_need_that_counts_no_more_is_passed_on_by_the_doctor(
    engine: Engine, store_url: str
) -> None:
    run, aside = stuck(engine, store_url)
    before = engine.tasks.get(aside).version
    assert repair_store(engine, dry_run=True)["passed_on"] == [aside]
    assert engine.tasks.get(aside).version == before
    assert repair_store(engine)["passed_on"] == [aside]
    assert list(engine.tasks.blocked_by(aside)) == [named(engine, run, "build")]
    last = engine.tasks.events(aside)[-1]
    assert (last.type, last.actor, last.version) == ("task.blocked", "doctor", before + 1)
    assert repair_store(engine)["passed_on"] == []
    assert work_off(engine, run) == [*ORDER, "aside"]
    assert engine.doctor().ok


def test_a_task_whose_superseded_need_was_done_again_long_ago_goes_on_at_once(
    engine: Engine, store_url: str
) -> None:
    run, aside = stuck(engine, store_url)
    for place, step in ((0, "one"), (0, "two"), (1, "one"), (1, "two")):
        finish(engine, named(engine, run, step, place))
    assert repair_store(engine)["passed_on"] == [aside]
    last = engine.tasks.events(aside)[-1]
    assert (last.type, last.data["blocked"]) == ("task.unblocked", False)
    assert work_off(engine, run) == ["aside"]
    assert engine.doctor().ok


def test_a_task_that_would_wait_for_itself_goes_on_without_that_need(
    engine: Engine, store_url: str
) -> None:
    run = begin(engine, Step(id="one"), Step(id="aside"))
    one = named(engine, run, "one")
    attempt = take(engine, one)
    child = spawn(engine, attempt)
    assert engine.work.suspend(one, attempt.token, WakeCondition(children=True)).ok
    assert engine.tasks.block(one, [named(engine, run, "aside")]).ok
    assert engine.runs.retry(run, step="one").ok
    with raw(store_url) as write:
        write(OLD, child, one)
    assert repair_store(engine)["passed_on"] == [one]
    assert engine.tasks.get(one).state == "ready"


def test_superseded_needs_of_tasks_without_a_run_move_task_by_task(
    engine: Engine, store_url: str
) -> None:
    maker, *waiting = (engine.tasks.create(NewTask(title=each)).id for each in ("maker", "a", "b"))
    attempt = take(engine, maker)
    child = spawn(engine, attempt)
    for each in waiting:
        assert engine.tasks.block(each, [child]).ok
    assert engine.work.complete(maker, attempt.token, None).ok
    assert engine.tasks.reopen(maker).ok
    with raw(store_url) as write:
        for each in waiting:
            write(OLD, child, each)
    assert engine.tasks.advance(waiting[0]).ok
    assert list(engine.tasks.blocked_by(waiting[0])) == [maker]
    assert list(engine.tasks.blocked_by(waiting[1])) == [child]
    assert engine.tasks.advance(waiting[0]).reason is Refusal.INVALID_TRANSITION
    assert repair_store(engine)["passed_on"] == waiting[1:]
    finish(engine, maker)
    assert {engine.tasks.get(each).state for each in waiting} == {"ready"}


def own_part(engine: Engine, parent: str, part: str) -> str:
    """Have a plan need a part of itself, as an older release allowed; what the doctor says then."""
    needs = [(parent, part, 1)]
    engine.database.transact(lambda tx: tx.run("insert_needs", rows=needs))
    before = engine.tasks.create(NewTask(title="before")).id
    assert engine.tasks.block(parent, [before]).ok
    finish(engine, before)
    found = [each for check in engine.doctor().checks for each in check.violations]
    return join_texts("", [each.entity + " " + each.detail for each in found])


@pytest.mark.parametrize("inner", [False, True], ids=["a child", "a plan inside"])
def test_a_plan_that_needs_a_part_of_itself_is_found_and_told_how_to_go_on(
    engine: Engine, *, inner: bool
) -> None:
    parent, (one, two) = make_plan(engine, "one", "two")
    waits = one
    if inner:
        assert engine.tasks.start_planning(two).ok
        waits = create(engine, "three", parent=two, enqueue=False)
        assert engine.tasks.finalize_plan(two).ok
    assert engine.tasks.finalize_plan(parent, graph={} if inner else None).ok
    told = own_part(engine, parent, two)
    assert f"{parent} needs {two}, a part of it, which waits for {waits}" in told
    assert {each.action for each in advice_of(told)} == {Action.UNBLOCK}
    for each in advice_of(told):
        assert engine.tasks.unblock(each.target, each.values("need")).ok
    for left in (waits, one if inner else two):
        finish(engine, left)
    assert engine.tasks.get(parent).status == "done"
    assert engine.doctor().ok


def test_a_plan_that_needs_a_part_which_can_go_on_is_left_alone(engine: Engine) -> None:
    parent, (one, two) = make_plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    assert own_part(engine, parent, one) == ""
    for each in (one, two):
        finish(engine, each)
    assert engine.tasks.get(parent).status == "done"
