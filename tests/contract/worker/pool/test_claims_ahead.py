"""Tasks that a worker claims before they can begin: bounded, given back, cancelled, shared."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import pytest

from holdfast import Holdfast
from holdfast.api.handle import Handle
from holdfast.api.option_types import StoreSettings
from holdfast.worker.pool import lease_renewal, worker_attempts, worker_options
from holdfast.worker.pool import worker as worker_module
from holdfast.worker.pool.claims_ahead import ClaimsAhead
from holdfast.worker.pool.lifecycle import Worker
from holdfast.worker.pool.worker import StoreWorker
from tests.contract.worker.function_workers import store_worker
from tests.programs import running
from tests.race.racers import eventually

PATIENCE = 30
NAPPER = """
import sys, time
from holdfast import Holdfast

hf = Holdfast(sys.argv[1])

@hf.task
def nap() -> None:
    time.sleep(0.005)

with hf.worker():
    print("works", flush=True)
    sys.stdin.readline()
"""
LIMIT = 4
AHEAD = 8


def claim_ahead(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Workers that were told nothing claim so many ahead, however fast they are."""
    monkeypatch.setattr(ClaimsAhead, "count", lambda _: count)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that were told nothing run `LIMIT` steps at once, and claim `AHEAD` ahead."""
    monkeypatch.setattr(worker_options, "DEFAULT_CONCURRENCY", LIMIT)
    claim_ahead(monkeypatch, AHEAD)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for its turn is not given back."""
    monkeypatch.setattr(worker_module, "LONGEST_WAIT", 1_000.0)


class Steps:
    """A function and a coroutine function that run until they may end, and how many run."""

    def __init__(self, hf: Holdfast) -> None:
        self.go_on = threading.Event()
        self.began: list[int] = []
        self.most = self._now = 0
        self._lock = threading.Lock()

        @hf.task
        def block(number: int) -> int:
            with self._counted(number):
                assert self.go_on.wait(PATIENCE)
            return number

        @hf.task
        async def wait(number: int) -> int:
            with self._counted(number):
                await asyncio.to_thread(self.go_on.wait, PATIENCE)
            return number

        self.block, self.wait = block, wait

    @contextmanager
    def _counted(self, number: int) -> Iterator[None]:
        with self._lock:
            self.began.append(number)
            self._now += 1
            self.most = max(self.most, self._now)
        yield
        with self._lock:
            self._now -= 1

    def enqueue(self, count: int) -> list[Handle[Any]]:
        """Tasks of both functions in turns, all ready in one commit."""
        with_one_commit = [
            (self.wait if each % 3 else self.block).enqueue.submit(each) for each in range(count)
        ]
        return [each.result() for each in with_one_commit]


@pytest.fixture
def steps(hf: Holdfast) -> Iterator[Steps]:
    made = Steps(hf)
    yield made
    made.go_on.set()


@contextmanager
def opened(url: str, **settings: Unpack[StoreSettings]) -> Iterator[tuple[Holdfast, Steps]]:
    with Holdfast(url, **settings) as hf:
        made = Steps(hf)
        try:
            yield hf, made
        finally:
            made.go_on.set()


def states(hf: Holdfast, handles: list[Handle[Any]]) -> list[str]:
    return [hf.tasks.get(each.id).status.value for each in handles]


def outcomes(hf: Holdfast, handle: Handle[Any]) -> list[str | None]:
    return [each.outcome for each in hf.tasks.attempts(handle.id)]


def blocked_worker(hf: Holdfast, steps: Steps) -> tuple[Worker, list[Handle[Any]]]:
    """A worker whose functions all block, and which has claimed all of its tasks."""
    handles = steps.enqueue(LIMIT + AHEAD)
    worker = hf.worker().start()
    assert eventually(lambda: len(steps.began) == LIMIT)
    assert eventually(lambda: states(hf, handles) == ["running"] * len(handles))
    return worker, handles


@pytest.mark.usefixtures("patient")
def test_no_more_than_32_functions_and_coroutines_run_at_one_instant(
    hf: Holdfast, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_ahead(monkeypatch, 60)
    handles = steps.enqueue(80)
    with hf.worker():
        assert eventually(lambda: steps.most == 32)
        assert eventually(lambda: states(hf, handles) == ["running"] * 80)
        assert [each.concurrency for each in hf.workers.list()] == [32]
        steps.go_on.set()
        assert [each.result(PATIENCE) for each in handles] == list(range(80))
    assert steps.most == 32
    assert sorted(steps.began) == list(range(80))


@pytest.mark.usefixtures("few")
def test_a_worker_that_is_told_its_concurrency_claims_no_more_than_it_runs(
    hf: Holdfast, steps: Steps
) -> None:
    handles = steps.enqueue(12)
    with hf.worker(concurrency=3):
        assert eventually(lambda: steps.most == 3)
        assert states(hf, handles).count("running") == 3
        steps.go_on.set()
        assert [each.result(PATIENCE) for each in handles] == list(range(12))
    assert steps.most == 3


@pytest.mark.usefixtures("few", "patient")
def test_steps_begin_in_the_order_in_which_they_were_claimed(hf: Holdfast, steps: Steps) -> None:
    worker, handles = blocked_worker(hf, steps)
    steps.go_on.set()
    assert [each.result(PATIENCE) for each in handles] == list(range(LIMIT + AHEAD))
    worker.stop()
    assert sorted(steps.began[:LIMIT]) == list(range(LIMIT))


@pytest.mark.usefixtures("few", "patient")
def test_a_task_that_is_cancelled_before_its_turn_never_begins(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hint of the other process has to be enough.
    monkeypatch.setattr(worker_attempts, "LOOK_EVERY", 1_000.0)
    with opened(store_url, lease=3_000, renewal=1_000) as (hf, steps):
        worker, handles = blocked_worker(hf, steps)
        *others, here_function, here_coroutine, there_function, there_coroutine = handles
        for each in (here_function, here_coroutine):
            assert hf.tasks.cancel(each.id).ok
        with Holdfast(store_url) as other:
            for each in (there_function, there_coroutine):
                assert other.tasks.cancel(each.id).ok
        cancelled = handles[len(others) :]
        assert eventually(
            lambda: (
                sum(each.ended.is_set() for each in store_worker(worker)._held.list())  # noqa: SLF001
                == len(cancelled)
            )
        )
        steps.go_on.set()
        assert [each.result(PATIENCE) for each in others] == list(range(len(others)))
        worker.stop()
        assert sorted(steps.began) == list(range(len(others)))
        assert states(hf, cancelled) == ["cancelled"] * 4


def test_a_task_that_is_cancelled_while_it_is_handed_over_never_begins(
    hf: Holdfast, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, go_on = threading.Event(), threading.Event()
    make_steps = StoreWorker._make_steps  # noqa: SLF001

    def make_later(worker: StoreWorker, arrival: Any) -> Any:  # noqa: ANN401 - as it is handed over
        arrived.set()
        assert go_on.wait(PATIENCE)
        return make_steps(worker, arrival)

    monkeypatch.setattr(StoreWorker, "_make_steps", make_later)
    handles = steps.enqueue(2)
    with hf.worker() as worker:
        assert arrived.wait(PATIENCE)
        assert states(hf, handles) == ["running", "running"]
        assert [hf.tasks.cancel(each.id).ok for each in handles] == [True, True]
        go_on.set()
        assert eventually(lambda: not store_worker(worker)._busy)  # noqa: SLF001
    assert steps.began == []
    assert states(hf, handles) == ["cancelled"] * 2


@pytest.mark.usefixtures("few", "patient")
def test_a_worker_that_stops_gives_back_what_has_not_begun(hf: Holdfast, steps: Steps) -> None:
    worker, handles = blocked_worker(hf, steps)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    assert eventually(lambda: states(hf, handles[LIMIT:]) == ["queued"] * AHEAD)
    assert stopping.is_alive()
    steps.go_on.set()
    stopping.join(PATIENCE)
    assert states(hf, handles[:LIMIT]) == ["done"] * LIMIT
    assert sorted(steps.began) == list(range(LIMIT))
    assert [outcomes(hf, each) for each in handles[LIMIT:]] == [["released"]] * AHEAD
    assert {hf.tasks.get(each.id).failures for each in handles} == {0}


@pytest.mark.usefixtures("few")
def test_what_cannot_begin_is_given_back_soon_and_another_worker_does_it(
    hf: Holdfast, steps: Steps, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Holdfast(store_url) as other:
        others_steps = Steps(other)
        others_steps.go_on.set()
        handles = steps.enqueue(LIMIT + AHEAD)
        with hf.worker(name="blocked"):
            assert eventually(lambda: len(steps.began) == LIMIT)
            # As the worker finds by itself when nothing ends.
            claim_ahead(monkeypatch, 0)
            with other.worker(name="free"):
                late = handles[LIMIT:]
                assert [each.result(PATIENCE) for each in late] == list(range(LIMIT, LIMIT + AHEAD))
            assert sorted(others_steps.began) == list(range(LIMIT, LIMIT + AHEAD))
            steps.go_on.set()
            assert [each.result(PATIENCE) for each in handles[:LIMIT]] == list(range(LIMIT))
        assert [outcomes(hf, each) for each in late] == [["released", "completed"]] * AHEAD
    assert sorted(steps.began) == list(range(LIMIT))


@pytest.mark.usefixtures("few")
def test_a_worker_that_was_idle_gives_back_what_cannot_begin_too(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(store_url, poll=1_000) as (hf, steps):

        @hf.task
        def warm() -> None: ...

        with hf.worker() as worker:
            warm.enqueue().result(PATIENCE)
            assert eventually(lambda: store_worker(worker)._sleeps_long)  # noqa: SLF001 - until nothing wakes it
            many = LIMIT + AHEAD - 1
            handles = steps.block.enqueue_many([{"number": each} for each in range(many)])
            assert eventually(lambda: len(steps.began) == LIMIT)
            claim_ahead(monkeypatch, 0)
            waiting = handles[LIMIT:]
            assert eventually(lambda: states(hf, waiting) == ["queued"] * len(waiting))
            steps.go_on.set()
            assert [each.result(PATIENCE) for each in handles] == list(range(many))


@pytest.mark.usefixtures("few", "patient")
def test_the_lease_of_a_task_that_waits_for_its_turn_is_renewed(store_url: str) -> None:
    with opened(store_url, lease=0.6, renewal=0.1, recovery=0.1) as (hf, steps):
        worker, handles = blocked_worker(hf, steps)
        time.sleep(1.5)
        steps.go_on.set()
        assert [each.result(PATIENCE) for each in handles] == list(range(LIMIT + AHEAD))
        worker.stop()
        assert [outcomes(hf, each) for each in handles] == [["completed"]] * (LIMIT + AHEAD)


@pytest.mark.usefixtures("few", "patient")
def test_a_timeout_counts_from_the_begin_of_its_function(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The heartbeat must be told of a timeout that comes before its next look.
    monkeypatch.setattr(lease_renewal, "LOOK_EVERY", 1_000.0)
    with opened(store_url, lease=3_000, renewal=1_000) as (hf, steps):

        @hf.task(timeout=0.3, max_attempts=1)
        def quick() -> str:
            # Long enough for a timeout that has passed to end it.
            time.sleep(0.1)
            return "in time"

        @hf.task(timeout=0.3, max_attempts=1)
        async def slow() -> None:
            await asyncio.sleep(PATIENCE)

        blocking = steps.enqueue(LIMIT)
        with hf.worker():
            assert eventually(lambda: len(steps.began) == LIMIT)
            waiting: list[Handle[Any]] = [quick.enqueue(), slow.enqueue()]
            assert eventually(lambda: states(hf, waiting) == ["running"] * 2)
            time.sleep(0.6)
            assert states(hf, waiting) == ["running"] * 2
            steps.go_on.set()
            assert waiting[0].result(PATIENCE) == "in time"
            assert eventually(lambda: states(hf, waiting) == ["done", "failed"])
            assert [each.result(PATIENCE) for each in blocking] == list(range(LIMIT))


@pytest.mark.usefixtures("few")
def test_what_is_to_run_now_begins_although_it_was_claimed_behind_functions_that_block(
    hf: Holdfast, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles = steps.enqueue(LIMIT + AHEAD)
    with hf.worker():
        assert eventually(lambda: len(steps.began) == LIMIT)
        claim_ahead(monkeypatch, 0)
        assert eventually(lambda: "released" in outcomes(hf, handles[-1]))
        assert hf.tasks.run_now(handles[-1].id).ok
        assert eventually(lambda: steps.began[LIMIT:] == [LIMIT + AHEAD - 1])
        steps.go_on.set()
        assert [each.result(PATIENCE) for each in handles] == list(range(LIMIT + AHEAD))
    assert steps.most == LIMIT + 1


def note_rooms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks the worker was ready to claim, each time that it was asked."""
    rooms: list[int] = []
    find_room = StoreWorker._room  # noqa: SLF001

    def note_room(worker: StoreWorker) -> int:
        rooms.append(find_room(worker))
        return rooms[-1]

    monkeypatch.setattr(StoreWorker, "_room", note_room)
    return rooms


def test_nothing_is_claimed_ahead_of_steps_that_take_long(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = note_rooms(monkeypatch)

    @hf.task
    def long() -> None:
        time.sleep(0.04)

    for each in [long.enqueue.submit() for _ in range(200)]:
        each.result()
    with hf.worker():
        assert eventually(lambda: hf.tasks.list(status="queued") == [])
    assert max(rooms) == 32


def test_short_steps_are_claimed_ahead(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = note_rooms(monkeypatch)

    @hf.task
    def short() -> None: ...

    for each in [short.enqueue.submit() for _ in range(4_000)]:
        each.result()
    with hf.worker():
        assert eventually(lambda: hf.tasks.list(status="queued") == [])
    assert max(rooms) > 64


def test_workers_of_two_processes_share_what_there_is(
    hf: Holdfast, store_url: str, tmp_path: Path
) -> None:
    @hf.task
    def nap() -> None: ...

    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with (
        running(NAPPER, store_url, tmp_path / "first") as first,
        running(NAPPER, store_url, tmp_path / "second") as second,
    ):
        for child in (first, second):
            assert child.stdout is not None
            assert child.stdout.readline() == "works\n"
        handles = [each.result() for each in [nap.enqueue.submit() for _ in range(2_000)]]
        for each in handles:
            each.result(PATIENCE)
        for child in (first, second):
            child.communicate("\n", timeout=PATIENCE)
    did = Counter(hf.tasks.attempts(each.id)[-1].owner for each in handles[::10])
    assert len(did) == 2
    assert min(did.values()) > 200 / 5, did
