"""Worker loads: the live workers, and what runs in the slots of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from holdfast.engine.read.task_state import name_tasks
from holdfast.model.moment import to_datetime
from holdfast.model.worker import LiveWorker, Occupant, Overrun, WorkerLoad
from holdfast.store.database import Row, Transaction

# So many attempts of each worker are named.
OCCUPANTS_SHOWN = 100


def read_workers(tx: Transaction) -> list[LiveWorker]:
    """Every worker that has not been silent for longer than a lease, by name."""
    return [_read_worker(row) for row in tx.read("list_workers")]


def read_loads(
    tx: Transaction, workers: Sequence[LiveWorker], shown: int = OCCUPANTS_SHOWN
) -> list[WorkerLoad]:
    """What runs in some workers; the `shown` oldest attempts of each are named."""
    if not workers:
        return []
    named = [each.name for each in workers]
    rows = tx.read("attempts_of_workers", workers=named, most=shown)
    overrun = sorted({each.task_id for worker in workers for each in worker.overruns})
    left = tx.read("tasks_by_id", ids=overrun) if overrun else []
    names = name_tasks(tx, [row["id"] for row in (*rows, *left)])
    runs = {row["id"]: row["run_id"] for row in left}
    running: dict[str, list[Row]] = {name: [] for name in named}
    for row in rows:
        running[row["worker"]].append(row)
    return [
        WorkerLoad(
            worker=each,
            claimed=max((int(row["claimed"]) for row in running[each.name]), default=0),
            running=tuple(_read_occupant(row, names) for row in running[each.name]),
            overruns=tuple(_name_overrun(over, names, runs) for over in each.overruns),
        )
        for each in workers
    ]


def _read_occupant(row: Row, names: Mapping[str, str]) -> Occupant:
    return Occupant(
        task_id=row["id"],
        run_id=row["run_id"],
        name=names[row["id"]],
        attempt=row["attempt"],
        began_at=to_datetime(row["began_at"]),
    )


def _name_overrun(
    overrun: Overrun, names: Mapping[str, str], runs: Mapping[str, str | None]
) -> Occupant:
    """An overrun with the name of its task, or with the id of a task that was removed."""
    return Occupant(
        task_id=overrun.task_id,
        run_id=runs.get(overrun.task_id),
        name=names.get(overrun.task_id, overrun.task_id),
        attempt=overrun.attempt,
        began_at=to_datetime(overrun.began_at),
    )


def _read_worker(row: Row) -> LiveWorker:
    return LiveWorker(
        name=row["name"],
        agents=tuple(json.loads(row["agents"])),
        tags=tuple(json.loads(row["tags"])),
        equipped=tuple(json.loads(row["equipped"])),
        concurrency=row["concurrency"],
        told=row["told"],
        process=row["process"],
        pausing=row["pausing"],
        started_at=to_datetime(row["started_at"]),
        seen_at=to_datetime(row["seen_at"]),
        expires_at=to_datetime(row["expires_at"]),
        overruns=tuple(Overrun(*each) for each in json.loads(row["overruns"] or "[]")),
    )
