"""Signals: what a suspended function waits for, kept until it is taken, once."""

from __future__ import annotations

from concurrent.futures import Future

from holdfast.engine import validation
from holdfast.engine.desk import Desk
from holdfast.engine.durable_operations import SendSignal
from holdfast.engine.edge import operation
from holdfast.ids import AnyId
from holdfast.model.result import TransitionResult
from holdfast.model.text import clean_key, clean_name, encode_json


class Signals:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def send(
        self,
        target: AnyId,
        name: str,
        payload: object = None,
        *,
        key: str | None = None,
        actor: str = "user",
    ) -> Future[TransitionResult]:
        """Send a run, or a task without one, what it waits for; a `key` is sent once.

        Another payload under the key is a `KeyConflict`.
        """
        return self._desk.submit(
            SendSignal(
                id=self._desk.ids.signal(),
                target=validation.target(target),
                signal=clean_name("name", name),
                payload=encode_json("payload", payload, limit=self._desk.settings.max_payload),
                key=None if key is None else clean_key("key", key),
                actor=validation.actor(actor),
            )
        )
