"""Who may wait for whom: nobody waits for ever, and nothing is leased to one who has left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine, engine_of
from holdfast.errors import WrongThread
from holdfast.model.task import NewTask
from holdfast.store.database import Database, Transaction
from tests.contract.task_states import create, finish
from tests.race.racers import eventually

PATIENCE = 30


def caught(call: Callable[[], object]) -> tuple[Callable[[object], None], Future[object]]:
    """A callback that makes a call, and what became of it."""
    heard: Future[object] = Future()

    def callback(_: object) -> None:
        try:
            heard.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is for the test to see
            heard.set_exception(error)

    return callback, heard


def test_a_callback_that_waits_for_its_own_thread_is_told_so(engine: Engine) -> None:
    callback, heard = caught(lambda: create(engine, "never"))
    engine.on_end(callback)
    task_id = create(engine)
    assert engine.tasks.cancel(task_id).ok
    with pytest.raises(WrongThread, match=r"create was called by a callback.*`submit`"):
        heard.result(PATIENCE)
    assert create(engine, "another")


def test_a_callback_may_ask_for_what_it_does_not_wait_for(engine: Engine) -> None:
    callback, heard = caught(lambda: engine.tasks.create.submit(NewTask(title="later")))
    engine.on_end(callback)
    assert engine.tasks.cancel(create(engine)).ok
    asked: Any = heard.result(PATIENCE)
    assert engine.tasks.get(asked.result(PATIENCE).id).title == "later"


def test_a_callback_that_waits_for_a_result_is_told_so(hf: Holdfast) -> None:
    @hf.task
    def job() -> None: ...

    waiting = job.enqueue()
    callback, heard = caught(waiting.result)
    engine_of(hf).on_end(callback)
    assert hf.tasks.cancel(job.enqueue().id).ok
    with pytest.raises(WrongThread, match="result"):
        heard.result(PATIENCE)


@pytest.mark.parametrize("how", ["plain", "coroutine", "in_a_thread"])
def test_a_step_that_stops_its_worker_does_not_wait_for_itself(hf: Holdfast, how: str) -> None:
    worker = hf.worker(concurrency=1)

    @hf.task
    def plain() -> str:
        worker.stop()
        return "stopped"

    @hf.task
    async def coroutine() -> str:
        return plain()

    @hf.task
    async def in_a_thread() -> str:
        return await asyncio.to_thread(plain)

    jobs: dict[str, Any] = {"plain": plain, "coroutine": coroutine, "in_a_thread": in_a_thread}
    worker.start()
    assert jobs[how].enqueue().result(PATIENCE) == "stopped"
    assert worker.stopping
    worker.stop()


def test_a_claim_that_nobody_awaits_any_more_is_given_back(engine: Engine) -> None:
    task_id = create(engine)

    async def leave() -> None:
        claiming = asyncio.create_task(engine.work.claim.aio("worker"))
        await asyncio.sleep(0)
        # The loop stands still meanwhile, so that the reply cannot have come.
        assert eventually(lambda: engine.tasks.get(task_id).attempt == 1)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming

    asyncio.run(leave())
    assert eventually(lambda: engine.tasks.get(task_id).status == "queued")
    assert [each.outcome for each in engine.tasks.attempts(task_id)] == ["released"]


def test_a_claim_that_is_cancelled_before_it_is_written_is_not_made(engine: Engine) -> None:
    reached, free = threading.Event(), threading.Event()

    def hang(_: object) -> None:
        reached.set()
        assert free.wait(PATIENCE)

    task_id, other = create(engine), create(engine)
    leave = engine.on_end(hang)

    async def give_up() -> None:
        engine.tasks.cancel.submit(other)
        assert reached.wait(PATIENCE)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.work.claim_by_id.aio(task_id, "worker"), 0)

    asyncio.run(give_up())
    free.set()
    leave()
    assert create(engine)
    assert engine.tasks.get(task_id).attempt == 0


class Held:
    """A database whose views, in one thread, are held up between reading and telling."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read, self.tell = threading.Event(), threading.Event()

    def view(self, work: Callable[[Transaction], Any]) -> Any:  # noqa: ANN401 - as the view says
        found = self._database.view(work)
        if threading.current_thread().name == "held":
            self.read.set()
            assert self.tell.wait(30)
        return found


def test_a_wait_that_begins_after_a_reopening_is_not_told_of_the_earlier_end(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = create(engine)
    finish(engine, task_id)
    held = Held(engine.database)
    monkeypatch.setattr(engine.outcomes, "_database", held)
    first: list[Future[Any]] = []
    looking = threading.Thread(
        name="held", target=lambda: first.append(engine.outcomes.wait(task_id))
    )
    looking.start()
    assert held.read.wait(30)
    assert engine.tasks.reopen(task_id).ok
    second = engine.outcomes.wait(task_id)
    held.tell.set()
    looking.join(30)
    assert first[0].result(30)["status"] == "done"
    assert not second.done()
    finish(engine, task_id)
    assert second.result(30)["status"] == "done"
