"""Runs: the facade that starts, controls and reads them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack

from holdfast.engine.core.context import USER, EngineContext
from holdfast.engine.core.operation import (
    AdvanceRun,
    CancelRun,
    ExpireRun,
    HoldRun,
    RaiseBudget,
    RetryRun,
    UnholdRun,
)
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.input import validation
from holdfast.engine.input.trace_start import StartTrace
from holdfast.engine.read.addresses import read_task_at
from holdfast.engine.read.key_addresses import choose_id_or_key, find_run_id
from holdfast.engine.read.pages import (
    PAGE_SIZE,
    Page,
    choose_run_counts,
    choose_runs_query,
    read_runs,
)
from holdfast.engine.read.records import read_event, read_run, read_value
from holdfast.engine.read.task_records import read_task
from holdfast.engine.read.task_state import name_tasks, read_tasks_with_state
from holdfast.errors import InvalidInput, NotFound
from holdfast.ids import AnyId
from holdfast.model.budget import to_millionths
from holdfast.model.event import Event
from holdfast.model.filters import RunFilters
from holdfast.model.result import AdvanceResult, TransitionResult
from holdfast.model.run import CreateResult, NewRun, Run, RunRecord
from holdfast.model.status import Hold, Status
from holdfast.model.task import Task
from holdfast.model.text import clean_name, clean_text
from holdfast.model.workflow.graph import Workflow
from holdfast.store.database import Row, Transaction

T = TypeVar("T")

OVERDUE_AT_ONCE = 100


class Runs:
    """Operations on runs; each result says whether it happened and, if not, why."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def start(
        self, run: NewRun, *, actor: str = USER, connection: object = None
    ) -> Future[CreateResult]:
        """Start a run; the same key, workflow and input give back the existing one untouched.

        With a `connection` it is part of the application's own transaction there.
        """
        return self.start_and_read(run, _same, actor=actor, connection=connection)

    def start_and_read(
        self,
        run: NewRun,
        read: Callable[[CreateResult], T],
        *,
        actor: str = USER,
        connection: object = None,
    ) -> Future[T]:
        """Start a run; the result of the future is what `read` makes of the reply."""
        start_trace = StartTrace()
        run = start_trace.add_trace(run)
        start = validation.new_run(
            run,
            self._context.ids,
            max_payload=self._context.settings.max_payload,
            actor_name=actor if actor is USER else validation.actor(actor),
            now=self._context.now,
        )
        if run.workflow.called_by_name and connection is None:
            self._check_called(run.workflow)
        read_and_record = start_trace.record_when_read(read, run.workflow.name, run.trace)
        return self._context.submit(start, connection, read=read_and_record)

    def _check_called(self, workflow: Workflow) -> None:
        """Refuse a run of which a step calls a workflow that the store does not know."""
        known = {each[0] for each in workflow.definitions}
        for name in sorted(workflow.called_by_name):
            if name not in known and not self._context.view(partial(_newest_version, name=name)):
                reason = f"it calls {name!r}, which this store does not know"
                raise InvalidInput("workflow", f"{reason}; `holdfast workflow add {name}.yaml`")

    @operation
    def cancel(
        self, run_id: AnyId, *, actor: str = USER, connection: object = None
    ) -> Future[TransitionResult]:
        """End a run and every open task of it, at once and for good.

        With a `connection` the cancel is part of the application's own transaction there.
        """
        found = find_run_id(self._context, run_id, connection=connection)
        cancel = CancelRun(run_id=found, actor=validation.actor(actor))
        return self._context.submit(cancel, connection)

    @operation
    def pause(self, run_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Let what runs finish, and start nothing new."""
        return self._context.submit(
            HoldRun(**self._run_and_actor(run_id, actor), reason=Hold.PAUSED)
        )

    @operation
    def resume(
        self,
        run_id: AnyId,
        *,
        add_usd: float | None = None,
        add_attempts: int | None = None,
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Lift `paused`; what is added raises the budget of the run, and lifts `budget` too.

        A run that is scheduled for later, and not paused, starts now.
        """
        if add_usd is None and add_attempts is None:
            found, named = find_run_id(self._context, run_id), validation.actor(actor)
            resume = UnholdRun(run_id=found, actor=named, reason=Hold.PAUSED, begins=True)
            return self._context.submit(resume)
        about = self._run_and_actor(run_id, actor)
        usd = 0 if add_usd is None else to_millionths("add_usd", add_usd)
        attempts = 0 if add_attempts is None else validation.count("add_attempts", add_attempts)
        return self._context.submit(RaiseBudget(**about, usd=usd, attempts=attempts))

    @operation
    def hold(self, run_id: AnyId, reason: str, *, actor: str = USER) -> Future[TransitionResult]:
        """Put a hold with a reason on a run."""
        return self._context.submit(
            HoldRun(**self._run_and_actor(run_id, actor), reason=validation.run_hold(reason))
        )

    @operation
    def unhold(self, run_id: AnyId, reason: str, *, actor: str = USER) -> Future[TransitionResult]:
        """Remove the hold with one reason from a run."""
        return self._context.submit(
            UnholdRun(
                run_id=find_run_id(self._context, run_id),
                actor=validation.actor(actor),
                reason=validation.liftable_run_hold(reason),
            )
        )

    @operation
    def retry(
        self, run_id: AnyId, *, step: str | None = None, actor: str = USER
    ) -> Future[TransitionResult]:
        """Try again the tasks that failed or were cancelled; with `step`, it and all that needs it.

        A step in a loop is named with its item: `build.2.implement`; `build.2` is the item.
        """
        chosen = None if step is None else clean_name("step", step)
        return self._context.submit(RetryRun(**self._run_and_actor(run_id, actor), step=chosen))

    @operation
    def advance(self, run_id: AnyId) -> Future[AdvanceResult]:
        """Derive from the run's state what may go on; as often as anyone likes."""
        return self._context.submit(AdvanceRun(run_id=find_run_id(self._context, run_id)))

    @operation
    def begin_due(self) -> Future[list[TransitionResult]]:
        """Begin the runs whose time has come, which were scheduled for later when they started."""
        rows = self._context.view(lambda tx: tx.read("runs_to_begin", count=OVERDUE_AT_ONCE))
        due = [UnholdRun(run_id=row["id"], actor="recovery", reason=Hold.SCHEDULED) for row in rows]
        return self._context.submit_all(due)

    @operation
    def expire(self) -> Future[list[TransitionResult]]:
        """End the runs whose deadline has passed, each with all that is open of it."""
        rows = self._context.view(lambda tx: tx.read("overdue_runs", count=OVERDUE_AT_ONCE))
        overdue = [ExpireRun(run_id=row["id"]) for row in rows]
        return self._context.submit_all(overdue)

    @reading
    def get(self, run_id: AnyId | None = None, *, key: str | None = None) -> Run:
        """A run as it stands now, by its id or by its key."""
        identifier = find_run_id(self._context, choose_id_or_key("run_id", run_id, key))
        rows = self._context.view(lambda tx: tx.read("run_by_id", run_id=identifier))
        if not rows:
            raise NotFound(identifier)
        return read_run(rows[0])

    @reading
    def list(
        self, *, limit: int = PAGE_SIZE, after: AnyId | None = None, **filters: Unpack[RunFilters]
    ) -> Page[Run]:
        """Runs, newest first, at most 1,000; `after` the last id of a page comes the next.

        The filters are `status`, `workflow`, `key`, `labels`, and a `step` and `agent` of a task;
        `since` and `until` are times of the start, or durations ago; `error` and `name` are texts
        to search for.
        """
        query, asked = choose_runs_query(self._context.now, limit=limit, after=after, **filters)
        rows = self._context.view(lambda tx: read_runs(tx, query, asked))
        return [read_run(row) for row in rows]

    @reading
    def counts(self, **filters: Unpack[RunFilters]) -> dict[str, int]:
        """How many runs there are in each status, with the filters of `list`."""
        query, asked = choose_run_counts(self._context.now, called=True, **filters)
        rows = self._context.view(lambda tx: read_runs(tx, query, asked))
        return {row["status"]: row["runs"] for row in rows}

    @reading
    def outputs(self, run_id: AnyId) -> dict[str, Any]:
        """The outputs of the last steps of a run, by step: those that no other step needs."""
        rows = self._rows_of_run("run_outputs", run_id)
        return {row["step"]: read_value(row["output"]) for row in rows}

    @reading
    def tasks(self, run_id: AnyId) -> Page[Task]:
        """The tasks of a run, one for each step, in the order they were written."""
        identifier = find_run_id(self._context, run_id)
        return self._context.view(
            lambda tx: read_tasks_with_state(tx, _rows_of_run(tx, "run_tasks", identifier))
        )

    @reading
    def failed_at(self, run_id: AnyId) -> str | None:
        """The address of the first task that failed by itself, or whose cancel failed the run."""
        identifier = find_run_id(self._context, run_id)

        def read(tx: Transaction) -> str | None:
            rows = _rows_of_run(tx, "failed_in_run", identifier)
            failed = [row["id"] for row in rows if row["status"] == Status.FAILED]
            failed = failed or [row["id"] for row in tx.read("cancelled_in_run", run_id=identifier)]
            return name_tasks(tx, failed[:1])[failed[0]] if failed else None

        return self._context.view(read)

    @reading
    def task(self, run_id: AnyId, address: str) -> Task:
        """One task by where it stands: `plan`, or `build.2.implement` in a loop.

        Items count from 1; `build.2` is the item itself, `build` the loop.
        """
        identifier = find_run_id(self._context, run_id)
        place = clean_text("address", address)
        return self._context.view(
            lambda tx: read_tasks_with_state(tx, [read_task_at(tx, identifier, place)])
        )[0]

    @reading
    def events(self, run_id: AnyId) -> Page[Event]:
        """The history of the run and all its tasks, in the order it was written."""
        return [read_event(row) for row in self._rows_of_run("run_events", run_id)]

    @reading
    def record(self, run_id: AnyId) -> RunRecord:
        """A run, its tasks, its events and what it has called, all at the same moment."""
        identifier = find_run_id(self._context, run_id)

        def read(tx: Transaction) -> RunRecord:
            rows = tx.read("run_by_id", run_id=identifier)
            if not rows:
                raise NotFound(identifier)
            below = [row["id"] for row in tx.read("runs_below", ids=[identifier])]
            called = tx.read("runs_by_id", ids=sorted(below))
            records = [_record(tx, row) for row in sorted(called, key=lambda row: str(row["id"]))]
            return replace(_record(tx, rows[0]), called=tuple(records))

        return self._context.view(read)

    def _run_and_actor(self, run_id: AnyId, actor: str) -> dict[str, str]:
        return {"run_id": find_run_id(self._context, run_id), "actor": validation.actor(actor)}

    def _rows_of_run(self, query: str, run_id: AnyId) -> Page[Row]:
        identifier = find_run_id(self._context, run_id)
        return self._context.view(lambda tx: _rows_of_run(tx, query, identifier))


def _record(tx: Transaction, row: Row) -> RunRecord:
    return RunRecord(
        run=read_run(row),
        tasks=tuple(map(read_task, tx.read("run_tasks", run_id=row["id"]))),
        events=tuple(map(read_event, tx.read("run_events", run_id=row["id"]))),
    )


def _rows_of_run(tx: Transaction, query: str, run_id: str) -> list[Row]:
    if not tx.read("run_by_id", run_id=run_id):
        raise NotFound(run_id)
    return tx.read(query, run_id=run_id)


def _newest_version(tx: Transaction, *, name: str) -> list[Row]:
    return tx.read("newest_version", name=name)


def _same(created: CreateResult) -> CreateResult:
    return created
