"""Work: the worker's protocol of claims, renewals and reports, each with its attempt's token.

Recovery takes back expired attempts here too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.engine.claims import picker
from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Claim, ClaimById, Lose, Operation, Pull, Renew, Report
from holdfast.engine.core.sync_async import gather_futures, operation, reading, submit_each
from holdfast.engine.input import validation
from holdfast.engine.lines import LineOperations
from holdfast.engine.read.records import read_needed_outputs, read_value
from holdfast.engine.read.report_refusals import answer_guard, answer_write
from holdfast.engine.state.durable import Spawn, TakeSignal
from holdfast.engine.state.effects import EffectOperations
from holdfast.engine.state.reports import Reports, encode_small, encode_usage
from holdfast.errors import NotFound, ShuttingDown
from holdfast.model.effect import Child, EffectRecord, WakeCondition
from holdfast.model.result import TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.status import Status
from holdfast.model.task import Assignment, Completion, NewTask, Renewal
from holdfast.model.text import clean_key, clean_name
from holdfast.model.trace import derive_trace_id
from holdfast.model.units import Moment
from holdfast.model.workflow.graph_text import read_steps
from holdfast.model.workflow.line import Draft, NewHead
from holdfast.model.workflow.step import all_steps
from holdfast.model.workflow.step_template import secrets_in_texts
from holdfast.store.database import Row, Transaction
from holdfast.store.group_commit.entries import Entry

EXPIRED_AT_ONCE = 1_000
MAX_CLAIM = 1_000

# A task and the number of its attempt.
ExpiredAttempt = tuple[str, int]


def recover_expired_attempts(
    context: EngineContext, under_way: Collection[ExpiredAttempt]
) -> dict[ExpiredAttempt, Future[TransitionResult]]:
    """Submit a report for each expired attempt, except for those whose report is under way.

    An attempt whose lease was taken before the clock was set back counts too: its lease is
    shortened. Each report is an operation by itself, because the row of one may be locked for long.
    """
    count = EXPIRED_AT_ONCE + len(under_way)
    rows = context.view(
        lambda tx: [*tx.read("expired_tasks", count=count), *tx.read("leases_ahead", count=count)]
    )
    expired = sorted({(row["id"], row["attempt"]) for row in rows}.difference(under_way))
    lost = [Lose(task_id=task, fence=fence) for task, fence in expired]
    return dict(zip(expired, context.submit_many(lost), strict=True))


def _read_attempts(tx: Transaction, asked: Sequence[tuple[str, int]]) -> list[Row]:
    rows = tx.read("attempt_records", rows=sorted(set(asked)))
    found = {(row["task_id"], row["fence"]): row for row in rows}
    return [found[each] for each in asked]


class Work(EffectOperations, LineOperations):
    """Claims and reports of workers; every report carries the token of its attempt."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self.reports = Reports(context)
        self._held = self.reports.read_token

    @operation
    def claim(  # noqa: PLR0913 - all that a worker says of itself
        self,
        worker: str,
        *,
        agents: Sequence[str] = ("default",),
        tags: Sequence[str] = (),
        count: int = 1,
        lease: float | None = None,
        passing: Sequence[str] = (),
        bare: bool = True,
        equipped: Sequence[str] = (),
        request: str | None = None,
    ) -> Future[list[Assignment]]:
        """Lease up to `count` ready tasks for a worker; the list may be empty.

        Tasks named in `passing` are left to other workers, and without `bare` also tasks that name
        no function and steps whose workflow file names no program, unless their agent is `equipped`
        with a program by the worker itself.
        The same `request` again gives the same tasks, as far as they are still held.
        """
        return self._context.submit(
            Claim(
                worker=clean_name("worker", worker),
                agents=validation.agents(agents),
                tags=validation.tags(tags),
                count=validation.number("count", count, least=1, most=MAX_CLAIM),
                lease=self.lease(lease),
                passed=tuple(
                    validation.task_id(each, "passing")
                    for each in validation.listed("passing", passing)
                ),
                bare=bare,
                equipped=validation.names("equipped", equipped),
                request=None if request is None else clean_key("request", request),
            ),
            read=Claimed.read,
        )

    def add_standing_claim(self, standing_claim: StandingClaim) -> Callable[[], None]:
        """Hand over tasks in the commit that makes them ready; returns a function that ends it."""
        return self._context.standing_claims.add(standing_claim)

    @operation
    def pull(self, standing_claim: StandingClaim) -> Future[None]:
        """Serve a standing claim with tasks that other processes may have made ready."""
        standing_claim.may_have_more = True
        return self._context.submit(Pull(standing_claim=standing_claim))

    def standing_claim(  # noqa: PLR0913 - all that a worker says of itself
        self,
        worker: str,
        *,
        agents: Sequence[str],
        tags: Sequence[str],
        room: Callable[[], int],
        passing: Callable[[], tuple[str, ...]],
        deliver: Callable[[Claimed], None],
    ) -> StandingClaim:
        """A standing claim, for `add_standing_claim`."""
        return StandingClaim(
            worker=clean_name("worker", worker),
            agents=validation.agents(agents),
            tags=validation.tags(tags),
            lease=self.lease(None),
            room=room,
            passed=passing,
            deliver=deliver,
            look_up_task=self._look_up_task,
        )

    def _look_up_task(self, task_id: str) -> Row:
        found = self._context.view(lambda tx: tx.read("task_by_id", task_id=task_id))
        if not found:
            raise NotFound(task_id)
        return found[0]

    @operation
    def claim_by_id(  # noqa: PLR0913 - all that a worker says of itself
        self,
        task_id: str,
        worker: str,
        *,
        agents: Sequence[str] = ("default",),
        tags: Sequence[str] = (),
        lease: float | None = None,
        request: str | None = None,
    ) -> Future[list[Assignment]]:
        """Lease one named task, also before others or while idle, if nothing else prevents it."""
        return self._context.submit(
            ClaimById(
                task_id=validation.task_id(task_id),
                worker=clean_name("worker", worker),
                agents=validation.agents(agents),
                tags=validation.tags(tags),
                lease=self.lease(lease),
                request=None if request is None else clean_key("request", request),
            ),
            read=Claimed.read,
        )

    @reading
    def first_to_run_now(
        self,
        agents: Sequence[str],
        tags: Sequence[str] = (),
        *,
        bare: bool = True,
        equipped: Sequence[str] = (),
    ) -> str | None:
        """The id of the first ready task that somebody put first; claim it by this id."""
        served = Claim(
            worker="",
            agents=validation.agents(agents),
            tags=validation.tags(tags),
            count=1,
            lease=0,
            bare=bare,
            equipped=tuple(equipped),
        )
        return self._context.view(lambda tx: picker.first_to_run_now(tx, served))

    @claim.undone_by
    @claim_by_id.undone_by
    def give_back(self, assignments: list[Assignment]) -> None:
        """Release claimed tasks whose claimer is gone, without waiting."""
        for each in assignments:
            # While the engine closes, nothing is released: the leases run out.
            with suppress(ShuttingDown):
                self.release.submit(each.task_id, each.token)

    @operation
    def renew(
        self, renewals: Sequence[Renewal], *, lease: float | None = None
    ) -> Future[list[TransitionResult]]:
        """Renew leases; a result that is not ok says that the attempt must stop."""
        given = validation.renewals(renewals)
        return self._context.submit_all([*map(self._renewal(lease), given)])

    def renew_each(
        self, renewals: Sequence[Renewal], *, lease: float | None = None
    ) -> list[Future[TransitionResult]]:
        """Renew leases, with a future for each: one may be malformed, or its row locked."""
        return submit_each(renewals, self._renewal(lease), self._context.submit_many)

    def _renewal(self, lease: float | None) -> Callable[[Renewal], Renew]:
        duration = self.lease(lease)
        return lambda each: Renew(
            **self._held(each.task_id, each.token),
            lease=duration,
            progress=encode_small("progress", each.progress),
            usage=encode_usage(each.usage),
        )

    @operation
    def complete(
        self,
        task_id: str,
        token: str,
        output: object = None,
        *,
        usage: object = None,
        commit: NewHead | None = None,
    ) -> Future[TransitionResult]:
        """Report the result; the same result again is a success, another is refused.

        With a `commit` the task is done only if its line has not moved on: else `head_moved`.
        """
        held = self._held(task_id, token)
        return self._context.submit(self.reports.complete(held, output, usage=usage, commit=commit))

    @operation
    def complete_many(self, results: Sequence[Completion]) -> Future[list[TransitionResult]]:
        """Report several results together; each has its own result."""
        reports = [
            self.reports.complete(
                self._held(each.task_id, each.token),
                each.output,
                usage=each.usage,
                commit=each.commit,
            )
            for each in validation.results(results)
        ]
        return self._context.submit_all(reports)

    @operation
    def fail(  # noqa: PLR0913 - what failed, and what it left
        self,
        task_id: str,
        token: str,
        error: object,
        *,
        retryable: bool = True,
        usage: object = None,
        left: Draft | None = None,
        anew: bool = False,
    ) -> Future[TransitionResult]:
        """Report a failure; it is tried again while its budget lasts and `retryable` is true.

        `left` is the commit of what the attempt left. After a landing that met a conflict `anew`
        lets the line of its item begin again at the head around it.
        """
        held = self._held(task_id, token)
        report = self.reports.fail(
            held, error, retryable=retryable, usage=usage, left=left, anew=anew
        )
        return self._context.submit(report)

    @operation
    def release(
        self,
        task_id: str,
        token: str,
        *,
        until: Moment | None = None,
        usage: object = None,
        draft: Draft | None = None,
    ) -> Future[TransitionResult]:
        """Give a task back, now or until a datetime or for "10m"; it costs no attempt.

        The next attempt of the task goes on from the `draft`, the commit of its work in progress.
        """
        held = self._held(task_id, token)
        return self._context.submit(
            self.reports.release(held, until=until, usage=usage, draft=draft)
        )

    @operation
    def reach_limit(
        self,
        task_id: str,
        token: str,
        until: Moment,
        *,
        usage: object = None,
        draft: Draft | None = None,
    ) -> Future[TransitionResult]:
        """Give a task back, and hold the tasks of its agent until a usage limit lifts."""
        held = self._held(task_id, token)
        return self._context.submit(self.reports.reach_limit(held, until, usage, draft))

    @operation
    def ask(
        self,
        task_id: str,
        token: str,
        question: object,
        *,
        notes: Sequence[tuple[str, object]] = (),
        draft: Draft | None = None,
    ) -> Future[TransitionResult]:
        """Give a task back until somebody answers, and remember notes; it costs no attempt."""
        held = self._held(task_id, token)
        return self._context.submit(self.reports.ask(held, question, notes=notes, draft=draft))

    @operation
    def suspend(
        self,
        task_id: str,
        token: str,
        wait: WakeCondition,
        *,
        notes: Sequence[tuple[str, object]] = (),
        draft: Draft | None = None,
    ) -> Future[TransitionResult]:
        """Give a task back until a wait is over, and remember notes; it costs no attempt."""
        held = self._held(task_id, token)
        return self._context.submit(self.reports.suspend(held, wait, notes=notes, draft=draft))

    def tell(self, report: Entry[Operation], entered: Callable[[], None]) -> None:
        """Enter a report into the queue; the writer gives its entry the reply or the error.

        `entered` is called when the report is in the queue, so that later claims come after it.
        """
        self._context.commits.enter(report, entered)

    @operation
    def take_signal(
        self, task_id: str, token: str, target: str, signal: str, *, name: str
    ) -> Future[EffectRecord]:
        """Take the oldest signal that nobody has taken, and remember it once under a name."""
        return self._context.submit(
            TakeSignal(
                **self._held(task_id, token),
                target=validation.target(target),
                signal=clean_name("signal", signal),
                name=clean_key("name", name),
            )
        )

    @operation
    def spawn(
        self, task_id: str, token: str, tasks: Sequence[NewTask], *, name: str
    ) -> Future[EffectRecord]:
        """Make children of a running task, once under one name; its value is their ids."""
        wanted = validation.listed("tasks", tasks)
        validation.number("tasks", len(wanted), least=0, most=validation.MAX_BATCH)
        limit = self._context.settings.max_payload
        rows = validation.bounded_batch(
            validation.new_task(each, self._context.ids, max_payload=limit, now=self._context.now)
            for each in wanted
        )
        for row in rows:
            validation.refuse_inherited_fields(row)
        return self._context.submit(
            Spawn(
                **self._held(task_id, token),
                name=clean_key("name", name),
                tasks=tuple(replace(row, position=place) for place, row in enumerate(rows)),
                actor="worker",
            )
        )

    @reading
    def children(self, task_id: str, ids: Sequence[str]) -> list[Child]:
        """The status of some children of a task, in the order of `ids`."""
        identifier = validation.task_id(task_id)
        rows = self._context.reads.share(
            lambda tx: tx.read("children_by_id", task_id=identifier, ids=ids)
        )
        found = {row["id"]: _read_child(row) for row in rows}
        gone = {
            each: Child(id=each, status=Status.CANCELLED, error="it was deleted") for each in ids
        }
        return list((gone | found).values())

    @reading
    def needed_around(self, task_id: str) -> dict[str, Any]:
        """The outputs, by step, of the steps that the loops around a task need."""
        identifier = validation.task_id(task_id)
        rows = self._context.view(lambda tx: tx.read("needed_around", task_id=identifier))
        return read_needed_outputs(rows)

    @reading
    def secrets_of(self, workflow: str, version: str) -> frozenset[str]:
        """The names of all secrets that the steps of a version of a workflow ask for."""
        named = {"name": workflow, "version": version}
        (row,) = self._context.view(lambda tx: tx.read("workflow_definition", **named))
        return secrets_in_texts(all_steps(read_steps(row["definition"])))

    @reading
    def trace_of(self, root: str) -> str:
        """The trace of a run or a lone task: the one it was started with, or its own."""
        rows = self._context.view(lambda tx: tx.read("trace_of", entity=root))
        return str(rows[0]["trace_id"]) if rows else derive_trace_id(root)

    @reading
    def workflows_since(self, moment: int) -> list[tuple[str, str, int]]:
        """The name, version and time of every version of a workflow since a moment."""
        rows = self._context.view(lambda tx: tx.read("workflows_since", since=moment))
        return [(row["name"], row["version"], row["created_at"]) for row in rows]

    @reading
    def attempts_over(self, attempts: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of some attempts (task and number) that are over, in whatever process."""
        rows = list(attempts)
        over = self._context.view(lambda tx: tx.read("attempts_over", rows=rows))
        return {(row["task_id"], row["attempt"]) for row in over}

    @reading
    def guard(self, task_id: str, token: str) -> TransitionResult:
        """Check, before a side effect, whether this attempt may still act."""
        return answer_guard(*self._record(task_id, token))

    @reading
    def check_write(self, task_id: str, token: str) -> TransitionResult:
        """Check, before a file of this attempt is kept beside the store, whether it may be kept."""
        return answer_write(*self._record(task_id, token))

    def _record(self, task_id: str, token: str) -> tuple[Report, Row]:
        report = Report(**self._held(task_id, token))
        row = (report.task_id, report.fence)
        return report, self._context.reads.ask(_read_attempts, row)

    @operation
    def recover(self) -> Future[list[TransitionResult]]:
        """Take back the tasks whose lease has run out; a renewal that came first wins."""
        return gather_futures(list(recover_expired_attempts(self._context, ()).values()))

    def lease(self, seconds: float | None) -> int:
        """The length of a lease in microseconds; without `seconds`, that of the settings."""
        chosen = self._context.settings.lease if seconds is None else seconds
        return positive_microseconds("lease", chosen)


def _read_child(row: Row) -> Child:
    return Child(
        id=row["id"],
        status=Status(row["status"]),
        output=read_value(row["output"]),
        error=read_value(row["error"]),
    )
