"""Effects of attempts: remembered under the fence, within the bounds, and read in pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.kept_totals import Bounds, refusal
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.input import validation
from holdfast.engine.state.durable import RecordEffect
from holdfast.engine.state.reports import HeldTask
from holdfast.errors import InvalidInput
from holdfast.model.effect import EffectRecord
from holdfast.model.text import clean_key, encode_json
from holdfast.store.database import Row, Transaction

# How many effects are read at once.
EFFECTS_AT_ONCE = 500


class EffectOperations:
    """The part of the worker's protocol that is about effects."""

    _context: EngineContext
    # The task and the fence that a token proves.
    _held: Callable[[str, str], HeldTask]

    @operation
    def record_effect(
        self, task_id: str, token: str, name: str, value: object, *, beside: int = 0
    ) -> Future[EffectRecord]:
        """Remember what a side effect gave; the first value under a name stays.

        `beside` is how many bytes are kept outside of the store with it.
        """
        return self._context.submit(
            RecordEffect(
                **self._held(task_id, token),
                name=clean_key("name", name),
                value=encode_json("value", value, limit=self._context.settings.max_output),
                beside=beside,
            )
        )

    @reading
    def effects(self, task_id: str) -> dict[str, Any]:
        """What a task remembers in its present epoch, by name."""
        known, after = dict[str, Any](), None
        while page := self.effects_page(task_id, after):
            known |= page
            after = next(reversed(page)) if len(page) == EFFECTS_AT_ONCE else None
            if after is None:
                break
        return known

    @reading
    def effects_page(
        self, task_id: str, after: str | None = None, limit: int = EFFECTS_AT_ONCE
    ) -> dict[str, Any]:
        """So many of them, oldest first, behind the one of a name."""
        identifier = validation.task_id(task_id)

        def read(tx: Transaction) -> list[Row]:
            start: Row = {"attempt": -1, "recorded_at": 0, "name": ""}
            if after is not None:
                found = tx.read("effect_named", task_id=identifier, name=after)
                if not found:
                    raise InvalidInput("after", "names no effect of this task any more")
                start = {each: found[0][each] for each in start}
            return tx.read("effects_behind", task_id=identifier, count=limit, **start)

        return {row["name"]: json.loads(row["value"]) for row in self._context.view(read)}

    @reading
    def check_room(self, task_id: str, token: str, name: str, size: int) -> None:
        """Raise `TooMuchKept` before so many bytes are kept under a name that is not known yet."""
        held = self._held(task_id, token)
        effect = (held["task_id"], held["fence"], clean_key("name", name))
        bounds = Bounds.of(self._context.settings)
        if no_room := self._context.view(lambda tx: refusal(tx, bounds, effect, size)):
            raise no_room
