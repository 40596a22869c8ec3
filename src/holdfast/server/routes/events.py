"""Event routes: the history of the store, a run or a task, and the stream of new events."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast.errors import InvalidInput
from holdfast.server.event_stream import StreamRequest
from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.gate import SHOWN_DIGEST
from holdfast.server.request_context import (
    After,
    Context,
    Limit,
    RequestContext,
    RunId,
    TaskId,
    in_thread,
    require_run_id,
)
from holdfast.server.route_table import VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.queries.history import Cursor

table = RouteTable(tag="events")
_NUMBER = re.compile(r"\d{1,18}")


class EventStreamResponse(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, context: RequestContext, asked: StreamRequest) -> None:
        super().__init__(context.server_state.event_hub.read(asked))
        self._reservation = context.server_state.event_hub.reserve_listener(
            context.access.name, context.server_state.max_streams
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._reservation:
            await super().__call__(scope, receive, send)


@table.route("GET", "/events", VIEWER_ROLES, answers=responses.EventPageResponse)
def list_events(
    context: Context, limit: Limit = 100, after: After = None, run: str | None = None
) -> JsonAnswer:
    """Every event of the store, or of a run, oldest first; `next` goes on with what comes later."""
    if run is not None:
        return events_of_run(require_run_id(context.find_run(run)), context, limit, after)
    return JsonAnswer(context.service.history.page(after, limit))


@table.route("GET", "/runs/{run_id}/events", VIEWER_ROLES, answers=responses.EventPageResponse)
def events_of_run(
    run_id: RunId, context: Context, limit: Limit = 100, after: After = None
) -> JsonAnswer:
    """The history of a run and all its tasks."""
    return _page(context, run_id, limit, after)


@table.route("GET", "/tasks/{task_id}/events", VIEWER_ROLES, answers=responses.EventPageResponse)
def events_of_task(
    task_id: TaskId, context: Context, limit: Limit = 100, after: After = None
) -> JsonAnswer:
    """The history of a task."""
    return _page(context, task_id, limit, after)


def _page(context: RequestContext, identifier: str, limit: int, after: str | None) -> JsonAnswer:
    context.service.queries.require(identifier)
    if after is not None and not _NUMBER.fullmatch(after):
        raise InvalidInput("after", "is no cursor; pass what `next` said, as it was")
    page = context.service.queries.events(identifier, after=int(after or 0), limit=limit)
    if "next" in page:
        page["next"] = str(page["next"])
    return JsonAnswer(page)


@table.route("GET", "/stream", VIEWER_ROLES, kind=EventStreamResponse)
async def stream(
    request: Request,
    context: Context,
    after: After = None,
    run: str | None = None,
    last_event_id: Annotated[str | None, Header(description="Where a reader was")] = None,
) -> Response:
    """Events as they come; `gap` tells a slow reader what it has missed."""
    begun = last_event_id or after
    cursor = None if begun is None else Cursor.read(begun)
    known = None if run is None else require_run_id(await in_thread(context.find_run, run))
    if known is not None:
        await in_thread(context.service.queries.require, known)
    asked = StreamRequest(after=cursor, run_id=known, digest=request.scope[SHOWN_DIGEST])
    return EventStreamResponse(context, asked)
