"""What is rehearsed is done as it would be, and then it has never been."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from holdfast.clock import SystemClock
from holdfast.engine.engine import Engine
from holdfast.engine.writer.dry_run import DryRun
from holdfast.errors import StoreBusy, StoreUnreachable, WrongThread
from holdfast.model.run import NewRun
from holdfast.service.commands.previews import Preview, Previews
from holdfast.settings import Settings
from holdfast.store.database import is_postgresql
from holdfast.store.notifiers.postgresql import CHANNEL
from tests.contract.engine.claims.test_standing_claims import Hand
from tests.contract.raw_store import dump
from tests.contract.task_states import CHAIN, FORK, MISSING_TASK, create, start, take
from tests.engines import opened
from tests.race.racers import eventually


def test_a_rehearsed_change_is_seen_inside_the_rehearsal_and_nowhere_else(
    engine: Engine, store_url: str
) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    run.take("left")
    before = dump(store_url)

    def work(rehearsal: DryRun) -> list[str]:
        assert rehearsal.joined.runs.cancel(run.id).ok
        (row,) = rehearsal.tx.read("run_by_id", run_id=run.id)
        assert (row["status"], run.status) == ("cancelled", "running")
        return rehearsal.tx.take_changed()

    changed = engine.rehearse(work)
    assert set(changed) == {run.id, *(run.steps[step] for step in ("left", "right", "join"))}
    assert dump(store_url) == before


def test_a_rehearsal_sends_no_hints_and_hands_out_no_work(engine: Engine) -> None:
    running = create(engine)
    take(engine, running)
    hand = Hand(engine, room=2)
    heard: list[str] = []
    engine.on_hint(lambda: heard.append("hint"))
    engine.on_commit(lambda: heard.append("commit"))
    engine.on_end(heard.extend)
    engine.on_attempts_ended(lambda left: heard.extend(task for task, _ in left))

    def work(rehearsal: DryRun) -> None:
        assert rehearsal.joined.tasks.cancel(running).ok
        assert rehearsal.joined.tasks.retry(running).ok
        assert rehearsal.joined.runs.start(NewRun(workflow=CHAIN)).created

    engine.rehearse(work)
    assert (heard, hand.held) == ([], [])
    hand.let_go()


def test_a_key_is_free_as_before(engine: Engine) -> None:
    def work(rehearsal: DryRun) -> bool:
        return rehearsal.joined.runs.start(NewRun(workflow=CHAIN, key="once")).created

    assert engine.rehearse(work)
    assert engine.rehearse(work)
    assert engine.runs.start(NewRun(workflow=FORK, key="once")).created


def test_an_error_in_a_rehearsal_leaves_nothing_behind(engine: Engine, store_url: str) -> None:
    lone = create(engine)
    before = dump(store_url)

    def work(rehearsal: DryRun) -> None:
        assert rehearsal.joined.tasks.cancel(lone).ok
        raise KeyError(lone)

    for _ in range(3):
        with pytest.raises(KeyError):
            engine.rehearse(work)
    assert dump(store_url) == before
    assert engine.tasks.cancel(lone).ok


def test_a_rehearsal_sends_no_hint_to_other_processes(postgres_store_url: str) -> None:
    with (
        opened(postgres_store_url) as engine,
        psycopg.connect(postgres_store_url, autocommit=True) as listener,
    ):
        lone = create(engine)
        listener.execute(f"LISTEN {CHANNEL}")
        engine.rehearse(lambda rehearsal: rehearsal.joined.tasks.cancel(lone))
        listener.execute("SELECT pg_notify(%s, 'last')", (CHANNEL,))
        (first,) = listener.notifies(stop_after=1)
        assert first.payload == "last"


@pytest.fixture
def hasty(store_url: str) -> Iterator[Engine]:
    settings = Settings(url=store_url, patience=0.2, lease=3.0, renewal=1.0)
    with opened(store_url, clock=SystemClock(), settings=settings) as engine:
        yield engine


def test_a_rehearsal_waits_for_another_transaction_only_as_long_as_a_real_change(
    hasty: Engine, store_url: str
) -> None:
    lone = create(hasty)
    away = StoreBusy if is_postgresql(store_url) else StoreUnreachable
    with (
        opened(store_url, clock=SystemClock()) as other,
        ThreadPoolExecutor(1) as elsewhere,
        other.transaction() as connection,
    ):
        assert other.join(connection).tasks.cancel(lone).ok
        asked = elsewhere.submit(hasty.rehearse, lambda inside: inside.joined.tasks.cancel(lone))
        with pytest.raises(away):
            asked.result()
    assert hasty.tasks.get(lone).status == "cancelled"


def test_a_rehearsal_inside_an_open_transaction_of_its_thread_is_refused(sqlite_url: str) -> None:
    with opened(sqlite_url) as engine, engine.transaction(), pytest.raises(WrongThread):
        engine.rehearse(lambda rehearsal: rehearsal.joined.tasks.cancel(MISSING_TASK))


def test_a_dry_run_of_several_locks_them_in_the_order_of_their_ids(postgres_store_url: str) -> None:
    """Whatever order they are named in: two of them would wait for each other else."""
    with opened(postgres_store_url) as engine, psycopg.connect(postgres_store_url) as other:
        first, second = create(engine), create(engine)
        other.execute("SELECT id FROM holdfast_task WHERE id = %s FOR UPDATE", (first,))
        told = ThreadPoolExecutor(1).submit(Previews(engine).preview_each, "pause", [second, first])
        with psycopg.connect(postgres_store_url, autocommit=True) as beside:
            assert eventually(lambda: is_waited(beside))
            free = "SELECT id FROM holdfast_task WHERE id = %s FOR UPDATE NOWAIT"
            assert beside.execute(free, (second,)).fetchone() == (second,)
        other.rollback()
        assert [len(each.tasks) for each in told.result(30) if isinstance(each, Preview)] == [1, 1]


def is_waited(connection: psycopg.Connection[Any]) -> bool:
    return connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is not None


def test_each_resume_of_a_dry_run_finds_the_holds_that_those_before_it_have_left(
    engine: Engine,
) -> None:
    task = create(engine)
    for reason in ("paused", "version"):
        assert engine.tasks.hold(task, reason).ok
    told = Previews(engine).preview_each("resume", [task, task])
    assert [
        [row["becomes"] for row in each.tasks] for each in told if isinstance(each, Preview)
    ] == [
        ["held"],
        ["ready"],
    ]
