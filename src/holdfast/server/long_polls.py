"""Long polls: calls that wait for work until there is some or their caller hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.types import Receive, Scope

from holdfast.model.task import Assignment
from holdfast.server.gate import LOOK_AGAIN, SHOWN_DIGEST
from holdfast.server.server_state import ServerState
from holdfast.service.async_service import AsyncService
from holdfast.service.protocol.long_polls import LongPoll

AsgiCall = tuple[Scope, Receive]
REVOKED = "this token is good no longer; an admin makes another with `holdfast token create`"


async def wait_for_work(
    server_state: ServerState, waiter: LongPoll, seconds: float, call: AsgiCall
) -> list[Assignment] | None:
    """The tasks that come in time; None, and no tasks, if the token was revoked meanwhile."""
    scope, receive = call
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    with server_state.open_calls.open(scope[SHOWN_DIGEST]) as ended:
        ended.add_done_callback(lambda _: gone.cancel())
        try:
            claimed = await server_state.long_polls.wait(waiter, seconds, gone)
        finally:
            gone.cancel()
    found = [] if claimed is None else claimed.read()
    if not found:
        return None if ended.done() else found
    with give_back_on_error(server_state.async_service, found, kept=waiter.is_repeatable):
        good = await scope[LOOK_AGAIN]() is not None
    if good:
        return found
    for each in found:
        await server_state.async_service.release(each)
    return None


async def wait_for_end(
    server_state: ServerState, attempts: list[tuple[str, int]], seconds: float, call: AsgiCall
) -> set[tuple[str, int]] | None:
    """The attempts that are over in time; None if the token was revoked meanwhile."""
    scope, receive = call
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    with server_state.open_calls.open(scope[SHOWN_DIGEST]) as ended:
        ended.add_done_callback(lambda _: gone.cancel())
        try:
            over = await server_state.end_watches.wait(attempts, seconds, gone)
        finally:
            gone.cancel()
    return None if ended.done() and not over else over


@contextmanager
def give_back_on_error(
    service: AsyncService, found: list[Assignment], *, kept: bool
) -> Iterator[None]:
    """Give tasks back if their answer fails, unless the caller can repeat its request by name."""
    try:
        yield
    except BaseException:
        if not kept:
            service.release_unheard(found)
        raise


async def is_gone(call: AsgiCall) -> bool:
    """Whether the caller has hung up."""
    return await Request(*call).is_disconnected()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
