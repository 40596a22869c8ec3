"""The statements of a claim keep every clause by themselves: what was peeked at may have changed.

Between the look at the queue and the claim another process may come. Each clause is put to the
statement alone, with a task that fails just that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from holdfast.model.workflow.graph import Concurrency
from holdfast.store.database import Row
from tests.contract.raw_store import Raw, raw
from tests.contract.single_statements import write
from tests.contract.task_states import bring, create, start, take

KEY = "task:key"
ONE = Concurrency(key="key", limit=1)
TWO = Concurrency(key="key", limit=2)
REQUEST: dict[str, Any] = {"tags": '["linux"]', "worker": "worker", "lease": 30_000_000}
HIDDEN = {"agent": "hidden"}
Arrange = Callable[[Engine, Raw], str]


@pytest.fixture
def hand(engine: Engine, store_url: str) -> Iterator[Raw]:
    assert engine.doctor().ok
    with raw(store_url) as connection:
        yield connection


def claim(engine: Engine, **changes: Any) -> set[str]:
    asked = {
        "agent": "default",
        "line": "[]",
        "count": 10,
        "keys": [KEY],
        "passed": [],
        "peeked": True,
        "bare": True,
        **REQUEST,
        **changes,
    }
    return write(engine, "claim_tasks", **asked)


def claim_by_id(engine: Engine, task_id: str) -> set[str]:
    return write(engine, "claim_task_by_id", task_id=task_id, agents=["default"], **REQUEST)


def blocked(engine: Engine, _: Raw) -> str:
    return create(engine, needs=(create(engine, **HIDDEN),))


def held(engine: Engine, _: Raw) -> str:
    task_id = create(engine)
    assert engine.tasks.hold(task_id, "question").ok
    return task_id


def held_by_its_run(engine: Engine, _: Raw) -> str:
    run = start(engine)
    assert engine.runs.pause(run.id).ok
    return run.steps["plan"]


def scheduled(engine: Engine, _: Raw) -> str:
    return create(engine, scheduled_for=engine.clock.now() + 1)


def for_another_agent(engine: Engine, _: Raw) -> str:
    return create(engine, **HIDDEN)


def with_another_tag(engine: Engine, _: Raw) -> str:
    return create(engine, tags=("linux", "gpu"))


def no_work(engine: Engine, hand: Raw) -> str:
    task_id = create(engine)
    hand("UPDATE holdfast_task SET kind = 'approval' WHERE id = ?", task_id)
    return task_id


def behind_a_full_key(engine: Engine, hand: Raw) -> str:
    # Another key has room to spare: it is not the one that counts.
    create(engine, concurrency=Concurrency(key="other", limit=9), **HIDDEN)
    take(engine, create(engine, concurrency=ONE))
    task_id = create(engine, concurrency=ONE)
    hand("UPDATE holdfast_task SET parked = false")
    return task_id


@pytest.mark.parametrize(
    "arrange",
    [
        blocked,
        held,
        held_by_its_run,
        scheduled,
        for_another_agent,
        with_another_tag,
        no_work,
        behind_a_full_key,
    ],
)
def test_a_task_that_fails_one_clause_is_claimed_neither_in_turn_nor_by_id(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    task_id = arrange(engine, hand)
    (row,) = hand("SELECT tags, bare FROM holdfast_task WHERE id = ?", task_id)
    assert claim(engine, line=row["tags"], bare=bool(row["bare"])) == set()
    assert claim_by_id(engine, task_id) == set()


def test_a_claim_takes_one_half_of_a_line_what_is_bare_or_what_is_not(engine: Engine) -> None:
    bare, named = create(engine), create(engine, step="pack")
    assert claim(engine, bare=False) == {named}
    assert claim(engine) == {bare}


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.QUEUED}))
def test_a_task_that_is_not_queued_is_not_claimed(engine: Engine, status: Status) -> None:
    task_id = bring(engine, status).task_id
    assert claim(engine) == set()
    assert claim_by_id(engine, task_id) == ({task_id} if status is Status.IDLE else set())


def test_a_task_whose_key_was_not_counted_on_is_left_for_the_next_claim(engine: Engine) -> None:
    free, keyed = create(engine), create(engine, concurrency=ONE)
    assert claim(engine, keys=[]) == {free}
    assert [each.task.id for each in engine.work.claim("worker")] == [keyed]


def test_a_parked_task_is_claimed_only_once_it_was_let_in(engine: Engine, hand: Raw) -> None:
    task_id = create(engine, concurrency=ONE)
    hand("UPDATE holdfast_task SET parked = true")
    assert claim(engine) == set()
    hand("UPDATE holdfast_task SET parked = false")
    assert [each.task_id for each in engine.work.claim("worker")] == [task_id]


def test_a_claim_from_one_line_takes_nobody_of_another(engine: Engine) -> None:
    tagged, free = create(engine, tags=("linux",)), create(engine)
    assert claim(engine) == {free}
    assert claim(engine, line='["linux"]') == {tagged}


def test_a_claim_without_a_peek_stops_at_a_task_with_tags_unless_the_task_is_bare(
    engine: Engine,
) -> None:
    create(engine, tags=("gpu",))
    tagged, free = create(engine, step="pack", tags=("gpu",)), create(engine, step="pack")
    unseen = {"keys": [], "peeked": False, "bare": False}
    assert claim(engine, **unseen) == set()
    assert engine.tasks.cancel(tagged).ok
    assert claim(engine, **unseen) == {free}


def test_no_more_of_a_key_are_claimed_at_once_than_it_has_room_for(engine: Engine) -> None:
    first, _, free = (create(engine, concurrency=limit) for limit in (ONE, ONE, None))
    claimed = engine.work.claim("worker", count=3)
    assert [each.task.id for each in claimed] == [first, free]


def test_a_full_key_does_not_stand_in_the_way_of_those_behind_it(engine: Engine, hand: Raw) -> None:
    behind_a_full_key(engine, hand)
    free = create(engine)
    assert claim(engine, count=1) == {free}


def test_a_claim_by_id_takes_no_other_task(engine: Engine, clock: ManualClock) -> None:
    create(engine)
    clock.advance(1)
    task_id = create(engine)
    assert claim_by_id(engine, task_id) == {task_id}


def counters(engine: Engine, query: str, *rows: tuple[str, int]) -> list[Row]:
    return engine.database.transact(lambda tx: tx.write(query, rows=rows))


def used(hand: Raw) -> dict[str, int]:
    return {row["key"]: row["used"] for row in hand("SELECT key, used FROM holdfast_slot")}


def test_a_counter_stays_between_nothing_and_its_capacity(engine: Engine, hand: Raw) -> None:
    two = Concurrency(key="other", limit=2)
    create(engine, concurrency=ONE, enqueue=False)
    create(engine, concurrency=two, enqueue=False)
    assert counters(engine, "free_slots", (KEY, 1)) == []
    assert counters(engine, "take_slots", (KEY, 2)) == []
    assert counters(engine, "take_slots", (KEY, 1)) == [{"key": KEY}]
    assert used(hand) == {KEY: 1, "task:other": 0}
    assert counters(engine, "take_slots", (KEY, 1)) == []
    assert counters(engine, "take_slots", ("task:other", 2)) == [{"key": "task:other"}]
    assert counters(engine, "free_slots", (KEY, 1)) == [{"key": KEY}]
    assert used(hand) == {KEY: 0, "task:other": 2}
    assert counters(engine, "free_slots", ("task:other", 2)) == [{"key": "task:other"}]


def parked(engine: Engine, hand: Raw) -> str:
    task_id = create(engine, concurrency=TWO)
    hand("UPDATE holdfast_task SET parked = true WHERE id = ?", task_id)
    return task_id


def running(engine: Engine, _: Raw) -> str:
    task_id = create(engine, concurrency=TWO)
    take(engine, task_id)
    return task_id


@pytest.mark.parametrize(
    "arrange",
    [blocked, held, held_by_its_run, scheduled, for_another_agent, no_work, running, parked],
)
def test_a_claim_without_a_peek_stops_only_at_keyed_tasks_that_could_run(
    engine: Engine, hand: Raw, arrange: Arrange
) -> None:
    task_id = arrange(engine, hand)
    hand("UPDATE holdfast_task SET concurrency_key = ?, bare = false WHERE id = ?", KEY, task_id)
    free = create(engine)
    assert claim(engine, keys=[], peeked=False) == {free}
    create(engine)
    create(engine, step="pack", concurrency=TWO)
    assert claim(engine, keys=[], peeked=False) == set()
