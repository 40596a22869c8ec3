"""Calls of functions: tasks of which each has many like it, created with as little as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from holdfast.engine import validation
from holdfast.engine.desk import Desk
from holdfast.engine.listing import Page
from holdfast.engine.operations import CreateTasks
from holdfast.engine.prepared import Edge, Prepared
from holdfast.engine.tasks import USER
from holdfast.engine.traced import Starting
from holdfast.model.frozen_record import fill
from holdfast.model.run import Created

T = TypeVar("T")


class Calling:
    """Creates what is prepared, for whoever makes something else of the answer."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        limit = desk.settings.max_payload
        self.edge = Edge(ids=desk.ids, max_payload=limit, now=desk.now)

    def submit(
        self,
        prepared: Prepared,
        payload: object,
        read: Callable[[list[Created]], T],
        *,
        key: str | None = None,
        connection: object = None,
    ) -> Future[T]:
        """Create one task."""
        starting = Starting()
        trace = starting.trace
        row = prepared.row(self.edge, payload, key, trace)
        operation = fill(CreateTasks, {"tasks": (row,), "actor": USER})
        told = starting.telling(read, row.title, trace)
        return self._desk.submit(operation, connection, read=told)

    def submit_many(
        self, prepared: Prepared, payloads: Sequence[object], *, connection: object = None
    ) -> Future[Page[Created]]:
        """Create many tasks, all or none of them."""
        validation.number("tasks", len(payloads), least=0, most=validation.MAX_BATCH)
        edge = replace(self.edge, ids=self._desk.ids.ahead(len(payloads)))
        rows = validation.batch(prepared.row(edge, payload) for payload in payloads)
        return self._desk.submit(CreateTasks(tasks=rows, actor=USER), connection)
