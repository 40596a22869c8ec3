"""Who leaves while work is on its way to them: it goes back, and those behind stay in line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.engine import Engine
from holdfast.service.protocol.long_polls import ClaimOptions, LongPoll, LongPolls
from holdfast.service.protocol.protocol import ClaimTerms
from tests.contract.task_states import create
from tests.race.racers import eventually

PATIENCE = 30


def _waiter(engine: Engine) -> LongPoll:
    return LongPoll(engine, ClaimTerms(worker="w"), ClaimOptions())


def _enter(room: LongPolls, waiter: LongPoll) -> tuple[asyncio.Task[Any], asyncio.Future[None]]:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    return asyncio.create_task(room.wait(waiter, PATIENCE, gone)), gone


async def _seen(condition: Callable[[], bool]) -> None:
    assert await asyncio.to_thread(eventually, condition)


@pytest.mark.parametrize("closed", [False, True])
def test_a_task_delivered_to_a_cancelled_waiter_is_given_back(
    engine: Engine, *, closed: bool
) -> None:
    held: list[Claimed] = []

    async def leave() -> tuple[str, Callable[[Claimed], None]]:
        room, waiter = LongPolls(engine), _waiter(engine)
        deliver, waiter.standing_claim.deliver = waiter.standing_claim.deliver, held.append
        waiting, _ = _enter(room, waiter)
        await _seen(lambda: room.waiting == 1)
        task_id = await asyncio.to_thread(create, engine)
        assert [len(each) for each in held if each] == [1]
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not closed:
            deliver(held[-1])
            await _seen(lambda: engine.tasks.get(task_id).status == "queued")
        room.close()
        return task_id, deliver

    task_id, deliver = asyncio.run(leave())
    if closed:
        deliver(held[-1])
        assert eventually(lambda: engine.tasks.get(task_id).status == "queued")
    assert [each.outcome for each in engine.tasks.attempts(task_id)] == ["released"]


class HeldPull:
    """Pulls of which one, that of a taker, ends when a test says so."""

    def __init__(self, engine: Engine, taker: StandingClaim) -> None:
        self._pull = engine.work.pull
        self.submit = self._pull.submit
        self._standing_claim = taker
        self.begun, self.free = asyncio.Event(), asyncio.Event()

    async def aio(self, taker: StandingClaim) -> None:
        await self._pull.aio(taker)
        if taker is self._standing_claim:
            self.begun.set()
            await self.free.wait()


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_waiter_slow_to_leave_an_empty_line_leaves_the_next_waiter_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, *, cancelled: bool
) -> None:
    async def story() -> None:
        room = LongPolls(engine)
        quick, slow, later = (_waiter(engine) for _ in range(3))
        held = HeldPull(engine, slow.standing_claim)
        monkeypatch.setattr(engine.work, "pull", held)
        first, second = _enter(room, quick), _enter(room, slow)
        await _seen(lambda: room.waiting == 2)
        for _, gone in (first, second):
            gone.set_result(None)
        assert await first[0] is None
        await held.begun.wait()
        third, gone = _enter(room, later)
        await _seen(lambda: room.waiting == 1)
        if cancelled:
            second[0].cancel()
        held.free.set()
        await asyncio.wait([second[0]])
        assert room.waiting == 1
        gone.set_result(None)
        assert await third is None
        assert room.waiting == 0
        room.close()

    asyncio.run(asyncio.wait_for(story(), PATIENCE))
