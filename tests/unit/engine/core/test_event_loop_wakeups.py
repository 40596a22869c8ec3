"""Coroutines that wait for the writer are woken once for each group, and none is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from typing import Any, TypeVarTuple, Unpack

from holdfast.engine.core.event_loop_wakeups import wait_in_loop
from tests.unit.store.group_commit.memory_group import Desk, notes

Ts = TypeVarTuple("Ts")


class Counting(asyncio.SelectorEventLoop):
    """Counts how often another thread calls it."""

    calls = 0

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        self.calls += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


def run(work: Any) -> Counting:  # noqa: ANN401 - any coroutine
    with asyncio.Runner(loop_factory=Counting) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Counting)
        runner.run(work)
        return loop


async def waiting(futures: list[Future[Any]]) -> list[asyncio.Task[None]]:
    begun = [asyncio.create_task(wait_in_loop(each)) for each in futures]
    await asyncio.sleep(0)
    return begun


def test_all_waiters_of_a_group_wake_their_loop_once() -> None:
    desk = Desk()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Counting)
        waits = await waiting(desk.submit(*notes("a", "b", "c", "a")))
        before = loop.calls
        desk.group.step()
        assert loop.calls == before + 1
        await asyncio.gather(*waits[:3])
        assert not waits[3].done()
        desk.group.step()
        await waits[3]
        assert loop.calls == before + 2

    run(work())


def test_a_reply_that_is_there_already_is_not_waited_for() -> None:
    async def work() -> None:
        done: Future[int] = Future()
        done.set_result(1)
        await wait_in_loop(done)

    run(work())


def test_a_waiter_who_left_is_passed_over_and_the_others_hear() -> None:
    desk = Desk()

    async def work() -> None:
        left, stays = await waiting(desk.submit(*notes("a", "b")))
        left.cancel()
        await asyncio.sleep(0)
        desk.group.step()
        await stays
        assert left.cancelled()

    run(work())


def test_the_answer_of_a_loop_that_was_closed_disturbs_nobody() -> None:
    desk = Desk()
    (future, other) = desk.submit(*notes("a", "b"))

    async def leave() -> None:
        await waiting([future])

    run(leave())
    desk.group.step()
    assert (future.result(0), other.result(0)) == (0, 1)
