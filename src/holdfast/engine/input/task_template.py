"""Task templates (1.4 times as many tasks in a call): what many tasks share is checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from holdfast.engine.core.context import USER, EngineContext
from holdfast.engine.core.operation import CreateTasks
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.input import validation
from holdfast.engine.input.blueprint import encode_concurrency
from holdfast.engine.input.trace_start import StartTrace
from holdfast.engine.read.key_addresses import follow_keys
from holdfast.engine.read.pages import Page
from holdfast.errors import InvalidInput
from holdfast.ids import TaskIdSource
from holdfast.model.frozen_record import make_record
from holdfast.model.run import CreateResult
from holdfast.model.task import NewTask
from holdfast.model.text import digest, encode_json
from holdfast.model.trace import Trace
from holdfast.model.workflow.step import Concurrency


@dataclass(frozen=True, kw_only=True)
class TaskSource:
    """What a new task takes from its store: an id, the limit of its payload, and the time."""

    ids: TaskIdSource
    max_payload: int
    now: Callable[[], int]


class TemplatedTask(NamedTuple):
    """What one task of a template has of its own; its `concurrency` goes before that of all."""

    payload: object
    key: str | None = None
    concurrency: Concurrency | None = None


class TaskTemplate:
    """Tasks that differ only in payload, key, concurrency and trace."""

    def __init__(self, task: NewTask) -> None:
        self.task = task

    def make_row(
        self, source: TaskSource, own: TemplatedTask, trace: Trace | None = None
    ) -> TaskRow:
        """One task of the template; a mistake is reported as for a task that is created alone."""
        payload, key, concurrency = own
        if self._shared is None:
            limit = concurrency or self.task.concurrency
            task = replace(self.task, payload=payload, key=key, trace=trace, concurrency=limit)
            return validation.new_task(
                task, source.ids, max_payload=source.max_payload, now=source.now
            )
        values, function = self._shared
        text = encode_json("payload", payload, limit=source.max_payload)
        told = {"id": source.ids.task(), "payload": text, "trace": trace}
        if key is not None:
            # A key may be used again only with the same function and arguments.
            told |= {"key": validation.caller_key(key), "body_digest": digest(text, *function)}
        if concurrency is not None:
            told |= encode_concurrency(concurrency)
        return make_record(TaskRow, {**values, **told})

    @cached_property
    def _shared(self) -> tuple[dict[str, Any], tuple[str, str]] | None:
        """The shared fields, and the function for the digest; None if the tasks share none."""
        # The time at which a task is due may be counted from its creation.
        if self.task.scheduled_for is not None:
            return None
        try:
            values = validation.shared_fields(self.task)
        except InvalidInput:
            return None
        return values, validation.describe_function(make_record(TaskRow, {**values}))


T = TypeVar("T")


class TemplatedCreation:
    """Creates tasks of templates; the caller says what is made of the reply."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        limit = context.settings.max_payload
        self.source = TaskSource(ids=context.ids, max_payload=limit, now=context.now)

    def submit(
        self,
        template: TaskTemplate,
        task: TemplatedTask,
        read: Callable[[list[CreateResult]], T],
        *,
        connection: object = None,
    ) -> Future[T]:
        """Create one task."""
        start_trace = StartTrace()
        trace = start_trace.trace
        template = self._follow_keys(template, connection)
        row = template.make_row(self.source, task, trace)
        operation = make_record(CreateTasks, {"tasks": (row,), "actor": USER})
        read_and_record = start_trace.record_when_read(read, row.title, trace)
        return self._context.submit(operation, connection, read=read_and_record)

    def submit_many(
        self, template: TaskTemplate, tasks: Sequence[TemplatedTask], *, connection: object = None
    ) -> Future[Page[CreateResult]]:
        """Create many tasks, all or none of them."""
        validation.number("tasks", len(tasks), least=0, most=validation.MAX_BATCH)
        template = self._follow_keys(template, connection)
        source = replace(self.source, ids=self._context.ids.draw_task_ids(len(tasks)))
        rows = validation.bounded_batch(template.make_row(source, task) for task in tasks)
        return self._context.submit(CreateTasks(tasks=rows, actor=USER), connection)

    def _follow_keys(self, template: TaskTemplate, connection: object) -> TaskTemplate:
        """The template with ids in place of the keys of other tasks, if it has any."""
        task = follow_keys(self._context, template.task, connection)
        return template if task is template.task else TaskTemplate(task)
