"""A finished result is not thrown away because the store was away just then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from holdfast import (
    AsyncContext,
    InvalidInput,
    Settings,
    ShuttingDown,
    StoreUnreachable,
    UnknownOutcome,
)
from holdfast.engine.core.operation import Release
from holdfast.model.result import TransitionResult
from holdfast.store.database import is_postgresql
from holdfast.worker.attempt.execution import ReportAnswer, ReportEntry
from holdfast.worker.attempt.step_context import StepContext
from holdfast.worker.pool.worker import StoreWorker
from holdfast.worker.pool.worker_options import WorkerOptions
from tests.contract.postgresql_proxy import proxied
from tests.contract.raw_store import raw
from tests.contract.task_states import create
from tests.contract.worker.function_workers import OneFunction, started

PATIENCE = 30
Away = Callable[[], AbstractContextManager[None]]
DONE = TransitionResult(ok=True)
REPORT = Release(task_id="t_1", fence=1)


@contextmanager
def absent(url: str) -> Iterator[tuple[str, Away]]:
    """A URL of the store, and a way to make it unreachable there for a while."""
    if is_postgresql(url):
        with proxied(url) as proxy:

            @contextmanager
            def cut_off() -> Iterator[None]:
                proxy.sever()
                yield
                proxy.admit()

            yield proxy.url, cut_off
        return

    @contextmanager
    def locked() -> Iterator[None]:
        with raw(url) as rival:
            rival("BEGIN IMMEDIATE")
            yield

    yield url, locked


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_report_is_sent_again_until_the_store_is_back(store_url: str, kind: str) -> None:
    began, go_on = threading.Event(), threading.Event()

    def plain(ctx: StepContext) -> int:
        began.set()
        assert go_on.wait(PATIENCE)
        return ctx.attempt

    async def coroutine(ctx: AsyncContext) -> int:
        return plain(ctx)

    functions = OneFunction(plain if kind == "plain" else coroutine)
    with absent(store_url) as (url, away):
        settings = Settings(url=url, patience=0.2, lease=600, renewal=300)
        with started(url, settings=settings) as engine:
            task_id = create(engine)
            with StoreWorker(engine, functions, WorkerOptions(concurrency=1)):
                assert began.wait(PATIENCE)
                with away():
                    go_on.set()
                    assert functions.returned.wait(PATIENCE)
                    for _ in range(3):
                        with pytest.raises((StoreUnreachable, UnknownOutcome)):
                            create(engine)
                ended = engine.outcomes.wait(task_id).result(PATIENCE)
            assert (ended["status"], ended["output"]) == ("done", "1")
            assert [each.outcome for each in engine.tasks.attempts(task_id)] == ["completed"]


class Line:
    """A way to the store that gives the answers a test has laid ready."""

    def __init__(self, *answers: ReportAnswer) -> None:
        self._answers = list(answers)
        self._heard: list[ReportAnswer] = []
        self.sent = 0

    def send(self, entry: ReportEntry) -> None:
        self.sent += 1
        answer = self._answers.pop(0)
        if isinstance(answer, ShuttingDown):
            raise answer
        entry.on_reply(answer)

    def in_time(self) -> bool:
        return self._may()

    def on_answer(self, answer: ReportAnswer, *, last: bool) -> None:
        assert last
        self._heard.append(answer)

    def persist(self, may: Callable[[], bool] = lambda: True) -> ReportAnswer:
        """What is heard in the end, which on a line like this is at once."""
        self._may = may
        self.send(ReportEntry(REPORT, self, last=True))
        (answer,) = self._heard
        return answer


def test_a_report_is_repeated_while_nobody_can_tell_whether_it_was_written() -> None:
    line = Line(StoreUnreachable("away"), UnknownOutcome("who knows"), DONE)
    assert line.persist() is DONE
    assert line.sent == 3


@pytest.mark.parametrize("last", [DONE, InvalidInput("output", "is too large")])
def test_a_report_that_was_answered_is_not_repeated(last: ReportAnswer) -> None:
    line = Line(last)
    assert line.persist() is last
    assert line.sent == 1


def test_a_report_is_not_repeated_after_its_lease_or_to_an_engine_that_closes() -> None:
    away = StoreUnreachable("away")
    leases = iter([True, False])
    line = Line(away, away, DONE)
    assert line.persist(lambda: next(leases)) is away
    assert line.sent == 2
    line = Line(away, ShuttingDown("closing"))
    assert line.persist() is away
