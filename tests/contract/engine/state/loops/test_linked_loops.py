"""Loops that wait for other work by somebody's word: nothing of them begins or ends too early."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal
from holdfast.model.workflow.graph import Step
from tests.contract.engine.state.loops.test_loops import begin, loop, of, ready, work_off
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, REJECT, current, do, judge
from tests.contract.single_statements import write
from tests.contract.task_states import finish, take

ONE = (Step(id="one"),)
JUDGED = (Step(id="implement"), Step(id="verify", verifies="implement"))


def named(engine: Engine, run: str, step: str, place: int = 0) -> str:
    return current(engine, run, step, place).id


def sent_back(engine: Engine, items: int) -> str:
    """A run whose loop is under way, and needs by hand what its verifier has rejected."""
    run = begin(engine, *JUDGED, loop("input", body=ONE, parallel=2), given=[*range(items)])
    assert engine.tasks.block(named(engine, run, "build"), [named(engine, run, "implement")]).ok
    do(engine, run, "implement")
    assert judge(engine, run, REJECT).ok
    return run


def statuses(engine: Engine, run: str) -> list[str]:
    """Of the loop, and of its items."""
    return [task.status.value for task in of(engine, run, "build")]


def test_items_that_have_not_begun_wait_until_the_work_is_done_again(engine: Engine) -> None:
    run = begin(engine, *JUDGED, loop("input", body=ONE, parallel=2), given=["a", "b", "c"])
    do(engine, run, "implement")
    assert engine.tasks.block(named(engine, run, "build"), [named(engine, run, "implement")]).ok
    assert judge(engine, run, REJECT).ok
    for place in (0, 1):
        finish(engine, named(engine, run, "one", place))
    engine.runs.advance(run)
    assert ready(engine, run) == ["implement None"]
    assert statuses(engine, run) == ["queued", "done", "done", "idle"]
    do(engine, run, "implement")
    assert ready(engine, run) == ["verify None", "one 2"]
    finish(engine, named(engine, run, "one", 2))
    assert judge(engine, run, ACCEPT).ok
    assert engine.runs.get(run).status == "completed"


def test_a_loop_is_not_done_before_all_that_it_needs_is(engine: Engine) -> None:
    run = sent_back(engine, items=2)
    for place in (0, 1):
        finish(engine, named(engine, run, "one", place))
    engine.runs.advance(run)
    assert (statuses(engine, run), current(engine, run, "build").state) == (
        ["queued", "done", "done"],
        "blocked",
    )
    assert write(engine, "settle_groups", ids=[named(engine, run, "build")]) == set()
    do(engine, run, "implement")
    assert statuses(engine, run) == ["done"] * 3


@pytest.mark.parametrize("freed", ["done", "unblocked"])
def test_a_loop_that_is_under_way_may_be_told_to_wait_with_the_rest(
    engine: Engine, freed: str
) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=ONE), given=["a", "b"])
    build, aside = named(engine, run, "build"), named(engine, run, "aside")
    assert engine.tasks.block(build, [aside]).ok
    do(engine, run, "one")
    assert ready(engine, run) == ["aside None"]
    if freed == "unblocked":
        assert engine.tasks.unblock(build).ok
    else:
        finish(engine, aside)
    assert "one 1" in ready(engine, run)


def test_an_item_that_waits_is_passed_over_and_begins_when_it_may(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b", "c"])
    items = [task.id for task in of(engine, run, "build")[1:]]
    assert engine.tasks.block(items[1], [items[2]]).ok
    assert work_off(engine, run) == ["one 0", "one 2", "one 1"]


def test_an_item_that_has_begun_is_not_told_to_wait(engine: Engine) -> None:
    run = begin(engine, Step(id="aside"), loop("input", body=ONE), given=["a", "b"])
    first = named(engine, run, "build", 1)
    answer = engine.tasks.block(first, [named(engine, run, "aside")])
    assert (answer.reason, "has begun" in answer.detail) == (Refusal.INVALID_TRANSITION, True)
    assert engine.tasks.blocked_by(first) == []


@pytest.mark.parametrize("begun", ["loop", "item"])
def test_a_need_of_a_loop_or_an_item_under_way_is_not_reset(engine: Engine, begun: str) -> None:
    run = begin(engine, Step(id="plan"), loop("input", body=ONE, needs=("plan",)), given=["a", "b"])
    do(engine, run, "plan")
    needed = named(engine, run, "plan")
    if begun == "item":
        assert engine.tasks.unblock(named(engine, run, "build")).ok
        assert engine.tasks.block(named(engine, run, "build", 2), [needed]).ok
        do(engine, run, "one")
    assert engine.tasks.reset(needed).reason is Refusal.STARTED_DEPENDENTS
    assert engine.runs.retry(run, step="plan").ok


def test_a_need_of_a_loop_or_an_item_that_has_not_begun_is_reset(engine: Engine) -> None:
    body = (Step(id="one"), Step(id="two", needs=("one",)))
    run = begin(engine, Step(id="plan"), loop("input", body=body), given=["a", "b"])
    build, plan = named(engine, run, "build"), named(engine, run, "plan")
    do(engine, run, "plan", "one")
    assert engine.tasks.reset(named(engine, run, "one")).ok
    assert engine.tasks.block(named(engine, run, "build", 2), [plan]).ok
    assert engine.tasks.reset(plan).ok
    assert engine.tasks.block(build, [plan]).ok
    do(engine, run, "plan")
    assert engine.tasks.reset(plan).reason is Refusal.STARTED_DEPENDENTS
    assert engine.tasks.reset(build).ok
    assert engine.tasks.reset(plan).ok
    assert (statuses(engine, run), current(engine, run, "build").blocked) == (["idle"], True)


def test_needs_of_one_name_give_the_output_of_the_whole_loop_or_else_of_the_first_item(
    engine: Engine,
) -> None:
    asides = [Step(id=f"aside{number}") for number in range(3)]
    run = begin(engine, loop("input", body=ONE), *asides, given=["a", "b"])
    build, *items = (task.id for task in of(engine, run, "build"))
    for aside, on in zip(asides, ([build, items[0]], items[::-1], items[1:]), strict=True):
        assert engine.tasks.block(named(engine, run, aside.id), on).ok
    for place, output in enumerate(("first", "second")):
        finish(engine, named(engine, run, "one", place), output)
    given = [take(engine, named(engine, run, aside.id)).needs["build"] for aside in asides]
    assert given == [["first", "second"], "first", "second"]


def test_needs_of_one_name_give_the_output_of_the_same_item(engine: Engine) -> None:
    body = (Step(id="one"), Step(id="two", needs=("one",)))
    run = begin(engine, loop("input", body=body, parallel=2), given=["a", "b"])
    ones = [named(engine, run, "one", place) for place in (0, 1)]
    for place in (0, 1):
        assert engine.tasks.block(named(engine, run, "two", place), ones).ok
        finish(engine, ones[place], place)
    for place in (0, 1):
        assert take(engine, named(engine, run, "two", place)).needs == {"one": place}
        assert engine.work.needed_around(named(engine, run, "two", place)) == {"one": place}
