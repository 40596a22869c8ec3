"""How the flows of a durable function are followed: in a thread that blocks, or in a coroutine."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Future
from typing import NoReturn, TypeVar

from holdfast.worker.attempt.durable import Flow, InvalidCall, Pending, TaskMemory
from holdfast.worker.attempt.waits import Suspended

T = TypeVar("T")


def run_in_thread(flow: Flow[T], memory: TaskMemory) -> T:
    """Run a flow in a thread that may block."""
    try:
        asked = next(flow)
        while True:
            try:
                given = _wait_for(asked)
            except BaseException as error:  # noqa: BLE001 - it is the flow's to see
                asked = flow.throw(error)
            else:
                asked = flow.send(given)
    except StopIteration as finished:
        result: T = finished.value
        return result
    except Suspended as suspended:
        if around := memory.names.list_effects_under_way():
            memory.waits.leave_effects(around, suspended)
            raise
        raise memory.waits.leave_function(suspended) from None


def _wait_for(asked: Pending) -> object:
    if isinstance(asked, Future):
        return asked.result()
    if callable(asked):
        return asked()
    if inspect.iscoroutine(asked):
        asked.close()
    raise InvalidCall("effect", "gave an awaitable; call it from an async step")


async def raise_again(left: Suspended) -> NoReturn:
    """What a coroutine does instead that was left and goes on."""
    # Only after a turn of the loop: one that tries again and again would hold it up.
    await asyncio.sleep(0)
    raise left


async def run_in_coroutine(flow: Flow[T], memory: TaskMemory) -> T:
    """Run a flow in a coroutine, which must not block, beside the others of its function."""
    if (left := memory.suspension) is not None:
        # It was called before that, and is awaited only now.
        await raise_again(left)
    memory.refuse_after_raise()
    try:
        with memory.waits.operation_under_way():
            return await _run_flow(flow)
    except Suspended as suspended:
        # Whoever waits inside an effect would wait for that effect.
        if around := memory.names.list_effects_under_way():
            memory.waits.leave_effects(around, suspended)
            raise
        raise await memory.waits.leave_when_quiet(suspended) from None


async def _run_flow(flow: Flow[T]) -> T:
    try:
        asked = next(flow)
        while True:
            try:
                given = await _await_pending(asked)
            except BaseException as error:  # noqa: BLE001 - it is the flow's to see
                asked = flow.throw(error)
            else:
                asked = flow.send(given)
    except StopIteration as finished:
        result: T = finished.value
        return result


async def _await_pending(asked: Pending) -> object:
    if isinstance(asked, Future):
        return await asyncio.wrap_future(asked)
    if callable(asked):
        return await asyncio.to_thread(asked)
    return await asked
