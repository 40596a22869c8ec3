"""Items of a loop start in their turn, whatever is asked of them, and are done by their steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.engine.state import loops
from holdfast.errors import NotFound
from holdfast.model.advice import Action, Advice
from holdfast.model.result import Refusal
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Step
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import advised
from tests.contract.engine.state.loops.test_loops import begin, loop, of, planned, work_off
from tests.contract.task_states import finish
from tests.engines import opened

ONE = (Step(id="one"),)
HOUR = 3600 * MICROSECONDS


@pytest.mark.parametrize("asked", ["enqueue", "run_now"])
def test_nobody_starts_an_item_but_its_loop(engine: Engine, asked: str) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b"])
    _, under_way, waiting = of(engine, run, "build")
    for item in (under_way, waiting):
        assert getattr(engine.tasks, asked)(item.id).reason is Refusal.INVALID_TRANSITION
        assert engine.tasks.get(item.id) == item
    assert work_off(engine, run) == ["one 0", "one 1"]


def test_items_that_were_moved_begin_in_that_order_and_give_in_that_of_the_list(
    engine: Engine,
) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b", "c"])
    assert engine.tasks.edit(of(engine, run, "build")[3].id, {"position": 0}).ok
    assert work_off(engine, run) == ["one 0", "one 2", "one 1"]
    assert of(engine, run, "build")[0].output == ["one a", "one b", "one c"]


def test_items_moved_to_one_place_begin_in_the_order_of_the_list(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b", "c"])
    _, _, second, third = of(engine, run, "build")
    # The one that comes first is written last, where a database might look for it last.
    for item, place in ((third, 1), (second, 2), (second, 1)):
        assert engine.tasks.edit(item.id, {"position": place}).ok
    assert work_off(engine, run) == ["one 0", "one 1", "one 2"]


@pytest.mark.parametrize("address", ["build.3", "build.3.one"])
def test_an_item_that_was_moved_keeps_its_name(engine: Engine, address: str) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b", "c"])
    moved = of(engine, run, "build")[3]
    assert engine.tasks.edit(moved.id, {"position": 0}).ok
    assert engine.runs.task(run, "build.3").id == moved.id
    work_off(engine, run)
    assert engine.runs.retry(run, step=address).ok
    assert work_off(engine, run) == ["one 2"]


@pytest.mark.parametrize("ended", [False, True])
def test_an_item_begun_again_is_done_only_by_its_steps(engine: Engine, *, ended: bool) -> None:
    run = begin(engine, loop("input", body=ONE), Step(id="last", needs=("build",)), given=["a"])
    if ended:
        assert work_off(engine, run) == ["one 0", "last"]
    else:
        finish(engine, of(engine, run, "one")[0].id)
    assert engine.tasks.reopen(of(engine, run, "build")[1].id).ok
    assert [task.status for task in of(engine, run, "build")] == [Status.QUEUED] * 2
    assert work_off(engine, run) == ["one 0", "last"]


def test_an_item_begun_again_waits_for_its_turn(engine: Engine) -> None:
    run = begin(engine, loop("input", body=ONE), given=["a", "b", "c"])
    finish(engine, of(engine, run, "one")[0].id)
    assert engine.tasks.reopen(of(engine, run, "build")[1].id).ok
    statuses = [task.status for task in of(engine, run, "build")[1:]]
    assert statuses == [Status.IDLE, Status.QUEUED, Status.IDLE]
    assert work_off(engine, run) == ["one 1", "one 0", "one 2"]


def test_retry_from_a_loop_begins_the_loop_itself_though_its_items_have_older_ids(
    engine: Engine, store_url: str, clock: ManualClock
) -> None:
    run = begin(engine, Step(id="plan"), loop("steps.plan", body=ONE, needs=("plan",)))
    with opened(store_url, clock=ManualClock(clock.now() - HOUR)) as late:
        finish(late, of(late, run, "plan")[0].id, ["a", "b"])
    loops = of(engine, run, "build")
    assert loops[1].id < loops[0].id
    assert engine.runs.retry(run, step="build").ok
    assert work_off(engine, run) == ["one 0", "one 1"]
    assert engine.tasks.get(loops[0].id).epoch == 2


def test_retry_from_a_step_of_an_item_begins_the_step_that_is_not_superseded(
    engine: Engine,
) -> None:
    run = planned(engine, loop(needs=("plan",), body=ONE), stories=["a"])
    finish(engine, of(engine, run, "one")[0].id)
    assert engine.runs.retry(run, step="build").ok
    assert work_off(engine, run) == ["one 0"]
    assert engine.runs.retry(run, step="build.1.one").ok
    assert work_off(engine, run) == ["one 0"]


BODY = (Step(id="one"), Step(id="two", needs=("one",)))


@pytest.mark.parametrize(
    ("address", "again"),
    [
        ("build.2.one", ["one 1", "two 1", "last"]),
        ("build.2.two", ["two 1", "last"]),
        ("build.2", ["one 1", "two 1", "last"]),
    ],
)
def test_a_run_begins_again_at_a_step_of_one_item_or_at_one_item(
    engine: Engine, address: str, again: list[str]
) -> None:
    run = begin(
        engine, loop("input", body=BODY), Step(id="last", needs=("build",)), given=["a", "b"]
    )
    work_off(engine, run)
    assert engine.runs.retry(run, step=address).ok
    assert work_off(engine, run) == again


def test_a_step_in_a_loop_is_meant_with_its_item(engine: Engine) -> None:
    run = begin(engine, loop("input", body=BODY), given=["a", "b"])
    work_off(engine, run)
    answer = engine.runs.retry(run, step="two")
    assert (answer.ok, answer.reason) == (False, Refusal.UNKNOWN_STEP)
    assert advised(answer) == [Advice(Action.RETRY, run, (("step", "build.1.two"),))]
    assert engine.runs.retry(run, step="build.3.two").detail.endswith(
        "build has 2 items, counted from 1"
    )


def test_a_step_that_has_not_been_made_yet_is_told_with_when_it_will_be(engine: Engine) -> None:
    files = Step(id="files", for_each=Reference.parse("for_each", "item"), steps=(Step(id="edit"),))
    body = (Step(id="one"), replace(files, needs=("one",)))
    run = begin(engine, Step(id="plan"), loop(body=body, needs=("plan",)))
    waits = "build makes its items when it begins, after plan (queued)"
    for address in ("build.2", "build.2.one", "build.2.files.7", "build.2.files.7.edit"):
        assert tell(engine, run, address) == f"there is no such task yet; {waits}"
    assert engine.runs.retry(run, step="build.2.one").detail == (
        f"'build.2.one' has not been made yet; {waits}"
    )
    known = "there is no such task in this store; the steps there are one, files"
    for address in ("build.2.edit", "build.2.files.edit", "build.2.one.1"):
        assert tell(engine, run, address) == known
    finish(engine, engine.runs.task(run, "plan").id, {"stories": [["a"], ["b"]]})
    assert tell(engine, run, "build.2.files.1.edit") == (
        "there is no such task yet; the steps of build.2 are made when it begins: "
        "build has 1 item at a time, and 0 of 2 are done"
    )
    assert tell(engine, run, "build.1.files.1") == (
        "there is no such task yet; build.1.files makes its items when it begins, "
        "after build.1.one (queued)"
    )
    assert tell(engine, run, "build.2.edit") == known
    few = "there is no such task in this store; build has 2 items, counted from 1"
    assert [tell(engine, run, f"build.{each}.one") for each in (0, 3)] == [few, few]
    assert tell(engine, run, "build.one").endswith("build is a loop: name an item, build.1")
    assert engine.runs.cancel(run).ok
    assert tell(engine, run, "build.2.one").endswith("in this store; build.2 is cancelled")
    assert tell(engine, run, "build.1.files.1").endswith(
        "in this store; build.1.files is cancelled"
    )


def test_the_rest_of_a_long_list_has_not_been_made_yet(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "ITEMS_AT_ONCE", 2)
    run = begin(engine, loop("input", body=BODY), given=["a", "b", "c"])
    assert tell(engine, run, "build.3.one") == (
        "there is no such task yet; 2 of the 3 items of build have been made, the rest come later"
    )


def tell(engine: Engine, run: str, address: str) -> str:
    with pytest.raises(NotFound) as told:
        engine.runs.task(run, address)
    return str(told.value).removeprefix(f"{run}:{address}: ")
