"""Tasks that are asked for again and again: what all of them have in common is checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from holdfast.engine import validation
from holdfast.engine.asked import TaskRow
from holdfast.errors import InvalidInput
from holdfast.ids import TaskIds
from holdfast.model.frozen_record import fill
from holdfast.model.task import NewTask
from holdfast.model.text import digest, encode_json
from holdfast.model.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Edge:
    """What a task takes from where it is asked for: its id, the limit of its payload, the time."""

    ids: TaskIds
    max_payload: int
    now: Callable[[], int]


class Prepared:
    """Tasks that differ in their payloads and keys, and in the traces they are asked for in."""

    def __init__(self, task: NewTask) -> None:
        self.task = task

    def row(
        self, edge: Edge, payload: object, key: str | None = None, trace: Trace | None = None
    ) -> TaskRow:
        """One of them; what is wrong with it is said as of a task that is asked for alone."""
        if self._alike is None:
            task = replace(self.task, payload=payload, key=key, trace=trace)
            return validation.new_task(task, edge.ids, max_payload=edge.max_payload, now=edge.now)
        values, besides = self._alike
        text = encode_json("payload", payload, limit=edge.max_payload)
        keyed = {}
        if key is not None:
            # A key is for this body alone.
            keyed = {"key": validation.own_key(key), "body_digest": digest(text, *besides)}
        own = {"id": edge.ids.task(), "payload": text, "trace": trace}
        return fill(TaskRow, {**values, **own, **keyed})

    @cached_property
    def _alike(self) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        """What they share, and that in the words that a key stands for; None where they do not."""
        # When one is due may be counted from when it is asked for.
        if self.task.scheduled_for is not None:
            return None
        try:
            values = validation.alike(self.task)
        except InvalidInput:
            return None
        return values, validation.asked_besides(fill(TaskRow, {**values}))
