"""Concurrency keys: how many tasks run, how many runs go on, and who is let in next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.moment import to_datetime
from holdfast.model.task import Assignment
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN, StartedRun, create, start, take

ONE = Concurrency(key="repo")
TWO = Concurrency(key="repo", limit=2)
SERIAL = Workflow.define("serial", CHAIN.steps, concurrency=ONE)
PAIRWISE = Workflow.define("pairwise", (Step(id="only"),), concurrency=TWO)


def used(store_url: str) -> dict[str, int]:
    with raw(store_url) as run:
        return {row["key"]: row["used"] for row in run("SELECT key, used FROM holdfast_slot")}


def test_no_more_tasks_of_a_key_run_than_its_limit(engine: Engine, store_url: str) -> None:
    for number in range(4):
        create(engine, f"keyed {number}", concurrency=TWO, priority=1)
    create(engine, "free")
    claimed = engine.work.claim("worker", count=10)
    assert [each.task.title for each in claimed] == ["keyed 0", "keyed 1", "free"]
    assert used(store_url) == {"task:repo": 2}
    assert engine.work.claim("worker") == []
    assert engine.work.complete(claimed[0].task.id, claimed[0].token).ok
    (third,) = engine.work.claim("worker", count=10)
    assert third.task.title == "keyed 2"


def test_a_full_key_lets_the_tasks_behind_it_through(engine: Engine) -> None:
    for _ in range(5):
        create(engine, "keyed", concurrency=ONE, priority=1)
    for _ in range(3):
        create(engine, "behind")
    claimed = [each.task.title for each in engine.work.claim("worker", count=3)]
    assert claimed == ["keyed", "behind", "behind"]


def test_a_full_key_lets_through_those_behind_it_in_the_order_of_all_lines(engine: Engine) -> None:
    for _ in range(2):
        create(engine, "keyed", concurrency=ONE, priority=1)
    for title, tags in (("first", ()), ("second", ("gpu",)), ("third", ()), ("fourth", ("gpu",))):
        create(engine, title, tags=tags)
    claimed = engine.work.claim("worker", tags=["gpu"], count=4)
    assert [each.task.title for each in claimed] == ["keyed", "first", "second", "third"]


def test_a_key_is_shared_across_agents_of_one_claim(engine: Engine) -> None:
    for agent in "ab":
        create(engine, agent, agent=agent, concurrency=ONE, priority=1)
        create(engine, agent + " free", agent=agent)
    claimed = engine.work.claim("worker", agents=["a", "b"], count=4)
    assert sorted(each.task.title for each in claimed) == ["a", "a free", "b free"]


def test_a_claim_by_id_waits_for_the_key_too(engine: Engine) -> None:
    first, second = (create(engine, concurrency=ONE) for _ in range(2))
    assignment = take(engine, first)
    assert engine.work.claim_by_id(second, "worker") == []
    assert engine.work.complete(first, assignment.token).ok
    take(engine, second)


def expire(engine: Engine, clock: ManualClock) -> None:
    clock.advance(30)
    engine.work.recover()


ENDINGS: dict[str, Callable[[Engine, ManualClock, Assignment], object]] = {
    "complete": lambda engine, _, a: engine.work.complete(a.task.id, a.token),
    "fail": lambda engine, _, a: engine.work.fail(a.task.id, a.token, "x", retryable=False),
    "retry": lambda engine, _, a: engine.work.fail(a.task.id, a.token, "x"),
    "release": lambda engine, _, a: engine.work.release(a.task.id, a.token),
    "cancel": lambda engine, _, a: engine.tasks.cancel(a.task.id),
    "lost": lambda engine, clock, _: expire(engine, clock),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_way_out_of_running_gives_the_place_back(
    engine: Engine, clock: ManualClock, store_url: str, ending: str
) -> None:
    assignment = take(engine, create(engine, concurrency=ONE))
    assert used(store_url) == {"task:repo": 1}
    ENDINGS[ending](engine, clock, assignment)
    assert used(store_url) == {"task:repo": 0}


def test_a_superseded_task_gives_its_place_back(engine: Engine, store_url: str) -> None:
    steps = (Step(id="plan"), Step(id="work", needs=("plan",), concurrency=ONE))
    run = start(engine, Workflow.define("keyed", steps))
    run.finish("plan")
    run.take("work")
    assert used(store_url) == {"task:repo": 1}
    assert engine.tasks.reopen(run.steps["plan"]).ok
    assert used(store_url) == {"task:repo": 0}


def test_a_cancelled_run_gives_back_the_places_of_its_tasks(engine: Engine, store_url: str) -> None:
    step = Step(id="work", concurrency=ONE)
    run = start(engine, Workflow.define("both", (step,), concurrency=ONE))
    run.take("work")
    assert used(store_url) == {"run:repo": 1, "task:repo": 1}
    assert engine.runs.cancel(run.id).ok
    assert used(store_url) == {"run:repo": 0, "task:repo": 0}


def test_the_newest_limit_of_a_key_stands(engine: Engine) -> None:
    for limit in (1, 3):
        create(engine, concurrency=Concurrency(key="repo", limit=limit))
    create(engine, concurrency=Concurrency(key="repo", limit=2))
    assert len(engine.work.claim("worker", count=10)) == 2


def test_a_run_whose_key_is_full_starts_with_hold_slot(engine: Engine) -> None:
    first, second = start(engine, SERIAL), start(engine, SERIAL)
    assert (first.holds, second.holds) == ([], ["slot"])
    assert second.states["plan"] == "held"
    claimed = engine.work.claim("worker", count=10)
    assert [each.task.run_id for each in claimed] == [first.id]
    assert engine.work.claim_by_id(second.steps["plan"], "worker") == []


def end_by_cancel(run: StartedRun) -> None:
    run.engine.runs.cancel(run.id)


RUN_ENDINGS: dict[str, Callable[[StartedRun], None]] = {
    "completed": lambda run: run.finish("plan", "work", "review"),
    "failed": lambda run: run.break_for_good("plan"),
    "cancelled": end_by_cancel,
}


@pytest.mark.parametrize("ending", RUN_ENDINGS)
def test_the_end_of_a_run_admits_the_oldest_waiter_in_its_own_transaction(
    engine: Engine, clock: ManualClock, ending: str
) -> None:
    runs = [start(engine, SERIAL) for _ in range(3)]
    clock.advance(1)
    RUN_ENDINGS[ending](runs[0])
    assert runs[0].status == ending
    assert [run.holds for run in runs[1:]] == [[], ["slot"]]
    assert engine.runs.events(runs[1].id)[-1].at == to_datetime(clock.now())
    assert engine.work.claim("worker")[0].task.run_id == runs[1].id


def test_a_waiting_run_that_is_cancelled_gives_back_nothing(engine: Engine, store_url: str) -> None:
    first, second, third = (start(engine, SERIAL) for _ in range(3))
    assert engine.runs.cancel(second.id).ok
    assert used(store_url) == {"run:repo": 1}
    assert third.holds == ["slot"]
    first.finish("plan", "work", "review")
    assert third.holds == []


def test_a_retried_run_waits_for_its_key_again(engine: Engine, store_url: str) -> None:
    first, second = start(engine, SERIAL), start(engine, SERIAL)
    first.break_for_good("plan")
    assert second.holds == []
    assert engine.runs.retry(first.id).ok
    assert (first.status, first.holds) == ("running", ["slot"])
    assert engine.work.claim("worker", count=9)[0].task.run_id == second.id
    assert engine.runs.cancel(second.id).ok
    assert first.holds == []
    assert used(store_url) == {"run:repo": 1}
    first.finish("plan", "work", "review")
    assert first.status == "completed"


def test_a_retried_run_goes_on_at_once_when_its_key_has_room(engine: Engine) -> None:
    run = start(engine, SERIAL)
    run.break_for_good("plan")
    assert engine.runs.retry(run.id).ok
    assert run.holds == []
    run.finish("plan", "work", "review")
    assert run.status == "completed"


def test_a_concurrency_key_lets_in_as_many_runs_as_its_limit(engine: Engine) -> None:
    runs = [start(engine, PAIRWISE) for _ in range(4)]
    assert [run.holds for run in runs] == [[], [], ["slot"], ["slot"]]
    runs[1].finish("only")
    assert [run.holds for run in runs] == [[], [], [], ["slot"]]


def test_runs_that_wait_get_all_the_room_that_a_higher_limit_made(
    engine: Engine, store_url: str
) -> None:
    one = Workflow.define("pairwise", (Step(id="only"),), concurrency=ONE)
    runs = [start(engine, one) for _ in range(4)]
    wider = Workflow.define(
        "pairwise", (Step(id="only"),), concurrency=Concurrency(key="repo", limit=4)
    )
    runs.append(start(engine, wider))
    engine.recovery.step()
    assert [run.holds for run in runs] == [[], [], [], [], ["slot"]]
    assert used(store_url) == {"run:repo": 4}


def test_a_key_of_tasks_and_a_key_of_runs_are_two_keys(engine: Engine) -> None:
    start(engine, SERIAL)
    create(engine, concurrency=ONE)
    assert len(engine.work.claim("worker", count=9)) == 2


def test_a_run_that_has_nothing_to_do_gives_its_place_back_at_once(
    engine: Engine, store_url: str
) -> None:
    unwanted = Step(id="only", when=Reference.parse("when", "input"))
    idle = Workflow.define("idle", (unwanted,), concurrency=ONE)
    assert [start(engine, idle, input=False).status for _ in range(2)] == ["completed"] * 2
    assert used(store_url) == {"run:repo": 0}
