"""Flows of durable operations: run in a thread that blocks, or in a coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future
from typing import NoReturn, TypeVar

from holdfast.engine.core.thread_wakeups import wait_in_thread
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
        wait_in_thread(asked)
        return asked.result()
    if callable(asked):
        return asked()
    if inspect.iscoroutine(asked):
        asked.close()
    raise InvalidCall("effect", "gave an awaitable; call it from an async step")


async def raise_again(left: Suspended) -> NoReturn:
    """Raise the wait again in a coroutine that caught it and goes on."""
    # One pass of the loop first: a coroutine that tries again and again would block the loop.
    await asyncio.sleep(0)
    raise left


async def run_in_coroutine(flow: Flow[T], memory: TaskMemory, on_begin: Callable[[], None]) -> T:
    """Run a flow in a coroutine without blocking, beside the other flows of its function."""
    on_begin()
    if (left := memory.suspension) is not None:
        # The operation was called before the function was left, and is awaited only now.
        await raise_again(left)
    memory.refuse_after_raise()
    try:
        with memory.waits.operation_under_way():
            return await _run_flow(flow)
    except Suspended as suspended:
        # Inside an effect, waiting until nothing is under way would wait for that effect itself.
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
