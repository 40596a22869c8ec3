"""Long polls: a call that waits for work, until there is some or whoever made it is gone."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope

from holdfast.model.task import Assignment
from holdfast.server.gate import LOOK_AGAIN
from holdfast.server.serving import Serving
from holdfast.service.waiting import Waiter

GONE = "this token is good no longer; an admin makes another with `holdfast token create`"


async def wait_for_work(
    serving: Serving, waiter: Waiter, seconds: float, call: tuple[Scope, Receive]
) -> list[Assignment] | None:
    """What comes in time; None where the token was revoked meanwhile, which is given nothing."""
    scope, receive = call
    gone = asyncio.ensure_future(_hang_up(receive))
    try:
        claimed = await serving.room.wait(waiter, seconds, gone)
    finally:
        gone.cancel()
    found = [] if claimed is None else claimed.read()
    if not found or await scope[LOOK_AGAIN]() is not None:
        return found
    for each in found:
        await serving.engine.work.release.aio(each.task_id, each.token)
    return None


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
