"""Messages that wait in the store, for front ends: seen, replayed after the fix, or dropped."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.bus.consumer_groups import group_of
from holdfast.bus.parked_messages import Kept, Parked
from holdfast.engine.engine import Engine
from holdfast.engine.input.validation import number
from holdfast.engine.read.pages import PAGE, read_limit
from holdfast.errors import NotFound
from holdfast.model.result import TransitionResult
from holdfast.model.text import clean_key
from holdfast.service.messages import view_message
from holdfast.service.views import View, present, tell_time


class ParkedMessages:
    """What handlers failed on, whatever bus it came over."""

    def __init__(self, engine: Engine) -> None:
        self._parked = Parked(engine)

    def page(self, *, everything: bool = False, limit: int = PAGE, after: int = 0) -> View:
        """Those that are parked or were replayed and not tried yet; or everything that waits."""
        number("after", after, least=0)
        kept = self._parked.list(parked=not everything, after=after, limit=read_limit(limit))
        following = kept[-1].arrival if len(kept) == limit else None
        return present(items=[_view(each) for each in kept], next=following)

    def replay(self, handler: str, message_id: str) -> View:
        return _answer(self._parked.replay, handler, message_id)

    def drop(self, handler: str, message_id: str) -> View:
        return _answer(self._parked.drop, handler, message_id)

    def waiting(self, channel: str, group: str | None = None) -> View:
        """How many messages of a channel wait for a group, or for any, and how many are parked."""
        counted = [
            numbers
            for (each, handler), numbers in self._parked.count().items()
            if each == channel and group in {None, group_of(handler)}
        ]
        return {
            "waiting": sum(waiting for waiting, _ in counted),
            "parked": sum(parked for _, parked in counted),
        }


def _answer(change: Callable[[str, str], TransitionResult], handler: str, message_id: str) -> View:
    if not change(clean_key("handler", handler), clean_key("message_id", message_id)).ok:
        raise NotFound(f"{message_id} for {handler}", "parked message", "`holdfast bus parked`")
    return {"ok": True, "repeated": False, "handler": handler, "message_id": message_id}


def _view(kept: Kept) -> View:
    return present(
        handler=kept.handler,
        message_id=kept.message_id,
        channel=kept.channel,
        about=kept.about,
        state=kept.state,
        tries=kept.tries,
        due_at=tell_time(kept.due_at),
        parked_at=tell_time(kept.parked_at),
        error=kept.error,
        envelope=view_message(kept.envelope),
    )
