"""A claim that is asked for again: the same tasks, whoever served it, and never more."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from holdfast.clock import ManualClock, SystemClock
from holdfast.engine.claims.claim_requests import KEPT_REQUESTS
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.engine import Engine
from holdfast.model.task import Assignment, Renewal
from tests.contract.raw_store import count_rows, raw
from tests.contract.single_statements import keep
from tests.contract.task_states import create, start
from tests.engines import opened
from tests.race.racers import eventually


def test_the_same_request_gives_the_same_tasks_with_all_they_need(engine: Engine) -> None:
    run = start(engine)
    run.finish("plan")
    (first,) = engine.work.claim("w", request="r1")
    (again,) = engine.work.claim("w", request="r1")
    assert (again.task, again.token, again.needs) == (first.task, first.token, first.needs)
    assert again.needs == {"plan": "plan output"}
    assert engine.work.claim("w", request="r2") == []


def test_the_same_request_gives_a_whole_lease_of_what_is_held_and_nothing_of_what_is_not(
    engine: Engine, clock: ManualClock
) -> None:
    task_id, other = create(engine), create(engine)
    first, second = engine.work.claim("w", count=2, lease=10, request="r1")
    assert engine.work.renew([_renewal(first)], lease=20)[0].ok
    clock.advance(15)
    (again,) = engine.work.claim("w", lease=30, request="r1")
    assert (again.task_id, again.token) == (task_id, first.token)
    assert again.expires_at == first.expires_at + timedelta(seconds=35)
    assert engine.tasks.get(other).lease == second.task.lease
    clock.advance(30)
    assert engine.work.claim("w", request="r1") == []
    assert engine.work.claim_by_id(task_id, "w", request="r1") == []


def test_a_claim_by_id_asked_for_again_gives_the_same_attempt_until_that_is_over(
    engine: Engine,
) -> None:
    task_id = create(engine)
    (first,) = engine.work.claim_by_id(task_id, "w", request="r1")
    (again,) = engine.work.claim_by_id(task_id, "w", request="r1")
    assert again.token == first.token
    assert engine.work.release(task_id, first.token).ok
    assert engine.work.claim_by_id(task_id, "w", request="r1") == []
    (next_one,) = engine.work.claim_by_id(task_id, "w", request="r2")
    assert next_one.attempt == 2
    # Not what the first request was given: that was another attempt.
    assert engine.work.claim_by_id(task_id, "w", lease=99, request="r1") == []
    assert engine.tasks.get(task_id).lease == next_one.task.lease


def test_a_request_that_got_nothing_may_get_something_the_next_time(engine: Engine) -> None:
    assert engine.work.claim("w", request="r1") == []
    create(engine)
    assert len(engine.work.claim("w", request="r1")) == 1


def test_a_request_is_remembered_beside_later_ones(engine: Engine) -> None:
    create(engine)
    create(engine)
    (first,) = engine.work.claim("w", request="r1")
    (second,) = engine.work.claim("w", request="r2")
    again = [*engine.work.claim("w", request="r1"), *engine.work.claim("w", request="r2")]
    assert [each.token for each in again] == [first.token, second.token]


def test_a_second_record_of_a_request_is_not_kept(engine: Engine) -> None:
    kept = [keep(engine, "keep_pulls", rows=[("r1", taken)]) for taken in ("[]", "[1]")]
    assert [[row["request"] for row in rows] for rows in kept] == [["r1"], []]


def test_requests_of_long_ago_are_forgotten(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    for number in range(2):
        create(engine)
        assert engine.work.claim("w", lease=1e6, request=f"r{number}") != []
        assert count_rows(store_url)["holdfast_pull"] == 1
        clock.advance(KEPT_REQUESTS / 1_000_000 + 1)


def test_a_request_that_another_process_serves_meanwhile_is_served_once(
    engine: Engine, store_url: str
) -> None:
    theirs, mine = create(engine), create(engine)
    (held,) = engine.work.claim_by_id(theirs, "w")
    taken = json.dumps([[theirs, held.attempt]])
    with raw(store_url) as ask, ThreadPoolExecutor() as pool:
        ask("BEGIN")
        ask("INSERT INTO holdfast_pull (request, taken, asked_at) VALUES ('r1', ?, 1)", taken)
        if not ask.postgresql:
            ask("COMMIT")
        claiming = pool.submit(engine.work.claim, "w", request="r1")
        if ask.postgresql:
            assert eventually(lambda: waits(store_url))
            ask("COMMIT")
        (given,) = claiming.result(30)
    assert given.token == held.token
    assert engine.tasks.get(mine).status == "queued"


def test_a_claim_asked_for_again_waits_for_a_change_by_another_process_and_gives_it(
    postgres_store_url: str,
) -> None:
    url = postgres_store_url
    with opened(url, clock=SystemClock()) as engine, raw(url) as ask, ThreadPoolExecutor() as pool:
        task_id = create(engine)
        (first,) = engine.work.claim("w", request="r1")
        ask("BEGIN")
        ask("UPDATE holdfast_task SET progress = '1' WHERE id = ?", task_id)
        claiming = pool.submit(engine.work.claim, "w", request="r1")
        with pytest.raises(TimeoutError):
            claiming.result(0.3)
        ask("COMMIT")
        (again,) = claiming.result(30)
    assert (again.token, again.task.progress) == (first.token, 1)


def _renewal(each: Assignment) -> Renewal:
    return Renewal(task_id=each.task_id, token=each.token)


def waits(url: str) -> bool:
    with raw(url) as look:
        found = look("SELECT 1 FROM pg_locks WHERE NOT granted")
    return bool(found)


class Standing:
    """Takes one task, and no more."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.got = 0
        self.standing_claim = engine.work.standing_claim(
            name,
            agents=["default"],
            tags=[],
            room=lambda: 1 - self.got,
            passing=tuple,
            deliver=self._deliver,
        )

    def _deliver(self, claimed: Claimed) -> None:
        self.got += len(claimed)


def test_standing_claims_of_one_kind_are_served_as_far_as_there_are_tasks(
    engine: Engine,
) -> None:
    standing = [Standing(engine, f"w{number}") for number in range(50)]
    leaves = [engine.work.add_standing_claim(each.standing_claim) for each in standing]
    create(engine)
    create(engine)
    assert [each.got for each in standing] == [1, 1] + [0] * 48
    for leave in leaves:
        leave()
