"""Tasks: the facade that creates, controls and reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import Any, TypeVar, Unpack

from holdfast.engine.core.context import USER, EngineContext
from holdfast.engine.core.operation import (
    AdvancePlan,
    AnswerTask,
    BlockTask,
    CancelTask,
    CreateTasks,
    DeleteTask,
    EditTask,
    EnqueueTask,
    FinalizePlan,
    HoldTask,
    ReopenTask,
    ReorderPlan,
    ResetTask,
    RetryTask,
    RunNow,
    SettleTask,
    StartPlanning,
    UnblockTask,
    UnholdTask,
)
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.input import validation
from holdfast.engine.input.trace_start import StartTrace
from holdfast.engine.read.key_addresses import (
    choose_id_or_key,
    find_run_id,
    find_task_id,
    find_task_ids,
    follow_keys,
)
from holdfast.engine.read.missing_functions import (
    WANTED_AT_ONCE,
    HoldLifter,
    WantedFunctions,
    read_wanted_functions,
)
from holdfast.engine.read.pages import PAGE_SIZE, Page, choose_tasks_query, read_task_page
from holdfast.engine.read.records import read_event
from holdfast.engine.read.task_state import read_tasks_with_state
from holdfast.engine.state.expected_version import VersionWait
from holdfast.engine.state.usage_limits import LiftLimit
from holdfast.errors import InvalidInput, NotFound
from holdfast.ids import AnyId, TaskIdSource
from holdfast.model.event import Event, add_stops, read_attempts
from holdfast.model.filters import SharedFilters
from holdfast.model.result import TransitionResult
from holdfast.model.run import CreateResult
from holdfast.model.status import Hold
from holdfast.model.task import Attempt, NewTask, Task
from holdfast.model.text import clean_name, clean_text
from holdfast.model.units import Moment, parse_moment
from holdfast.model.verdict import Comments
from holdfast.model.worker import EVERY_AGENT
from holdfast.store.database import Transaction

T = TypeVar("T")


class Tasks:
    """Operations on tasks; each result says whether it happened and, if not, why."""

    def __init__(self, context: EngineContext, wait: VersionWait | None = None) -> None:
        """Inside a transaction of a caller there is no `wait`: no version can come meanwhile."""
        self._context = context
        self._version_wait = wait

    @operation
    def create_many(
        self, tasks: Sequence[NewTask], *, actor: str = USER, connection: object = None
    ) -> Future[Page[CreateResult]]:
        """Create tasks, all or none of them; one whose key exists gives back the existing one.

        With a `connection` they are part of the application's own transaction there.
        """
        wanted = validation.listed("tasks", tasks)
        validation.number("tasks", len(wanted), least=0, most=validation.MAX_BATCH)
        ids = self._context.ids.draw_task_ids(len(wanted))
        rows = validation.bounded_batch(self._task_row(task, ids, connection) for task in wanted)
        operation = CreateTasks(tasks=rows, actor=validation.actor(actor))
        return self._context.submit(operation, connection)

    @operation
    def create(
        self, task: NewTask, *, actor: str = USER, connection: object = None
    ) -> Future[CreateResult]:
        """Create one task; the same key, function and payload give back the existing one."""
        start_trace = StartTrace()
        task = start_trace.add_trace(task)
        row = self._task_row(task, self._context.ids, connection)
        operation = CreateTasks(tasks=(row,), actor=validation.actor(actor))
        read = start_trace.record_when_read(_first, task.title, task.trace)
        return self._context.submit(operation, connection, read=read)

    @operation
    def enqueue(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Move an idle task into the queue."""
        return self._context.submit(EnqueueTask(**self._task_and_actor(task_id, actor)))

    @operation
    def run_now(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Put a task first in line: order, time and `paused` no longer hold it up.

        A sleep of its function is cut short, and is over for each later attempt. A task that waits
        for a signal, an answer or its children is refused, with what would end that.
        """
        return self._context.submit(RunNow(**self._task_and_actor(task_id, actor)))

    @operation
    def cancel(
        self, task_id: AnyId, *, actor: str = USER, connection: object = None
    ) -> Future[TransitionResult]:
        """End a task and all below it; whatever comes later from its worker changes nothing.

        With a `connection` the cancel is part of the application's own transaction there.
        """
        found = find_task_id(self._context, task_id, connection=connection)
        cancel = CancelTask(task_id=found, actor=validation.actor(actor))
        return self._context.submit(cancel, connection)

    @operation
    def reset(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Take a task back to idle, as if it had never run."""
        return self._context.submit(ResetTask(**self._task_and_actor(task_id, actor)))

    @operation
    def retry(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Try a failed or cancelled task again, and all that failed with it in its run."""
        return self._context.submit(RetryTask(**self._task_and_actor(task_id, actor)))

    @operation
    def reopen(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Do an ended task again, and everything that needs it."""
        return self._context.submit(ReopenTask(**self._task_and_actor(task_id, actor)))

    @operation
    def follow_up(
        self,
        task_id: AnyId,
        message: object = None,
        *,
        comments: Comments = (),
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Do an ended task again, with more to do as its feedback, and everything that needs it.

        The feedback is the message, or with comments on files `{reason, comments}`.
        """
        kept = validation.said_with_comments("message", message, comments)
        if kept is None:
            raise InvalidInput("message", "is missing; say what is to be done now")
        return self._context.submit(
            ReopenTask(**self._task_and_actor(task_id, actor), follow_up=kept)
        )

    @operation
    def delete(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Remove a task that nothing needs."""
        return self._context.submit(DeleteTask(**self._task_and_actor(task_id, actor)))

    @operation
    def approve(
        self, task_id: AnyId, note: object = None, *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Let an approval pass, or a task that waits for one run again."""
        kept = None if note is None else validation.said("note", note)
        named = self._task_and_actor(task_id, actor)
        return self._context.submit(SettleTask(**named, approved=True, note=kept))

    @operation
    def reject(
        self,
        task_id: AnyId,
        reason: object = None,
        *,
        comments: Comments = (),
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Fail an approval, or a task that waits for one; the reason is its error.

        An approval with `on_failure: {goto}` goes back to that step instead, with the reason and
        the comments on files as its feedback.
        """
        kept = validation.said_with_comments("reason", reason, comments)
        named = self._task_and_actor(task_id, actor)
        return self._context.submit(SettleTask(**named, approved=False, note=kept))

    @operation
    def start_planning(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Begin to plan an idle task: create children with it as their `parent`, not enqueued."""
        return self._context.submit(StartPlanning(**self._task_and_actor(task_id, actor)))

    @operation
    def reorder_plan(
        self, task_id: AnyId, order: Sequence[AnyId], *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Put the children of a plan in this order, before it is finalized; name all of them."""
        chosen = tuple(
            find_task_id(self._context, each, "order") for each in validation.listed("order", order)
        )
        if len(set(chosen)) < len(chosen):
            raise InvalidInput("order", "names a task twice")
        return self._context.submit(
            ReorderPlan(**self._task_and_actor(task_id, actor), order=chosen)
        )

    @operation
    def finalize_plan(
        self,
        task_id: AnyId,
        *,
        graph: Mapping[Any, Sequence[AnyId]] | None = None,
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Queue the children of a plan, as a chain in their order, or by what each needs."""
        find = partial(find_task_id, self._context)
        pairs = None if graph is None else validation.need_pairs("graph", graph, find)
        return self._context.submit(
            FinalizePlan(**self._task_and_actor(task_id, actor), graph=pairs)
        )

    @operation
    def advance(self, task_id: AnyId, *, actor: str = USER) -> Future[TransitionResult]:
        """Derive from the children of a plan whether it has ended, and wake what waits for them.

        Tasks that wait for a signal that is there are woken too. Needs on superseded tasks move to
        the tasks that replaced them. Repeated calls change nothing more.
        """
        return self._context.submit(AdvancePlan(**self._task_and_actor(task_id, actor)))

    @operation
    def answer(
        self, task_id: AnyId, answer: object, *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Answer the question of a task, which then goes on with the answer as its feedback."""
        kept = validation.said("answer", answer)
        return self._context.submit(AnswerTask(**self._task_and_actor(task_id, actor), answer=kept))

    @operation
    def hold(
        self,
        task_id: AnyId,
        reason: str = "paused",
        *,
        until: Moment | None = None,
        detail: str | None = None,
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Stop a task from being claimed; a `limit` may say until when: a datetime, or "2h".

        With a `detail`, its event tells the cause.
        """
        chosen = validation.hold(reason)
        if until is not None and reason != "limit":
            raise InvalidInput("until", "only the hold 'limit' lifts by itself")
        lifts = None if until is None else parse_moment("until", until, self._context.now)
        told = None if detail is None else json.dumps(clean_text("detail", detail))
        about = self._task_and_actor(task_id, actor)
        return self._context.submit(HoldTask(**about, reason=chosen, until=lifts, detail=told))

    @operation
    def unhold(
        self, task_id: AnyId, reason: str = "paused", *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Remove one reason that stopped a task."""
        return self._context.submit(
            UnholdTask(**self._task_and_actor(task_id, actor), reason=validation.hold(reason))
        )

    @operation
    def lift_limit(self, agent: str, *, actor: str = USER) -> Future[Page[TransitionResult]]:
        """Lift the usage limit of an agent; results for the limit and for each task it held."""
        named = clean_name("agent", agent)
        rows = self._context.view(lambda tx: tx.read("limited_tasks", agent=named))
        held = [UnholdTask(task_id=row["id"], actor=actor, reason=Hold.LIMIT) for row in rows]
        return self._context.submit_all([LiftLimit(agent=named), *held])

    @operation
    def block(
        self, task_id: AnyId, on: Sequence[AnyId], *, actor: str = USER
    ) -> Future[TransitionResult]:
        """Make a task need others too."""
        needed = self._find_needs(on)
        return self._context.submit(BlockTask(**self._task_and_actor(task_id, actor), on=needed))

    @operation
    def unblock(
        self,
        task_id: AnyId,
        on: Sequence[AnyId] | None = None,
        *,
        by_hand: bool = False,
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Stop a task from needing the given others, or any; `by_hand`, only what was linked so."""
        needed = None if on is None else self._find_needs(on)
        about = self._task_and_actor(task_id, actor)
        return self._context.submit(UnblockTask(**about, on=needed, by_hand=bool(by_hand)))

    @operation
    def edit(
        self,
        task_id: AnyId,
        changes: dict[str, object],
        *,
        expected_version: int | None = None,
        actor: str = USER,
    ) -> Future[TransitionResult]:
        """Change fields of a task that is idle or queued, for its next attempt.

        What the task remembers of earlier attempts stays: effects, sleeps and waits. With an
        `expected_version` the edit is made only at that version. The edit waits for a version that
        has not come yet, for less than a second; a refusal is noted in the run.
        """
        limit = self._context.settings.max_payload
        chosen = validation.edits(changes, max_payload=limit, now=self._context.now)
        if expected_version is not None:
            validation.number("expected_version", expected_version, least=1)
        wait = None if expected_version is None else self._version_wait
        edit = EditTask(
            **self._task_and_actor(task_id, actor),
            changes=chosen,
            expected_version=expected_version,
            patient=wait is not None,
        )
        submit = self._context.submit
        return submit(edit) if wait is None else wait.follow(submit, edit)

    @reading
    def wanted(self, *, after: str = "", count: int = WANTED_AT_ONCE) -> WantedFunctions:
        """The functions for which the next `count` tasks on hold `version` wait."""
        return self._context.view(lambda tx: read_wanted_functions(tx, after=after, count=count))

    @operation
    def unhold_known(
        self,
        wanted: WantedFunctions,
        lifter: HoldLifter,
        is_known: Callable[[str], bool],
        *,
        most: int,
    ) -> Future[Page[TransitionResult]]:
        """Lift `version` from tasks of a page whose functions a worker has and serves.

        The first tasks of the queue are lifted, at most `most`.
        """
        asked = {
            "after": wanted.after,
            "until": wanted.until,
            "agents": validation.agents(lifter.agents),
            "every": EVERY_AGENT in lifter.agents,
            "tags": validation.tags(lifter.tags),
        }
        rows = self._context.view(
            lambda tx: tx.read("tasks_wanting", rows=wanted.functions, **asked)
        )
        by = validation.WORKER_PREFIX + lifter.named
        found = [
            UnholdTask(task_id=row["id"], actor=by, reason=Hold.VERSION)
            for row in islice((row for row in rows if is_known(row["id"])), most)
        ]
        return self._context.submit_all(found)

    @reading
    def lifted(self, seen: Sequence[tuple[str, int]]) -> Page[str]:
        """The tasks, seen at some versions, whose hold `version` was lifted since for every worker.

        A hold that a worker lifts is lifted for that worker only, as long as it lives.
        """
        rows = self._context.view(lambda tx: tx.read("lifted_since", rows=seen))
        return [row["id"] for row in rows]

    @reading
    def get(self, task_id: AnyId | None = None, *, key: str | None = None) -> Task:
        """A task as it stands now, by its id or by its key."""
        identifier = find_task_id(self._context, choose_id_or_key("task_id", task_id, key))
        found = self._context.view(
            lambda tx: read_tasks_with_state(tx, tx.read("task_by_id", task_id=identifier))
        )
        if not found:
            raise NotFound(identifier)
        return found[0]

    @reading
    def list(
        self,
        *,
        limit: int = PAGE_SIZE,
        after: AnyId | None = None,
        run: AnyId | None = None,
        parent: AnyId | None = None,
        **filters: Unpack[SharedFilters],
    ) -> Page[Task]:
        """Tasks, newest first, at most 1,000; `after` the last id of a page comes the next.

        With `run` those of a run, with `parent` those directly below a task, with `workflow` those
        of all its runs, with `step` those of one step or function, with `key` the one that has it.
        A label of `labels` may be that of the run. `since` and `until` are times of their making,
        or durations ago; `error` and `name` are texts to search for.
        """
        query, asked = choose_tasks_query(
            self._context.now,
            limit=limit,
            after=after,
            run=None if run is None else find_run_id(self._context, run, "run"),
            parent=None if parent is None else find_task_id(self._context, parent, "parent"),
            **filters,
        )
        return self._context.view(
            lambda tx: read_tasks_with_state(tx, read_task_page(tx, query, asked))
        )

    @reading
    def children(self, task_id: AnyId) -> Page[Task]:
        """The tasks directly below a task, in the order of their places: the parts of a plan."""
        identifier = find_task_id(self._context, task_id)

        def read(tx: Transaction) -> Page[Task]:
            if not tx.read("task_by_id", task_id=identifier):
                raise NotFound(identifier)
            return read_tasks_with_state(tx, tx.read("children_in_order", parent_id=identifier))

        return self._context.view(read)

    @reading
    def blocked_by(self, task_id: AnyId) -> Page[str]:
        """The needs that are not done, as the ids of their tasks."""
        identifier = find_task_id(self._context, task_id)
        rows = self._context.view(lambda tx: tx.read("unmet_needs", ids=[identifier]))
        return [row["id"] for row in rows]

    @reading
    def events(self, task_id: AnyId) -> Page[Event]:
        """The history of a task, in the order it was written."""
        identifier = find_task_id(self._context, task_id)
        rows = self._context.view(lambda tx: tx.read("entity_events", entity=identifier))
        return [read_event(row) for row in rows]

    @reading
    def attempts(self, task_id: AnyId) -> Page[Attempt]:
        """Every lease the task ever had, and how each ended."""
        identifier = find_task_id(self._context, task_id)
        rows = self._context.view(lambda tx: tx.read("stops_of", task_id=identifier))
        stops = {
            row["attempt"]: (row["stopped_at"], row["ended"], row["remaining"]) for row in rows
        }
        return add_stops(read_attempts(self.events(identifier)), stops)

    def _find_needs(self, given: Sequence[AnyId]) -> tuple[str, ...]:
        listed = validation.listed("needs", given)
        return validation.needs(find_task_ids(self._context, listed, "needs"))

    def _task_and_actor(self, task_id: AnyId, actor: str) -> dict[str, str]:
        return {"task_id": find_task_id(self._context, task_id), "actor": validation.actor(actor)}

    def _task_row(self, task: NewTask, ids: TaskIdSource, connection: object = None) -> TaskRow:
        limit = self._context.settings.max_payload
        wanted = follow_keys(self._context, task, connection)
        return validation.new_task(wanted, ids, max_payload=limit, now=self._context.now)


def _first(created: list[CreateResult]) -> CreateResult:
    return created[0]
