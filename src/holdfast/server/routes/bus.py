"""Messages that handlers failed on: listed, tried again after the fix, or given up."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from holdfast.server import answers
from holdfast.server.door import AsksAs, Limit
from holdfast.server.problems import Answer
from holdfast.server.routing import LOOKERS, STEERERS, Table
from holdfast.service.commands import request_bodies

table = Table(tag="bus")


@table.route("GET", "/bus/parked", LOOKERS, answers=answers.Page)
def list_parked(
    asks: AsksAs,
    *,
    limit: Limit = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before")] = 0,
    everything: Annotated[
        bool, Query(alias="all", description="What is tried again and what waits behind it, too")
    ] = False,
) -> Answer:
    """Messages that are parked, or were replayed and not tried yet, in the order they came."""
    return Answer(asks.service.parked.page(everything=everything, limit=limit, after=after))


@table.route("POST", "/bus/parked/replay", STEERERS, answers=answers.Changed)
def replay_parked(body: request_bodies.ParkedMessage, asks: AsksAs) -> Answer:
    """Have a parked message tried again; what waits behind it follows."""
    asks.note(body.handler, body.message_id)
    return Answer(asks.service.parked.replay(body.handler, body.message_id))


@table.route("POST", "/bus/parked/drop", STEERERS, answers=answers.Changed)
def drop_parked(body: request_bodies.ParkedMessage, asks: AsksAs) -> Answer:
    """Give a parked message up for good; what waits behind it follows."""
    asks.note(body.handler, body.message_id)
    return Answer(asks.service.parked.drop(body.handler, body.message_id))
