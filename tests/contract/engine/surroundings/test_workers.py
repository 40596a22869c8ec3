"""Workers as the store knows them: who lives, what they are told, what was stopped with them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine, engine_of
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice
from holdfast.model.moment import to_datetime
from holdfast.model.text import MAX_NAME
from holdfast.model.workflow.declarations import StepWork
from tests.acceptance.worker.watched_attempt import alive
from tests.contract.advised import advised
from tests.contract.raw_store import count_rows
from tests.contract.single_statements import keep
from tests.contract.task_states import NOT_GENUINE, create, take
from tests.contract.worker.file_steps import file_steps
from tests.race.racers import eventually

DAY = 86_400
LEASE = 30


def begin(engine: Engine, name: str = "anna") -> int:
    row = engine.workers.register(name, agents=["writer"], tags=["gpu"], concurrency=3)
    assert row is not None
    return int(row["started_at"])


def names(engine: Engine) -> list[str]:
    return [each.name for each in engine.workers.list()]


def test_a_worker_is_known_with_what_it_offers(engine: Engine, clock: ManualClock) -> None:
    begin(engine)
    (found,) = engine.workers.list()
    assert (found.name, found.agents, found.tags) == ("anna", ("writer",), ("gpu",))
    assert (found.concurrency, found.told) == (3, None)
    assert found.started_at == found.seen_at == to_datetime(clock.now())
    assert found.expires_at == to_datetime(clock.now() + LEASE * MICROSECONDS)


def test_a_worker_lives_as_long_as_it_says_so(engine: Engine, clock: ManualClock) -> None:
    anna, _ = begin(engine), begin(engine, "ben")
    clock.advance(LEASE - 1)
    assert engine.workers.announce("anna", anna) == {"told": None}
    clock.advance(1)
    assert names(engine) == ["anna"]
    clock.advance(LEASE - 1)
    assert names(engine) == []
    assert engine.workers.announce("anna", anna) == {"told": None}
    assert names(engine) == ["anna"]


def test_a_name_is_taken_while_somebody_lives_under_it(engine: Engine, clock: ManualClock) -> None:
    begin(engine)
    begin(engine, "ben")
    assert engine.workers.drain("anna").ok
    clock.advance(LEASE - 1)
    assert engine.workers.register("anna", agents=["other"]) is None
    assert engine.workers.list()[0].agents == ("writer",)
    clock.advance(1)
    assert engine.workers.register("anna", agents=["other"]) is not None
    (found,) = engine.workers.list()
    assert (found.agents, found.tags, found.concurrency, found.told) == (("other",), (), 1, None)


def test_a_replaced_worker_neither_speaks_for_its_successor_nor_takes_it_along(
    engine: Engine, clock: ManualClock
) -> None:
    before = begin(engine)
    clock.advance(LEASE)
    now = begin(engine)
    clock.advance(1)
    assert engine.workers.announce("anna", before) is None
    assert not engine.workers.forget("anna", before).ok
    assert engine.workers.list()[0].seen_at == to_datetime(now)
    assert engine.workers.forget("anna", now).ok
    assert names(engine) == []


def test_only_the_named_worker_leaves_or_is_told(engine: Engine) -> None:
    anna, ben = begin(engine), begin(engine, "ben")
    assert anna == ben
    assert engine.workers.evict("anna").ok
    assert engine.workers.announce("anna", anna) == {"told": "evict"}
    assert engine.workers.announce("ben", ben) == {"told": None}
    assert [each.told for each in engine.workers.list()] == ["evict", None]
    assert engine.workers.forget("anna", anna).ok
    assert names(engine) == ["ben"]


def test_a_worker_that_is_not_there_cannot_be_drained(engine: Engine, clock: ManualClock) -> None:
    begin(engine)
    refused = engine.workers.drain("ben")
    assert (refused.ok, refused.reason) == (False, "not_found")
    assert advised(refused) == [Advice(Action.LIST_WORKERS)]
    clock.advance(LEASE)
    assert not engine.workers.drain("anna").ok


def test_a_worker_that_vanished_is_forgotten_after_a_day(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    begin(engine)
    clock.advance(LEASE + DAY)
    begin(engine, "ben")
    assert count_rows(store_url)["holdfast_worker"] == 2
    clock.advance(0.000_001)
    begin(engine, "clara")
    assert count_rows(store_url)["holdfast_worker"] == 2
    assert names(engine) == ["ben", "clara"]


def test_a_worker_with_a_bad_name_concurrency_or_agents_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="name"):
        engine.workers.register("a b", agents=["default"])
    with pytest.raises(InvalidInput, match="concurrency"):
        engine.workers.register("anna", agents=["default"], concurrency=0)
    with pytest.raises(InvalidInput, match="agents"):
        engine.workers.register("anna", agents=[])


def test_an_attempt_says_what_was_stopped_with_it_once_and_whatever_became_of_it(
    engine: Engine, clock: ManualClock
) -> None:
    task_id = create(engine)
    first = take(engine, task_id)
    assert engine.tasks.cancel(task_id).ok
    assert engine.tasks.retry(task_id).ok
    clock.advance(2)
    take(engine, task_id)
    assert engine.workers.note_stop(task_id, first.token, ended=4, left=1).ok
    assert not engine.workers.note_stop(task_id, first.token, ended=5).ok
    assert not engine.workers.note_stop(task_id, NOT_GENUINE, ended=5).ok
    attempts = engine.tasks.attempts(task_id)
    assert [(each.stopped_at, each.stopped, each.left) for each in attempts] == [
        (to_datetime(clock.now()), 4, 1),
        (None, 0, 0),
    ]


@pytest.mark.parametrize("fence", [0, 2])
def test_a_stop_is_noted_only_for_an_attempt_that_the_task_has_had(
    engine: Engine, fence: int
) -> None:
    task_id = create(engine)
    take(engine, task_id)
    assert keep(engine, "note_stops", rows=[(task_id, fence, 1, 0)]) == []
    assert keep(engine, "note_stops", rows=[(task_id, 1, 1, 0)]) != []


def test_a_worker_says_that_it_lives_until_it_has_stopped(store_url: str) -> None:
    with Holdfast(store_url, renewal=0.05) as hf:
        with hf.worker(name="anna", agents=["writer"], concurrency=2):
            (first,) = hf.workers.list()
            assert eventually(lambda: hf.workers.list()[0].seen_at > first.seen_at)
        assert eventually(lambda: names(engine_of(hf)) == [])


def test_a_second_worker_of_a_name_is_listed_and_told_under_one_of_its_own_and_says_so(
    store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Holdfast(store_url, renewal=0.05) as hf, hf.worker(name="anna") as first:
        with hf.worker(name="anna", agents=["writer"]) as second:
            assert "another worker named anna lives" in caplog.text
            assert "this one is called anna-2" in caplog.text
            listed = {each.name: each.agents for each in hf.workers.list()}
            assert listed == {"anna": ("default",), "anna-2": ("writer",)}
            assert hf.workers.drain("anna-2").ok
            assert eventually(lambda: second.stopping)
            assert not first.stopping
        assert eventually(lambda: names(engine_of(hf)) == ["anna"])


def test_a_second_worker_of_the_longest_name_there_may_be_is_listed_too(sqlite_url: str) -> None:
    name = "n" * MAX_NAME
    with Holdfast(sqlite_url) as hf, hf.worker(name=name), hf.worker(name=name):
        assert names(engine_of(hf)) == [f"{name[:-2]}-2", name]


def test_a_drained_worker_finishes_what_it_runs_and_claims_nothing_more(store_url: str) -> None:
    with Holdfast(store_url, renewal=0.05, poll=0.05) as hf:
        began, free = threading.Event(), threading.Event()

        @hf.task
        def job() -> str:
            began.set()
            assert free.wait(20)
            return "done"

        with hf.worker(name="anna", concurrency=1) as worker:
            running, waiting = job.enqueue(), job.enqueue()
            assert began.wait(20)
            assert hf.workers.drain("anna").ok
            assert eventually(lambda: worker.stopping)
            free.set()
            assert running.result(20) == "done"
        assert hf.tasks.get(waiting.id).attempt == 0


def test_an_evicted_worker_gives_back_what_it_can_stop(store_url: str, tmp_path: Path) -> None:
    with file_steps(store_url, tmp_path, renewal=0.05, poll=0.05) as steps:
        task_id = steps.enqueue(StepWork(command=("sh", "-c", "echo $$; exec sleep 1000")))
        log = steps.state.log(task_id, 1).path
        assert eventually(lambda: log.exists() and log.read_text() != "")
        (name,) = names(engine_of(steps.hf))
        assert steps.hf.workers.evict(name).ok
        assert eventually(lambda: steps.idle)
        assert alive([int(log.read_text().split()[0])]) == []
        (attempt,) = steps.hf.tasks.attempts(task_id)
        assert (attempt.outcome, attempt.stopped, attempt.left) == ("released", 1, 0)
