"""Workers as the store knows them: which live, what each is told, and the stops of attempts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation, Report
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.engine.read.pages import Page
from holdfast.engine.read.report_refusals import refuse
from holdfast.engine.read.worker_loads import OCCUPANTS_SHOWN, read_loads, read_workers
from holdfast.engine.state.reports import Reports
from holdfast.model.advice import Action, advise
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.retry import positive_microseconds
from holdfast.model.text import clean_name, clean_text
from holdfast.model.worker import DRAIN, EVICT, LiveWorker, Overrun, WorkerLoad
from holdfast.store.database import Row

MAX_COUNT = 2**31 - 1
# A worker that has vanished is remembered for so long, because its name may be looked for.
DEAD_WORKERS_KEPT = 86_400_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOperation(Operation):
    name: str

    @property
    def keys(self) -> Keys:
        return (f"worker:{self.name}",)


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisterWorker(WorkerOperation):
    agents: str
    tags: str
    equipped: str
    concurrency: int
    ttl: int
    process: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnnounceWorker(WorkerOperation):
    started_at: int
    ttl: int
    pausing: str | None = None
    overruns: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TellWorker(WorkerOperation):
    told: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetWorker(WorkerOperation):
    started_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteStop(Report):
    """The report that nothing of an attempt runs, but for `left` processes that did not end."""

    ended: int
    left: int


def carry_out_worker_operations(
    work: UnitOfWork, operations: Sequence[WorkerOperation]
) -> list[object]:
    """Carry the operations out in the order of their names, in whatever order they came."""
    places = sorted(range(len(operations)), key=lambda place: operations[place].name)
    replies = {place: _carry_out_one(work, operations[place]) for place in places}
    return [replies[place] for place in range(len(operations))]


def _carry_out_one(work: UnitOfWork, operation: WorkerOperation) -> object:
    match operation:
        case RegisterWorker():
            return _register_worker(work, operation)
        case AnnounceWorker():
            return _first_row(
                work.tx.write(
                    "announce_worker",
                    name=operation.name,
                    started=operation.started_at,
                    ttl=operation.ttl,
                    pausing=operation.pausing,
                    overruns=operation.overruns,
                )
            )
        case TellWorker():
            told = work.tx.write("tell_worker", name=operation.name, told=operation.told)
            return _refuse_unknown(told, operation.name)
        case ForgetWorker():
            gone = work.tx.write("forget_worker", name=operation.name, started=operation.started_at)
            return _refuse_unknown(gone, operation.name)
        case _:
            raise TypeError(f"{operation!r} is not about a worker")


def _register_worker(work: UnitOfWork, operation: RegisterWorker) -> Row | None:
    work.tx.run("forget_dead_workers", kept=DEAD_WORKERS_KEPT)
    return _first_row(
        work.tx.write(
            "register_worker",
            name=operation.name,
            agents=operation.agents,
            tags=operation.tags,
            equipped=operation.equipped,
            concurrency=operation.concurrency,
            process=operation.process,
            ttl=operation.ttl,
        )
    )


def note_stops(work: UnitOfWork, reports: Sequence[NoteStop]) -> list[TransitionResult]:
    rows = [(r.task_id, r.fence, r.ended, r.left) for r in reports]
    noted = {row["task_id"] for row in work.tx.write("note_stops", rows=rows)}
    return [
        TransitionResult(ok=True)
        if report.task_id in noted
        else refuse(Refusal.STALE_TOKEN, None, "this is no attempt of it, or it was said before")
        for report in reports
    ]


def _first_row(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def _refuse_unknown(rows: list[Row], name: str) -> TransitionResult:
    if rows:
        return TransitionResult(ok=True)
    told = f"no worker named {name} lives; see " + advise(Action.LIST_WORKERS)
    return refuse(Refusal.NOT_FOUND, None, told)


class Workers:
    """Workers: which live, and what they are told."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._reports = Reports(context)

    @operation
    def register(  # noqa: PLR0913 - all that a worker says of itself
        self,
        name: str,
        *,
        agents: Sequence[str],
        tags: Sequence[str] = (),
        equipped: Sequence[str] = (),
        concurrency: int = 1,
        process: str | None = None,
    ) -> Future[Row | None]:
        """Say that a worker has started; None when another worker of its name lives.

        `equipped` are the agents of which it does tasks that name neither function nor program.
        By `process` the other processes of its machine can tell that the worker is dead.
        """
        return self._context.submit(
            RegisterWorker(
                name=clean_name("name", name),
                agents=json.dumps(validation.agents(agents)),
                tags=validation.tags(tags),
                equipped=json.dumps(validation.agents(equipped) if equipped else ()),
                concurrency=validation.number("concurrency", concurrency, least=1, most=MAX_COUNT),
                ttl=self._ttl,
                process=_clean_optional_text("process", process),
            )
        )

    @operation
    def announce(
        self,
        name: str,
        started_at: int,
        pausing: str | None = None,
        overruns: Sequence[Overrun] = (),
    ) -> Future[Row | None]:
        """Say that a worker still lives, and read what it is told; None when it is not known.

        While the worker claims nothing, `pausing` says why. The `overruns` keep slots of it.
        """
        return self._context.submit(
            AnnounceWorker(
                name=clean_name("name", name),
                started_at=started_at,
                ttl=self._ttl,
                pausing=_clean_optional_text("pausing", pausing),
                overruns=json.dumps(overruns) if overruns else None,
            )
        )

    @operation
    def forget(self, name: str, started_at: int) -> Future[TransitionResult]:
        """Say that a worker has left."""
        chosen = clean_name("name", name)
        return self._context.submit(ForgetWorker(name=chosen, started_at=started_at))

    @operation
    def drain(self, name: str) -> Future[TransitionResult]:
        """Have a worker claim nothing more, finish what it runs, and leave."""
        return self._context.submit(TellWorker(name=clean_name("name", name), told=DRAIN))

    @operation
    def evict(self, name: str) -> Future[TransitionResult]:
        """Have a worker give back at once what it can stop, keep no lease, and leave."""
        return self._context.submit(TellWorker(name=clean_name("name", name), told=EVICT))

    @operation
    def note_stop(
        self, task_id: str, token: str, *, ended: int, left: int = 0
    ) -> Future[TransitionResult]:
        """Say that nothing of an attempt runs any more, whatever became of the attempt."""
        return self._context.submit(
            NoteStop(
                **self._reports.read_token(task_id, token),
                ended=validation.number("ended", ended, least=0, most=MAX_COUNT),
                left=validation.number("left", left, least=0, most=MAX_COUNT),
            )
        )

    @reading
    def list(self) -> Page[LiveWorker]:
        """Every worker that has not been silent for longer than a lease."""
        return self._context.view(read_workers)

    @reading
    def loads(self, *, shown: int = OCCUPANTS_SHOWN) -> Page[WorkerLoad]:
        """What every such worker runs, the `shown` oldest attempts of each by name."""
        return self._context.view(lambda tx: read_loads(tx, read_workers(tx), shown))

    @property
    def _ttl(self) -> int:
        return positive_microseconds("lease", self._context.settings.lease)


def _clean_optional_text(field: str, value: str | None) -> str | None:
    return None if value is None else clean_text(field, value)
