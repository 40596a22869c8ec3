"""What somebody wants to run now, where every place of the worker is taken."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.api.handle import Handle
from holdfast.engine.engine import Engine
from holdfast.worker.pool.lifecycle import Worker
from holdfast.worker.pool.pull import RunNowClaims
from tests.contract.task_states import create, take
from tests.contract.worker.function_workers import store_worker
from tests.race.racers import eventually

PATIENCE = 20


def test_a_full_worker_has_one_place_more_for_what_is_to_run_now(store_url: str) -> None:
    with Holdfast(store_url, poll=0.05, renewal=0.1) as hf:
        free = threading.Event()
        began: list[str] = []

        @hf.task
        def job(name: str) -> str:
            began.append(name)
            assert free.wait(PATIENCE)
            return name

        with hf.worker(concurrency=1):
            handles = [job.enqueue(name) for name in ("first", "second", "third", "fourth")]
            assert eventually(lambda: began == ["first"])
            assert hf.tasks.run_now(handles[2].id).ok
            assert hf.tasks.run_now(handles[3].id).ok
            assert eventually(lambda: len(began) == 2)
            assert began[1] in {"third", "fourth"}
            # It says that it lives again and again meanwhile, and looks for work each time.
            seen = hf.workers.list()[0].seen_at
            assert eventually(lambda: hf.workers.list()[0].seen_at > seen + timedelta(seconds=0.5))
            assert len(began) == 2
            free.set()
            assert sorted(each.result(PATIENCE) for each in handles) == [
                "first",
                "fourth",
                "second",
                "third",
            ]
        assert all(len(hf.tasks.attempts(each.id)) == 1 for each in handles)


def test_the_first_to_run_now_is_of_an_agent_and_tags_that_are_offered(engine: Engine) -> None:
    plain, other = create(engine), create(engine, agent="other", tags=("gpu",))
    assert engine.work.first_to_run_now(["default", "other"], ["gpu"]) is None
    assert engine.tasks.run_now(other).ok
    assert engine.work.first_to_run_now(["default"], ["gpu"]) is None
    assert engine.work.first_to_run_now(["default", "other"]) is None
    assert engine.work.first_to_run_now(["default", "other"], ["gpu"]) == other
    assert engine.tasks.run_now(plain).ok
    assert engine.work.first_to_run_now(["default", "other"], ["gpu"]) == plain
    named = create(engine, step="pack")
    assert engine.tasks.run_now(named).ok
    assert engine.work.first_to_run_now(["default"], bare=False) == named
    take(engine, named)
    assert engine.work.first_to_run_now(["default"], bare=False) is None
    take(engine, plain)
    assert engine.work.first_to_run_now(["default"]) is None


@contextmanager
def full_worker(hf: Holdfast) -> Iterator[tuple[Worker, list[Handle[str]], list[str]]]:
    """A worker whose one place is taken until the block ends, with two more tasks behind it."""
    free = threading.Event()
    began: list[str] = []

    @hf.task
    def job(name: str) -> str:
        began.append(name)
        assert free.wait(PATIENCE)
        return name

    with hf.worker(concurrency=1) as worker:
        handles = [job.enqueue(name) for name in ("first", "second", "third")]
        assert eventually(lambda: began == ["first"])
        try:
            yield worker, handles, began
        finally:
            free.set()
        # Whatever the worker counts too many keeps it from ending.
        assert [each.result(PATIENCE) for each in handles[:2]] == ["first", "second"]
        assert eventually(lambda: not store_worker(worker)._busy)  # noqa: SLF001
        assert not store_worker(worker)._held._claims_under_way  # noqa: SLF001


def test_a_task_that_is_cancelled_right_after_its_claim_to_run_now_never_begins(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_next = RunNowClaims.claim_next
    cancelled = threading.Event()
    with Holdfast(store_url, poll=0.05) as hf:

        def cancel_claimed(claims: RunNowClaims, running: Container[tuple[str, int]]) -> bool:
            claims_one = claim_next(claims, running)
            if claims_one:
                assert claims._reply is not None  # noqa: SLF001
                (assignment,) = claims._reply.result(PATIENCE)  # noqa: SLF001
                assert hf.tasks.cancel(assignment.task_id).ok
                cancelled.set()
            return bool(claims_one)

        monkeypatch.setattr(RunNowClaims, "claim_next", cancel_claimed)
        with full_worker(hf) as (worker, handles, began):
            assert hf.tasks.run_now(handles[2].id).ok
            assert cancelled.wait(PATIENCE)
            inner = store_worker(worker)
            assert eventually(lambda: inner._busy == 1 and len(inner._held) == 1)  # noqa: SLF001
            assert began == ["first"]
        assert began == ["first", "second"]


@pytest.mark.parametrize("failing", ["reading", "claiming"])
def test_a_claim_to_run_now_that_fails_leaves_nothing_counted(
    store_url: str, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    failed = threading.Event()

    def fail(*_: object, **__: object) -> Any:  # noqa: ANN401 - it gives nothing
        failed.set()
        raise RuntimeError("it cannot be made")

    with Holdfast(store_url, poll=0.05) as hf, full_worker(hf) as (worker, handles, _):
        if failing == "reading":
            monkeypatch.setattr(worker, "_make_execution", fail)
        else:
            monkeypatch.setattr(store_worker(worker)._run_now._store.work, "first_to_run_now", fail)  # noqa: SLF001
        assert hf.tasks.run_now(handles[2].id).ok
        assert failed.wait(PATIENCE)
        assert eventually(lambda: store_worker(worker)._busy == 1)  # noqa: SLF001
        assert eventually(lambda: not store_worker(worker)._held._claims_under_way)  # noqa: SLF001
        monkeypatch.undo()


@pytest.mark.parametrize("error", [RuntimeError("unknown"), CancelledError()])
def test_an_unknown_error_of_a_claim_to_run_now_leaves_nothing_counted(
    store_url: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    claim_next = RunNowClaims.claim_next
    failed = threading.Event()

    def fail_claim(claims: RunNowClaims, running: Container[tuple[str, int]]) -> bool:
        if failed.is_set() or not claim_next(claims, running):
            return False
        claims._reply = Future()  # noqa: SLF001
        claims._reply.set_exception(error)  # noqa: SLF001
        failed.set()
        return True

    monkeypatch.setattr(RunNowClaims, "claim_next", fail_claim)
    with Holdfast(store_url, poll=0.05) as hf, full_worker(hf) as (worker, handles, _):
        assert hf.tasks.run_now(handles[2].id).ok
        assert failed.wait(PATIENCE)
        assert eventually(lambda: store_worker(worker)._busy == 1)  # noqa: SLF001
        assert eventually(lambda: not store_worker(worker)._held._claims_under_way)  # noqa: SLF001
