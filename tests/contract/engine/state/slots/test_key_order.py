"""Concurrency keys taken against their order: nobody waits there, one rather begins again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Concurrency
from holdfast.randomness import SeededRandomness

# Should anyone wait for the rival after all, the server lets go of it: the test fails, not hangs.
LET_GO = "SET idle_in_transaction_session_timeout = '20s'"
LOCK = "SELECT 1 FROM holdfast_slot WHERE key = 'task:a' FOR UPDATE"


class ClockThatFrees(ManualClock):
    """Whoever has to wait on it finds, when it looks again, that the rival has let go."""

    def __init__(self) -> None:
        super().__init__()
        self.rival: psycopg.Connection[Any] | None = None
        self.waits = 0

    def sleep(self, seconds: float) -> None:
        self.waits += 1
        if self.rival is not None:
            self.rival.rollback()
        super().sleep(seconds)


def performed(engine: Engine, *futures: Future[Any]) -> list[Any]:
    """The replies of what was asked for, all of it written as one group."""
    assert engine.commits.step() == len(futures)
    return [future.result(timeout=0) for future in futures]


@contextmanager
def with_b_running_and_a_ready(url: str, clock: ManualClock) -> Iterator[tuple[Engine, str, str]]:
    """An engine stepped by hand, the running task's id and token; one of key `a` is ready."""
    with closing(Engine(url, clock=clock, randomness=SeededRandomness(7))) as engine:
        keys = [NewTask(title=key, concurrency=Concurrency(key=key)) for key in "ba"]
        ((last, _),) = performed(engine, engine.tasks.create_many.submit(keys))
        ((running,),) = performed(engine, engine.work.claim_by_id.submit(last.id, "worker"))
        yield engine, last.id, running.token
        diagnosis = engine.doctor()
        assert diagnosis.ok, str(diagnosis)


def test_a_commit_frees_one_key_and_takes_another_that_sorts_before_it(store_url: str) -> None:
    with with_b_running_and_a_ready(store_url, ManualClock()) as (engine, task_id, token):
        complete = engine.work.complete.submit(task_id, token, "made")
        claim = engine.work.claim.submit("worker")
        ended, claimed = performed(engine, complete, claim)
        assert ended.ok
        assert [each.task.title for each in claimed] == ["a"]


def test_a_group_begins_again_while_another_process_holds_the_key_before(
    postgres_store_url: str,
) -> None:
    clock = ClockThatFrees()
    with (
        with_b_running_and_a_ready(postgres_store_url, clock) as (engine, task_id, token),
        psycopg.connect(postgres_store_url) as rival,
    ):
        rival.execute(LET_GO)
        rival.execute(LOCK)
        clock.rival = rival
        complete = engine.work.complete.submit(task_id, token, "made")
        claim = engine.work.claim.submit("worker")
        ended, claimed = performed(engine, complete, claim)
        assert clock.waits == 1
        assert (ended.ok, ended.repeated) == (True, False)
        assert [each.task.title for each in claimed] == ["a"]
