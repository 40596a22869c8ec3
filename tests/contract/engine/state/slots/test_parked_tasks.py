"""Tasks whose concurrency key is full stand in nobody's way, and come back when there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.state import slots
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Concurrency
from tests.contract.engine.guards import test_claims as clauses
from tests.contract.query_cost import cost_of
from tests.contract.raw_store import Raw, raw
from tests.contract.single_statements import keep
from tests.contract.task_states import bring, create, take

ONE, TWO = (Concurrency(key="key", limit=limit) for limit in (1, 2))
KEY = "task:key"
Arrange = Callable[[Engine, Raw], str]


@pytest.fixture
def hand(engine: Engine, store_url: str) -> Iterator[Raw]:
    assert engine.doctor().ok
    with raw(store_url) as connection:
        yield connection


def parked(hand: Raw) -> set[str]:
    return {row["id"] for row in hand("SELECT id FROM holdfast_task WHERE parked")}


def park(engine: Engine, *, count: int = 10) -> set[str]:
    return {row["id"] for row in keep(engine, "park_tasks", keys=[KEY], count=count)}


def unpark(engine: Engine, *, count: int = 10) -> set[str]:
    lines = [("default", "[]", half) for half in slots.BARE_AND_NOT]
    return {row["id"] for row in keep(engine, "unpark_tasks", key=KEY, count=count, rows=lines)}


def test_tasks_that_wait_for_a_full_key_are_parked_and_let_in_again_in_order(
    engine: Engine, hand: Raw
) -> None:
    tasks = [create(engine, concurrency=ONE) for _ in range(3)]
    (first,) = engine.work.claim("worker", count=10)
    assert parked(hand) == {*tasks[1:]}
    urgent = create(engine, concurrency=ONE, priority=1)
    assert parked(hand) == {*tasks[1:], urgent}
    assert engine.work.complete(first.task_id, first.token).ok
    assert [each.task_id for each in engine.work.claim("worker", count=10)] == [urgent]
    assert parked(hand) == {*tasks[1:]}


@pytest.mark.parametrize("ahead", [{"agent": "nobody"}, {"tags": ("gpu",)}], ids=["agent", "tags"])
def test_tasks_behind_tasks_that_no_worker_serves_are_let_in_with_them(
    engine: Engine, hand: Raw, ahead: dict[str, Any]
) -> None:
    running = take(engine, create(engine, concurrency=ONE))
    unserved = {create(engine, concurrency=ONE, priority=1, **ahead) for _ in range(3)}
    behind = {create(engine, concurrency=ONE) for _ in range(3)}
    assert parked(hand) == unserved | behind
    for _ in range(3):
        assert engine.work.complete(running.task_id, running.token).ok
        (running,) = engine.work.claim("worker", count=10)
        behind.remove(running.task_id)
        assert parked(hand) == unserved | behind


def test_tasks_with_a_function_are_let_in_beside_the_bare_tasks_that_workers_leave_alone(
    engine: Engine, hand: Raw
) -> None:
    running = take(engine, create(engine, concurrency=ONE))
    bare = {create(engine, concurrency=ONE, priority=1) for _ in range(3)}
    named = [create(engine, concurrency=ONE, step="pack") for _ in range(3)]
    for task_id in named:
        assert engine.work.complete(running.task_id, running.token).ok
        (running,) = engine.work.claim("worker", count=10, bare=False)
        assert running.task_id == task_id
    assert bare == parked(hand)
    assert engine.work.complete(running.task_id, running.token).ok
    assert {each.task_id for each in engine.work.claim("anyone", count=10)} < bare


def test_a_task_behind_tasks_whose_agent_is_at_its_limit_is_let_in_with_them(
    engine: Engine, hand: Raw
) -> None:
    reached = take(engine, create(engine, agent="limited"))
    running = take(engine, create(engine, concurrency=ONE))
    limited = [create(engine, agent="limited", concurrency=ONE, priority=1) for _ in range(3)]
    behind = create(engine, concurrency=ONE)
    assert engine.work.reach_limit(reached.task_id, reached.token, "1h").ok
    assert engine.work.complete(running.task_id, running.token).ok
    agents = ["limited", "default"]
    assert [each.task_id for each in engine.work.claim("w", agents=agents)] == [behind]
    assert parked(hand) == {*limited}


def test_an_end_lets_in_as_many_of_each_line_as_there_is_room_and_no_more(
    engine: Engine, hand: Raw
) -> None:
    first = take(engine, create(engine, concurrency=ONE))
    lines = [[create(engine, concurrency=ONE, agent=each) for _ in range(3)] for each in "ab"]
    assert engine.work.complete(first.task_id, first.token).ok
    assert parked(hand) == {each for line in lines for each in line[1:]}


def test_letting_a_parked_task_in_does_not_walk_through_the_other_parked_tasks(
    engine: Engine, store_url: str
) -> None:
    take(engine, create(engine, concurrency=ONE))
    create(engine, concurrency=ONE)
    create(engine, concurrency=ONE, agent="other")
    before = cost_of(store_url, "parked_lines", key=KEY)
    engine.tasks.create_many([NewTask(title="t", concurrency=ONE)] * 500)
    assert cost_of(store_url, "parked_lines", key=KEY) < before + 100


@pytest.mark.parametrize(
    "waiting", [{"concurrency": ONE}, {"tags": ("gpu",)}, {}], ids=["key", "tags", "bare"]
)
def test_a_claim_costs_no_more_for_those_it_cannot_take(
    engine: Engine, store_url: str, waiting: dict[str, Any]
) -> None:
    take(engine, create(engine, concurrency=ONE))
    create(engine, step="pack")
    create(engine, priority=1, **waiting)
    before = look(store_url)
    tasks = [NewTask(title=str(number), priority=1, **waiting) for number in range(500)]
    engine.tasks.create_many(tasks)
    assert look(store_url) < before + 100


def look(url: str) -> int:
    """What it costs to see which task a worker without tags gets next, who takes no bare ones."""
    lines = cost_of(url, "lines", agents='["default"]', tags="[]")
    return lines + cost_of(
        url, "peek_tasks", agent="default", line="[]", tags="[]", count=1, bare=False
    )


def test_a_step_that_gets_its_turn_under_a_full_key_leaves_the_line(
    engine: Engine, hand: Raw
) -> None:
    need = create(engine)
    waiting = create(engine, needs=(need,), concurrency=ONE)
    take(engine, create(engine, concurrency=ONE))
    assert parked(hand) == set()
    assert engine.work.complete(need, take(engine, need).token).ok
    assert parked(hand) == {waiting}


def test_a_parked_task_held_while_there_was_room_is_let_in_when_its_hold_is_lifted(
    engine: Engine, hand: Raw
) -> None:
    first, second = (create(engine, concurrency=ONE) for _ in range(2))
    token = take(engine, first).token
    assert parked(hand) == {second}
    assert engine.tasks.hold(second, "question").ok
    assert engine.work.complete(first, token).ok
    assert engine.work.claim("worker") == []
    assert parked(hand) == {second}
    assert engine.tasks.unhold(second, "question").ok
    assert parked(hand) == set()
    assert [each.task_id for each in engine.work.claim("worker")] == [second]


def test_a_key_with_a_higher_limit_lets_more_in(engine: Engine) -> None:
    first, second = (create(engine, concurrency=ONE) for _ in range(2))
    take(engine, first)
    create(engine, concurrency=TWO, agent="other")
    engine.recovery.step()
    assert [each.task_id for each in engine.work.claim("worker")] == [second]


def test_a_parked_task_that_is_claimed_by_its_id_is_no_longer_parked(
    engine: Engine, hand: Raw
) -> None:
    first, second = (create(engine, concurrency=ONE) for _ in range(2))
    hand("UPDATE holdfast_task SET parked = true WHERE id = ?", second)
    take(engine, second)
    assert parked(hand) == {first}


def test_tasks_that_one_commit_leaves_unparked_are_parked_by_the_next_commits(
    engine: Engine, hand: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "WITHDRAWN_AT_ONCE", 2)
    first, *_ = (create(engine, concurrency=ONE) for _ in range(6))
    take(engine, first)
    assert len(parked(hand)) == 2
    for count in (4, 5, 5):
        create(engine)
        assert len(parked(hand)) == count


def test_tasks_are_parked_and_let_in_only_up_to_the_count_asked_for(
    engine: Engine, hand: Raw
) -> None:
    tasks = [create(engine, concurrency=ONE) for _ in range(4)]
    hand("UPDATE holdfast_slot SET used = 1")
    assert len(park(engine, count=3)) == 3
    assert park(engine) | parked(hand) == set(tasks)
    assert park(engine) == set()
    hand("UPDATE holdfast_slot SET used = 0")
    assert unpark(engine, count=2) == {*tasks[:2]}
    assert unpark(engine) == {*tasks[2:]}
    assert unpark(engine) == set()


def test_only_tasks_of_the_named_line_are_let_in(engine: Engine, hand: Raw) -> None:
    task_id = create(engine, concurrency=ONE)
    others = {
        create(engine, concurrency=ONE, agent="other"),
        create(engine, concurrency=ONE, tags=("gpu",)),
    }
    hand("UPDATE holdfast_task SET parked = true")
    assert unpark(engine) == {task_id}
    assert parked(hand) == others


@pytest.mark.parametrize(
    "arrange",
    [clauses.blocked, clauses.held, clauses.held_by_its_run, clauses.scheduled, clauses.no_work],
)
def test_only_a_ready_task_is_parked_and_let_in(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    create(engine, concurrency=ONE, agent="hidden")
    task_id = arrange(engine, hand)
    hand("UPDATE holdfast_task SET concurrency_key = NULL WHERE agent = 'hidden'")
    hand("UPDATE holdfast_task SET concurrency_key = ? WHERE id = ?", KEY, task_id)
    hand("UPDATE holdfast_slot SET used = 1")
    assert park(engine) == set()
    hand("UPDATE holdfast_slot SET used = 0")
    hand("UPDATE holdfast_task SET parked = true WHERE id = ?", task_id)
    assert unpark(engine) == set()


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.QUEUED}))
def test_only_a_queued_task_is_parked_and_let_in(engine: Engine, hand: Raw, status: Status) -> None:
    create(engine, concurrency=ONE, agent="hidden", enqueue=False)
    task_id = bring(engine, status).task_id
    hand("UPDATE holdfast_task SET concurrency_key = ? WHERE id = ?", KEY, task_id)
    hand("UPDATE holdfast_slot SET used = 1")
    assert park(engine) == set()
    hand("UPDATE holdfast_slot SET used = 0")
    hand("UPDATE holdfast_task SET parked = true WHERE id = ?", task_id)
    assert unpark(engine) == set()
    hand("UPDATE holdfast_task SET concurrency_key = NULL")


def test_a_key_with_room_parks_nobody_and_a_full_one_lets_nobody_in(
    engine: Engine, hand: Raw
) -> None:
    other = create(engine, concurrency=Concurrency(key="other"))
    task_id = create(engine, concurrency=ONE)
    hand("UPDATE holdfast_slot SET used = 1 WHERE key = 'task:other'")
    assert park(engine) == set()
    hand("UPDATE holdfast_task SET parked = true")
    hand("UPDATE holdfast_slot SET used = 1 - used")
    assert unpark(engine) == set()
    hand("UPDATE holdfast_slot SET used = 0")
    assert unpark(engine) == {task_id}
    assert parked(hand) == {other}


def test_a_parked_task_is_not_offered(engine: Engine) -> None:
    take(engine, create(engine, concurrency=ONE))
    create(engine, concurrency=ONE, priority=1)
    free = create(engine)
    asked: dict[str, Any] = {"agents": ["default"], "count": 10}
    offered = engine.database.view(lambda tx: tx.read("ready_tasks", **asked))
    assert [row["id"] for row in offered] == [free]


@pytest.mark.parametrize("way", ["retry", "reopen", "reset"])
def test_a_task_that_ended_while_parked_comes_back_unparked(
    engine: Engine, hand: Raw, way: str
) -> None:
    tasks = [create(engine, concurrency=ONE) for _ in range(2)]
    (first,) = engine.work.claim("worker", count=10)
    assert parked(hand) == {tasks[1]}
    assert engine.tasks.cancel(tasks[1]).ok
    assert engine.work.complete(first.task_id, first.token).ok
    assert getattr(engine.tasks, way)(tasks[1]).ok
    assert parked(hand) == set()
    assert way != "reset" or engine.tasks.enqueue(tasks[1]).ok
    assert [each.task_id for each in engine.work.claim("worker")] == [tasks[1]]
