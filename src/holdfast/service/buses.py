"""The buses for front ends: groups and how far behind they are, messages, and what is parked."""

from __future__ import annotations

from typing import Self

from holdfast.bus.channel import FOR_COMMANDS, Channel
from holdfast.bus.envelope import read_envelope
from holdfast.bus.execution_bus import ExecutionBus, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.groups import forget
from holdfast.bus.parked import Kept, Parked
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.result import TransitionResult
from holdfast.service.views import View, present, tell_time


class Buses:
    """The bus of a store: the one in it, or the Redis whose URL is given."""

    def __init__(self, engine: Engine, url: str | None = None) -> None:
        self._engine = engine
        self._parked = Parked(engine)
        self._bus: ExecutionBus = RedisBus(url) if url else SqlBus(engine)

    def groups(self) -> View:
        return {
            "items": [
                {"channel": channel.value, "group": group, "lag": self.lag(channel.value, group)}
                for channel in Channel
                for group in self._bus.groups(channel)
            ]
        }

    def lag(self, channel: str, group: str) -> int:
        return self._bus.lag(self._known(channel, group))

    def forget(self, channel: str, group: str) -> View:
        forget(self._engine, self._bus, self._known(channel, group))
        return {"ok": True, "channel": channel, "group": group}

    def tail(self, channel: str, count: int) -> View:
        """The newest messages of a channel, in order."""
        return {"items": [each.as_json() for each in self._bus.latest(_channel(channel), count)]}

    def publish(self, channel: str, text: str) -> View:
        chosen, envelope = _channel(channel), read_envelope(text)
        publish = self._bus.publish_command if chosen in FOR_COMMANDS else self._bus.publish_event
        publish(chosen, envelope)
        return {"ok": True, "channel": channel, "message_id": envelope.message_id}

    def parked(self, *, everything: bool, limit: int) -> View:
        kept = self._parked.list(parked=not everything, limit=limit)
        return {"items": [_view(each) for each in kept]}

    def replay(self, handler: str, message_id: str) -> View:
        return _answer(self._parked.replay(handler, message_id), handler, message_id)

    def drop(self, handler: str, message_id: str) -> View:
        return _answer(self._parked.drop(handler, message_id), handler, message_id)

    def _known(self, channel: str, group: str) -> Subscription:
        chosen = _channel(channel)
        known = self._bus.groups(chosen)
        if group not in known:
            hint = f"there is {', '.join(known)}" if known else "there is none"
            raise NotFound(group, f"group of {channel}", hint)
        return Subscription(channel=chosen, group=group)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bus.close()


def _channel(name: str) -> Channel:
    known = [each.value for each in Channel]
    if name not in known:
        raise InvalidInput("channel", f"{name!r} is none; one of {', '.join(known)} is")
    return Channel(name)


def _answer(answer: TransitionResult, handler: str, message_id: str) -> View:
    if not answer.ok:
        raise NotFound(f"{message_id} for {handler}", "parked message", "`holdfast bus parked`")
    return {"ok": True, "handler": handler, "message_id": message_id}


def _view(kept: Kept) -> View:
    return present(
        handler=kept.handler,
        message_id=kept.message_id,
        channel=kept.channel,
        about=kept.about,
        tries=kept.tries,
        due_at=tell_time(kept.due_at),
        parked_at=tell_time(kept.parked_at),
        error=kept.error,
        envelope=kept.envelope.as_json(),
    )
