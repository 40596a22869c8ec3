"""Items wait for their turn in a loop, and who has a place in it never waits for one of those."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.workflow.graph import Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_linked_loops import named, statuses
from tests.contract.engine.state.loops.test_links_across_loops import BODY, TURN
from tests.contract.engine.state.loops.test_loops import begin, loop, work_off
from tests.contract.engine.state.verdicts.test_verifiers import do
from tests.contract.task_states import break_for_good, finish


def under_way(engine: Engine, *items: str, parallel: int = 1) -> str:
    return begin(engine, loop("input", body=BODY, parallel=parallel), given=[*items])


def test_a_step_may_not_wait_for_a_later_item_while_more_are_under_way_than_may_be(
    engine: Engine,
) -> None:
    run = under_way(engine, "a", "b", "c")
    do(engine, run, "one", "two")
    # It comes back beside the second, which has its place by now.
    assert engine.tasks.reopen(named(engine, run, "one")).ok
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(named(engine, run, "two"), [named(engine, run, "build", 3)])
    work_off(engine, run)


def test_a_step_may_not_wait_for_a_later_item_while_its_own_item_has_failed(engine: Engine) -> None:
    run = under_way(engine, "a", "b", "c")
    break_for_good(engine, named(engine, run, "one"))
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(named(engine, run, "two"), [named(engine, run, "build", 3)])
    assert engine.runs.retry(run).ok
    work_off(engine, run)


def test_a_step_may_not_wait_for_a_later_item_while_its_own_item_is_cancelled(
    engine: Engine,
) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=BODY), given=["a", "b", "c"])
    aside, last = named(engine, run, "aside"), named(engine, run, "build", 3)
    assert engine.tasks.block(named(engine, run, "two"), [aside]).ok
    assert engine.tasks.cancel(named(engine, run, "build", 1)).ok
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(aside, [last])
    assert engine.runs.retry(run).ok
    work_off(engine, run)


def test_a_step_may_not_wait_for_an_item_that_was_cancelled_before_its_turn(
    engine: Engine,
) -> None:
    run = under_way(engine, "a", "b")
    last = named(engine, run, "build", 2)
    assert engine.tasks.cancel(last).ok
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(named(engine, run, "two"), [last])
    assert engine.runs.retry(run).ok
    work_off(engine, run)


def test_a_cancelled_item_that_has_begun_waits_for_no_turn_and_may_be_waited_for(
    engine: Engine,
) -> None:
    run = under_way(engine, "a", "b")
    assert engine.tasks.cancel(named(engine, run, "build", 1)).ok
    assert engine.tasks.block(named(engine, run, "two", 1), [named(engine, run, "build", 1)]).ok
    assert engine.runs.retry(run).ok
    work_off(engine, run)


def test_an_item_that_was_cancelled_before_its_turn_keeps_no_place(engine: Engine) -> None:
    run = under_way(engine, "a", "b", "c", "d", parallel=2)
    assert engine.tasks.cancel(named(engine, run, "build", 3)).ok
    assert engine.tasks.block(named(engine, run, "two"), [named(engine, run, "build", 4)]).ok
    assert engine.runs.retry(run).ok
    work_off(engine, run)


def test_an_item_that_begins_again_is_let_in_when_the_item_in_its_place_waits_for_it(
    engine: Engine,
) -> None:
    """The need was done when the link was made; then it begins again, and nobody makes room."""
    run = under_way(engine, "a", "b", "c")
    do(engine, run, "one", "two")
    assert engine.tasks.block(named(engine, run, "two", 1), [named(engine, run, "build", 1)]).ok
    assert engine.runs.retry(run, step="build.1").ok
    assert statuses(engine, run) == ["queued", "queued", "queued", "idle"]
    work_off(engine, run)


def test_an_earlier_item_that_begins_again_is_not_let_in_with_the_item_that_is_waited_for(
    engine: Engine,
) -> None:
    run = under_way(engine, "a", "b", "c", "d")
    do(engine, run, "one", "two")
    for step in ("one", "two"):
        finish(engine, named(engine, run, step, 1))
    assert engine.tasks.block(named(engine, run, "two", 2), [named(engine, run, "build", 2)]).ok
    for item in ("build.1", "build.2"):
        assert engine.runs.retry(run, step=item).ok
    assert statuses(engine, run) == ["queued", "idle", "queued", "queued", "idle"]
    work_off(engine, run)


def test_an_item_that_begins_again_waits_where_somebody_else_makes_room_for_it(
    engine: Engine,
) -> None:
    run = under_way(engine, "a", "b", "c", parallel=2)
    do(engine, run, "one", "two")
    assert engine.tasks.block(named(engine, run, "two", 1), [named(engine, run, "build", 1)]).ok
    assert engine.runs.retry(run, step="build.1").ok
    assert statuses(engine, run) == ["queued", "idle", "queued", "queued"]
    work_off(engine, run)


def test_items_of_two_loops_that_begin_again_do_not_wait_for_each_other(engine: Engine) -> None:
    body = (Step(id="x"), Step(id="y", needs=("x",)))
    other = Step(id="other", for_each=Reference.parse("for_each", "input"), steps=body)
    run = begin(engine, loop("input", body=BODY), other, given=["a", "b"])
    do(engine, run, "one", "two", "x", "y")
    build, others = (named(engine, run, step, 1) for step in ("build", "other"))
    assert engine.tasks.block(named(engine, run, "two", 1), [others]).ok
    assert engine.tasks.block(named(engine, run, "y", 1), [build]).ok
    for item in ("build.1", "other.1"):
        assert engine.runs.retry(run, step=item).ok
    work_off(engine, run)
