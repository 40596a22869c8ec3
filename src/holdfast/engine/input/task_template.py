"""Calls of functions: tasks of which each has many like it, created with as little as can be.

Tasks that are asked for again and again: what all of them have in common is checked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from holdfast.engine.core.context import USER, EngineContext
from holdfast.engine.core.operation import CreateTasks
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.input import validation
from holdfast.engine.input.trace_start import StartTrace
from holdfast.engine.read.pages import Page
from holdfast.errors import InvalidInput
from holdfast.ids import TaskIdSource
from holdfast.model.frozen_record import make_record
from holdfast.model.run import CreateResult
from holdfast.model.task import NewTask
from holdfast.model.text import digest, encode_json
from holdfast.model.trace import Trace


@dataclass(frozen=True, kw_only=True)
class TaskSource:
    """What a task takes from where it is asked for: its id, the limit of its payload, the time."""

    ids: TaskIdSource
    max_payload: int
    now: Callable[[], int]


class TaskTemplate:
    """Tasks that differ in their payloads and keys, and in the traces they are asked for in."""

    def __init__(self, task: NewTask) -> None:
        self.task = task

    def make_row(
        self,
        source: TaskSource,
        payload: object,
        key: str | None = None,
        trace: Trace | None = None,
    ) -> TaskRow:
        """One of them; what is wrong with it is said as of a task that is asked for alone."""
        if self._shared is None:
            task = replace(self.task, payload=payload, key=key, trace=trace)
            return validation.new_task(
                task, source.ids, max_payload=source.max_payload, now=source.now
            )
        values, besides = self._shared
        text = encode_json("payload", payload, limit=source.max_payload)
        keyed = {}
        if key is not None:
            # A key is for this body alone.
            keyed = {"key": validation.caller_key(key), "body_digest": digest(text, *besides)}
        own = {"id": source.ids.task(), "payload": text, "trace": trace}
        return make_record(TaskRow, {**values, **own, **keyed})

    @cached_property
    def _shared(self) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        """What they share, and that in the words that a key stands for; None where they do not."""
        # When one is due may be counted from when it is asked for.
        if self.task.scheduled_for is not None:
            return None
        try:
            values = validation.shared_fields(self.task)
        except InvalidInput:
            return None
        return values, validation.body_parts(make_record(TaskRow, {**values}))


T = TypeVar("T")


class TemplatedCreation:
    """Creates what is prepared, for whoever makes something else of the answer."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        limit = context.settings.max_payload
        self.source = TaskSource(ids=context.ids, max_payload=limit, now=context.now)

    def submit(
        self,
        template: TaskTemplate,
        payload: object,
        read: Callable[[list[CreateResult]], T],
        *,
        key: str | None = None,
        connection: object = None,
    ) -> Future[T]:
        """Create one task."""
        start_trace = StartTrace()
        trace = start_trace.trace
        row = template.make_row(self.source, payload, key, trace)
        operation = make_record(CreateTasks, {"tasks": (row,), "actor": USER})
        read_and_record = start_trace.record_when_read(read, row.title, trace)
        return self._context.submit(operation, connection, read=read_and_record)

    def submit_many(
        self, template: TaskTemplate, payloads: Sequence[object], *, connection: object = None
    ) -> Future[Page[CreateResult]]:
        """Create many tasks, all or none of them."""
        validation.number("tasks", len(payloads), least=0, most=validation.MAX_BATCH)
        source = replace(self.source, ids=self._context.ids.draw_task_ids(len(payloads)))
        rows = validation.bounded_batch(template.make_row(source, payload) for payload in payloads)
        return self._context.submit(CreateTasks(tasks=rows, actor=USER), connection)
