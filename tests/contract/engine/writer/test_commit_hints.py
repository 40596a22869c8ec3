"""What other processes are told of a commit: of what they could take, and of what has ended."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.operation import Sweep
from holdfast.engine.engine import Engine
from holdfast.engine.writer.writer import HINT_INTERVAL
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask
from holdfast.store.notifiers.postgresql import CHANNEL
from tests.contract.engine.claims.test_standing_claims import Hand
from tests.contract.task_states import CHAIN
from tests.engines import healthy

PATIENCE = 20.0
LAST = "all before this was said"


class Others:
    """Another process that listens."""

    def __init__(self, engine: Engine, connection: psycopg.Connection) -> None:
        self._engine = engine
        self._connection = connection
        connection.execute(f"LISTEN {CHANNEL}")

    def hear_of_a_commit(self) -> bool:
        """Have what waits be written; whether a hint came of it."""
        self._engine.commits.step()
        # Hints come in the order of their commits, so that what was said before this is there.
        self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, LAST))
        heard = []
        while LAST not in heard:
            heard += [each.payload for each in self._connection.notifies(stop_after=1)]
        return len(heard) > 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def quiet(postgres_store_url: str, clock: ManualClock) -> Iterator[Engine]:
    engine = Engine(postgres_store_url, clock=clock)
    with healthy(engine):
        yield engine


@pytest.fixture
def others(postgres_store_url: str, quiet: Engine) -> Iterator[Others]:
    with psycopg.connect(postgres_store_url, autocommit=True) as connection:
        yield Others(quiet, connection)


def test_a_task_made_ready_and_taken_by_one_commit_wakes_no_other_process(
    quiet: Engine, others: Others
) -> None:
    hand = Hand(quiet, room=1)
    quiet.runs.start.submit(NewRun(workflow=CHAIN))
    assert others.hear_of_a_commit()
    hand.complete()
    assert not others.hear_of_a_commit()
    assert hand.titles == ["work"]


def test_other_processes_hear_of_the_progress_of_a_run_now_and_then(
    quiet: Engine, others: Others, clock: ManualClock
) -> None:
    hand = Hand(quiet, room=1)
    quiet.runs.start.submit(NewRun(workflow=CHAIN))
    assert others.hear_of_a_commit()
    hand.complete()
    clock.advance(HINT_INTERVAL)
    assert others.hear_of_a_commit()


def test_a_task_that_stays_ready_wakes_other_processes(quiet: Engine, others: Others) -> None:
    hand = Hand(quiet, room=1)
    quiet.tasks.create.submit(NewTask(title="one"))
    assert others.hear_of_a_commit()
    quiet.tasks.create.submit(NewTask(title="two"))
    assert others.hear_of_a_commit()
    assert hand.titles == ["one"]


def test_the_end_of_a_run_is_told_at_once(quiet: Engine, others: Others) -> None:
    hand = Hand(quiet, room=1)
    quiet.runs.start.submit(NewRun(workflow=CHAIN))
    others.hear_of_a_commit()
    for _ in range(2):
        hand.complete()
        assert not others.hear_of_a_commit()
    hand.complete()
    assert others.hear_of_a_commit()


def test_a_step_that_others_were_not_told_of_is_told_by_a_sweep_a_little_later(
    quiet: Engine, others: Others, clock: ManualClock
) -> None:
    hand = Hand(quiet, room=1)
    quiet.runs.start.submit(NewRun(workflow=CHAIN))
    others.hear_of_a_commit()
    assert quiet.recovery.step() > HINT_INTERVAL
    hand.complete()
    assert not others.hear_of_a_commit()
    assert quiet.recovery.step() <= HINT_INTERVAL
    quiet.commits.submit(Sweep())
    assert not others.hear_of_a_commit()
    clock.advance(HINT_INTERVAL)
    quiet.commits.submit(Sweep())
    assert others.hear_of_a_commit()
    quiet.commits.submit(Sweep())
    clock.advance(HINT_INTERVAL)
    assert not others.hear_of_a_commit()
