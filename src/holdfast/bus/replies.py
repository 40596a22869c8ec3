"""Replies to senders that have nothing but the bus, each on a stream of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import TransitionResult
from holdfast.model.text import clean_name

ANSWERED = "attempt.answered"


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageReply:
    """The reply to a message, which is sent as a message that follows it."""

    to: Envelope
    type: str
    payload: object


class Replies:
    """Sends replies after the commit; a sender whose reply is lost asks again."""

    def __init__(self, engine: Engine, bus: RedisBus) -> None:
        self._engine = engine
        self._bus = bus

    def reply_after_commit(self, replies: Sequence[MessageReply]) -> object:
        """The function that sends replies after the commit; each `reply_to` is checked before."""
        wanted = [(name, each) for each in replies if (name := reply_to(each.to)) is not None]
        return partial(self._send, wanted) if wanted else None

    def _send(self, wanted: Sequence[tuple[str, MessageReply]]) -> None:
        now = self._engine.clock.now()
        self._bus.reply(
            [
                (name, each.to.follow(each.type, each.payload, created_at=now))
                for name, each in wanted
            ]
        )


def reply_to(envelope: Envelope) -> str | None:
    """The name of the stream on which the sender of a message expects its reply."""
    payload = envelope.payload
    name = payload.get("reply_to") if isinstance(payload, dict) else None
    return None if name is None else clean_name("payload.reply_to", name)


def make_report_reply(envelope: Envelope, answer: TransitionResult) -> MessageReply:
    """The reply to a report: whether it was taken, and if not, why."""
    told = {"ok": answer.ok, "repeated": answer.repeated}
    reason = {} if answer.reason is None else {"reason": answer.reason.value}
    return MessageReply(to=envelope, type=ANSWERED, payload={**told, **reason})


def require_reply_to(envelope: Envelope) -> str:
    name = reply_to(envelope)
    if name is None:
        reason = f"is missing, and {envelope.type} is answered there"
        raise InvalidInput("payload.reply_to", reason)
    return name
