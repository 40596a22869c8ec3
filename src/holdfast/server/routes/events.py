"""History over HTTP: of a run, a task, or everything; and as it comes."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from holdfast.errors import InvalidInput
from holdfast.server.event_stream import Asked
from holdfast.server.gate import SHOWN
from holdfast.server.problems import Answer
from holdfast.server.request_context import (
    After,
    AsksAs,
    Door,
    Limit,
    RunId,
    TaskId,
    in_thread,
    known_run_id,
)
from holdfast.server.route_table import LOOKERS, Table
from holdfast.server.schemas import responses
from holdfast.service.queries.history import Cursor

table = Table(tag="events")
_NUMBER = re.compile(r"\d{1,18}")


class EventStream(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, asks: Door, asked: Asked) -> None:
        super().__init__(asks.serving.hub.read(asked))
        self._place = asks.serving.hub.place(asks.access.name, asks.serving.max_streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


@table.route("GET", "/events", LOOKERS, answers=responses.Events)
def list_events(
    asks: AsksAs, limit: Limit = 100, after: After = None, run: str | None = None
) -> Answer:
    """Every event of the store, or of a run, oldest first; `next` goes on with what comes later."""
    if run is not None:
        return events_of_run(known_run_id(run), asks, limit, after)
    return Answer(asks.service.history.page(after, limit))


@table.route("GET", "/runs/{run_id}/events", LOOKERS, answers=responses.Events)
def events_of_run(run_id: RunId, asks: AsksAs, limit: Limit = 100, after: After = None) -> Answer:
    """The history of a run and all its tasks."""
    return _page(asks, run_id, limit, after)


@table.route("GET", "/tasks/{task_id}/events", LOOKERS, answers=responses.Events)
def events_of_task(
    task_id: TaskId, asks: AsksAs, limit: Limit = 100, after: After = None
) -> Answer:
    """The history of a task."""
    return _page(asks, task_id, limit, after)


def _page(asks: Door, identifier: str, limit: int, after: str | None) -> Answer:
    asks.service.queries.require(identifier)
    if after is not None and not _NUMBER.fullmatch(after):
        raise InvalidInput("after", "is no cursor; pass what `next` said, as it was")
    page = asks.service.queries.events(identifier, after=int(after or 0), limit=limit)
    if "next" in page:
        page["next"] = str(page["next"])
    return Answer(page)


@table.route("GET", "/stream", LOOKERS, kind=EventStream)
async def stream(
    request: Request,
    asks: AsksAs,
    after: After = None,
    run: str | None = None,
    last_event_id: Annotated[str | None, Header(description="Where a reader was")] = None,
) -> Response:
    """Events as they come; `gap` tells a slow reader what it has missed."""
    begun = last_event_id or after
    cursor = None if begun is None else Cursor.read(begun)
    known = None if run is None else known_run_id(run)
    if known is not None:
        await in_thread(asks.service.queries.require, known)
    asked = Asked(after=cursor, run_id=known, digest=request.scope[SHOWN])
    return EventStream(asks, asked)
