"""Effects of attempts: recorded under the fence, within the storage bounds, and read in pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.effect_limits import Bounds, find_refusal
from holdfast.engine.core.operation import HeldTask
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.input import validation
from holdfast.engine.state.durable import RecordEffect
from holdfast.errors import InvalidInput
from holdfast.model.effect import EffectRecord
from holdfast.model.text import clean_key, encode_json
from holdfast.store.database import Row, Transaction

EFFECTS_AT_ONCE = 500


class EffectOperations:
    """The part of the worker's protocol that is about effects."""

    _context: EngineContext
    # Reads the task and the fence that a token proves.
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
        """All effects of a task in its present epoch, by name."""
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
        """Effects of a task, oldest first, `limit` of them after the one named `after`."""
        identifier = validation.task_id(task_id)

        def read(tx: Transaction) -> list[Row]:
            start: Row = {"attempt": -1, "recorded_at": 0, "name": ""}
            if after is not None:
                found = tx.read("effect_named", task_id=identifier, name=after)
                if not found:
                    raise InvalidInput("after", "names no effect of this task any more")
                start = {each: found[0][each] for each in start}
            return tx.read("effects_behind", task_id=identifier, count=limit, **start)

        return {row["name"]: json.loads(row["value"]) for row in self._context.reads.share(read)}

    @reading
    def check_room(self, task_id: str, token: str, name: str, size: int) -> None:
        """Raise `TooMuchKept` if there is no room for so many bytes under a new name."""
        held = self._held(task_id, token)
        effect = (held["task_id"], held["fence"], clean_key("name", name))
        bounds = Bounds.of(self._context.settings)
        if no_room := self._context.reads.share(lambda tx: find_refusal(tx, bounds, effect, size)):
            raise no_room
