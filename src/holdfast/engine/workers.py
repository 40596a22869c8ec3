"""Which workers live, what they are told, and what was stopped with their attempts."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.answers import refuse
from holdfast.engine.group import Group
from holdfast.engine.worker_operations import (
    AnnounceWorker,
    ForgetWorker,
    NoteStop,
    RegisterWorker,
    TellWorker,
    WorkerOperation,
)
from holdfast.model.result import Refusal, TransitionResult
from holdfast.store.database import Row

# How long a worker that has vanished is remembered: its name may be looked for.
KEPT = 86_400_000_000


def carry_out(group: Group, operations: Sequence[WorkerOperation]) -> list[object]:
    """In the order of their names, whatever order they were asked for in."""
    places = sorted(range(len(operations)), key=lambda place: operations[place].name)
    given = {place: _carry_out(group, operations[place]) for place in places}
    return [given[place] for place in range(len(operations))]


def _carry_out(group: Group, operation: WorkerOperation) -> object:
    match operation:
        case RegisterWorker():
            return _register(group, operation)
        case AnnounceWorker():
            return _first(
                group.tx.write(
                    "announce_worker",
                    name=operation.name,
                    started=operation.started_at,
                    ttl=operation.ttl,
                    pausing=operation.pausing,
                )
            )
        case TellWorker():
            told = group.tx.write("tell_worker", name=operation.name, told=operation.told)
            return _answer(told, operation.name)
        case ForgetWorker():
            gone = group.tx.write(
                "forget_worker", name=operation.name, started=operation.started_at
            )
            return _answer(gone, operation.name)
        case _:
            raise TypeError(f"{operation!r} is not about a worker")


def _register(group: Group, operation: RegisterWorker) -> Row | None:
    group.tx.run("forget_dead_workers", kept=KEPT)
    return _first(
        group.tx.write(
            "register_worker",
            name=operation.name,
            agents=operation.agents,
            tags=operation.tags,
            concurrency=operation.concurrency,
            process=operation.process,
            ttl=operation.ttl,
        )
    )


def note_stops(group: Group, reports: Sequence[NoteStop]) -> list[TransitionResult]:
    rows = [(r.task_id, r.fence, r.ended, r.left) for r in reports]
    noted = {row["task_id"] for row in group.tx.write("note_stops", rows=rows)}
    return [
        TransitionResult(ok=True)
        if report.task_id in noted
        else refuse(Refusal.STALE_TOKEN, None, "this is no attempt of it, or it was said before")
        for report in reports
    ]


def _first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def _answer(rows: list[Row], name: str) -> TransitionResult:
    if rows:
        return TransitionResult(ok=True)
    return refuse(Refusal.NOT_FOUND, None, f"no worker named {name} lives; see hf.workers.list()")
