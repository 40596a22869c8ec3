"""Claims by message: who has nothing but the bus asks for a task, and hears of it there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.handler import Handler, Park
from holdfast.bus.offers import AT_ONCE
from holdfast.bus.replies import Replies, Reply, need_reply_to
from holdfast.engine.engine import Engine
from holdfast.engine.writer.caller_transaction import Joined
from holdfast.errors import InvalidInput
from holdfast.model.frozen_record import show_moment
from holdfast.model.task import Assignment
from holdfast.model.text import clean_key, digest

CLAIM, CLAIMED, REFUSED = "task.claim", "task.claimed", "task.refused"


def claim_handler(engine: Engine, bus: RedisBus) -> Handler:
    """For `workflow.commands`: claims a task by its id, and answers where the claim says."""
    replies = Replies(engine, bus)

    def handle(envelopes: Sequence[Envelope], connection: object) -> object:
        try:
            with engine.join_group(connection) as joined:
                asked = [(each, _ask(joined, each)) for each in envelopes]
        except InvalidInput as error:
            raise Park(str(error)) from error
        return replies.after([_answer(each, claimed.result()) for each, claimed in asked])

    return Handler(
        name="claims",
        handle_all=handle,
        types=frozenset({CLAIM}),
        steers=True,
        apart=lambda envelope: envelope.task_id,
        most=AT_ONCE,
    )


def _ask(joined: Joined, envelope: Envelope) -> Future[list[Assignment]]:
    worker = need_reply_to(envelope)
    if envelope.task_id is None:
        raise InvalidInput("task_id", "is missing, and a claim is of one")
    told = envelope.payload
    request = clean_key("request", told.get("request", envelope.message_id))
    return joined.work.claim_by_id.submit(
        envelope.task_id,
        told.get("worker", worker),
        agents=told.get("agents", [envelope.agent or "default"]),
        tags=told.get("tags", ()),
        lease=told.get("lease_seconds"),
        # Who was not answered asks again for the same task, and is given the same.
        request=digest("bus", worker, envelope.task_id, request),
    )


def _answer(envelope: Envelope, claimed: Sequence[Assignment]) -> Reply:
    if not claimed:
        reason = "not ready, or not for these agents and tags, or another's by now"
        return Reply(to=envelope, type=REFUSED, payload={"reason": reason})
    return Reply(to=envelope, type=CLAIMED, payload=_show(claimed[0]))


def _show(assignment: Assignment) -> dict[str, Any]:
    return {
        "attempt": assignment.attempt,
        "token": assignment.token,
        "lease_expires_at": show_moment(assignment.expires_at),
        "title": assignment.task.title,
        "given": assignment.given,
    }
