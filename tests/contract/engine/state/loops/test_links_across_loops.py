"""Links by hand between a loop's inside and what stands around it: in order, and in no circle."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_linked_loops import named, statuses
from tests.contract.engine.state.loops.test_loops import begin, loop, of, ready, work_off
from tests.contract.engine.state.verdicts.test_verifiers import REJECT, current, do, judge
from tests.contract.task_states import finish, take

BODY = (Step(id="one"), Step(id="two", needs=("one",)))
LAST = Step(id="last", needs=("build",))


def linked(engine: Engine, *more: Step) -> str:
    """A run in which a step of a loop's item needs one that stands outside."""
    run = begin(engine, Step(id="aside"), loop("input", body=BODY), *more, given=["a"])
    assert engine.tasks.block(named(engine, run, "two"), [named(engine, run, "aside")]).ok
    return run


def test_the_loop_around_a_step_that_is_done_again_is_under_way_again(engine: Engine) -> None:
    run = linked(engine, LAST)
    assert work_off(engine, run) == ["aside", "one 0", "two 0", "last"]
    assert engine.tasks.reopen(named(engine, run, "aside")).ok
    assert ready(engine, run) == ["aside None"]
    assert (statuses(engine, run), current(engine, run, "last").state) == (
        ["queued", "queued"],
        "blocked",
    )
    assert work_off(engine, run) == ["aside", "two 0", "last"]


def test_the_loop_around_a_step_is_under_way_again_when_work_goes_back(engine: Engine) -> None:
    back = OnFailure(action="goto", step="aside", max_rounds=1)
    once = RetryPolicy(max_attempts=1)
    tester = Step(id="test", needs=("aside", "build"), retry=once, on_failure=back)
    run = linked(engine, LAST, tester)
    do(engine, run, "aside", "one", "two")
    test = named(engine, run, "test")
    assert engine.work.fail(test, take(engine, test).token, "red").ok
    assert (ready(engine, run), statuses(engine, run)) == (["aside None"], ["queued", "queued"])
    assert current(engine, run, "last").state == "blocked"


def test_a_step_that_needs_an_item_waits_for_it_when_the_item_is_sent_back(engine: Engine) -> None:
    check = Step(id="verify", verifies="build")
    run = begin(engine, loop("input", body=BODY), check, Step(id="aside"), given=["a"])
    assert engine.tasks.block(named(engine, run, "aside"), [named(engine, run, "build", 1)]).ok
    do(engine, run, "one", "two")
    assert judge(engine, run, REJECT).ok
    assert ready(engine, run) == ["one 0"]
    do(engine, run, "one", "two")
    assert ready(engine, run) == ["verify None", "aside None"]


@pytest.mark.parametrize(
    ("waits", "for_whom"),
    [
        ("build", "one"),
        ("build", "item"),
        ("two", "build"),
        ("two", "item"),
        ("two", "last"),
        ("first", "one"),
    ],
)
def test_a_link_that_would_have_a_loop_wait_for_itself_is_refused(
    engine: Engine, waits: str, for_whom: str
) -> None:
    run = begin(engine, Step(id="first"), loop("input", body=BODY), LAST, given=["a"])
    assert engine.tasks.block(named(engine, run, "build"), [named(engine, run, "first")]).ok
    ids = {step: named(engine, run, step) for step in ("first", "build", "one", "two", "last")}
    ids["item"] = of(engine, run, "build")[1].id
    with pytest.raises(InvalidInput, match="would need itself"):
        engine.tasks.block(ids[waits], [ids[for_whom]])
    assert engine.tasks.block(ids["two"], [ids["first"]]).ok


TURN = "waits for its turn"


def test_a_step_may_not_wait_for_an_item_that_begins_after_its_own(engine: Engine) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=BODY), given=["a", "b", "c"])
    two, aside = named(engine, run, "two"), named(engine, run, "aside")
    last = named(engine, run, "build", 3)
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(two, [last])
    assert engine.tasks.block(aside, [last]).ok
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(two, [aside])
    assert engine.tasks.unblock(aside).ok
    assert engine.tasks.block(two, [aside]).ok
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(aside, [last])
    steps = ["aside", *(f"{step} {item}" for item in range(3) for step in ("one", "two"))]
    assert work_off(engine, run) == steps


def test_a_step_may_not_wait_for_an_item_that_begins_after_the_item_around_its_loop(
    engine: Engine,
) -> None:
    inner = Step(id="inner", for_each=Reference.parse("for_each", "input"), steps=BODY)
    run = begin(engine, loop("input", body=(inner,)), given=["a", "b"])
    outer = named(engine, run, "build", 2)
    waits = [named(engine, run, step) for step in ("two", "inner")]
    for each in waits:
        with pytest.raises(InvalidInput, match=TURN):
            engine.tasks.block(each, [outer])
    with pytest.raises(InvalidInput, match=TURN):
        engine.tasks.block(waits[0], [named(engine, run, "inner", 2)])


def test_items_of_a_parallel_loop_may_wait_for_a_later_item_while_a_place_is_left_for_it(
    engine: Engine,
) -> None:
    parallel = loop("input", body=BODY, parallel=2)
    run = begin(engine, Step(id="aside"), parallel, given=["a", "b", "c"])
    first, second = (named(engine, run, "two", place) for place in (0, 1))
    aside, last = named(engine, run, "aside"), named(engine, run, "build", 3)
    assert engine.tasks.block(first, [last]).ok
    assert engine.tasks.block(aside, [last]).ok
    for need in (last, aside):
        with pytest.raises(InvalidInput, match=TURN):
            engine.tasks.block(second, [need])
    assert work_off(engine, run) == ["one 0", "one 1", "two 1", "one 2", "two 2", "aside", "two 0"]


def test_an_item_may_be_waited_for_while_its_loop_has_room(engine: Engine) -> None:
    parallel = loop("input", body=BODY, parallel=2)
    run = begin(engine, Step(id="aside"), parallel, given=["a", "b", "c"])
    last = named(engine, run, "build", 3)
    assert engine.tasks.block(last, [named(engine, run, "aside")]).ok
    for step in ("one", "two"):
        finish(engine, named(engine, run, step, 1))
    assert engine.tasks.block(named(engine, run, "two"), [last]).ok
    assert work_off(engine, run) == ["aside", "one 0", "one 2", "two 2", "two 0"]


def test_a_superseded_need_closes_no_circle(engine: Engine) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=BODY), given=["a"])
    old = named(engine, run, "one")
    do(engine, run, "one")
    assert engine.runs.retry(run, step="build").ok
    assert engine.tasks.block(named(engine, run, "build"), [named(engine, run, "aside")]).ok
    assert engine.tasks.block(named(engine, run, "aside"), [old]).ok


def test_no_item_comes_back_that_counts_no_more(engine: Engine) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=BODY, needs=("aside",)), given=["a"])
    do(engine, run, "aside")
    old = named(engine, run, "build", 1)
    assert engine.tasks.block(named(engine, run, "two"), [named(engine, run, "aside")]).ok
    do(engine, run, "one", "two")
    assert engine.tasks.reopen(named(engine, run, "aside")).ok
    ended = engine.tasks.get(old)
    assert (ended.status, ended.superseded, ended.generation) == ("done", True, 1)
    assert work_off(engine, run) == ["aside", "one 0", "two 0"]
