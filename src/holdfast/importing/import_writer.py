"""Import writer: passes the rows that were read to the engine, and reports the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar

from holdfast.api.holdfast import Holdfast
from holdfast.engine.engine import engine_of
from holdfast.engine.read.task_records import read_task
from holdfast.engine.read.task_state import read_tasks_with_state
from holdfast.engine.surroundings.imports import PastRun, PastTree, split_into_pages
from holdfast.engine.writer.dry_run import DryRun
from holdfast.errors import InvalidInput, KeyConflict
from holdfast.importing.report import ImportReport, Moved
from holdfast.model.run import CreateResult
from holdfast.model.task import Task
from holdfast.store.database import Transaction

T = TypeVar("T")
Replies = list[list[CreateResult]]

_CHANGED = (
    "which was imported, with all that belongs to it, from rows that are not as they are in this "
    "file; what is here is left alone. "
    "If the file is another one with the same ids, import it under another `name`; "
    "if it has changed, put it back as it was, or carry on with what is here"
)


def check_target(source: object, into: object) -> Path:
    """The path of the source; refuses, before any read, a source or target of a wrong type."""
    if not isinstance(into, Holdfast):
        reason = f"is a {type(into).__name__}; pass a Holdfast: Holdfast('sqlite:///holdfast.db')"
        raise InvalidInput("into", reason)
    if not isinstance(source, str | PathLike):
        reason = f"is a {type(source).__name__}; pass the path of the older SQLite file"
        raise InvalidInput("source", reason)
    return Path(source)


def _take_over(
    into: Holdfast,
    past: Sequence[PastTree] | Sequence[PastRun],
    read: Callable[[Transaction, Replies], T],
    *,
    dry_run: bool,
) -> T:
    """Import the units and read what they have become; in a dry run nothing of it stays."""

    def rehearse(rehearsal: DryRun) -> T:
        return read(rehearsal.tx, rehearsal.joined.imports.take_over(past))

    try:
        if dry_run:
            return engine_of(into).rehearse(rehearse)
        replies = engine_of(into).imports.take_over(past)
    except KeyConflict as conflict:
        raise KeyConflict(conflict.key, conflict.existing, _CHANGED) from None
    return engine_of(into).database.view(lambda tx: read(tx, replies))


def take_over_trees(
    into: Holdfast, trees: Sequence[PastTree], was: Mapping[str, str], *, dry_run: bool = False
) -> ImportReport:
    names = {str(task.task.key): task.name for tree in trees for task in tree.tasks}

    def read(tx: Transaction, replies: Replies) -> tuple[set[str], dict[str, Task]]:
        made = {each.id for reply in replies for each in reply if each.created}
        return made, {
            names[str(task.key)]: task
            for page in split_into_pages(sorted(names))
            for task in read_tasks_with_state(
                tx, tx.read("tasks_by_id", ids=_task_ids_of_keys(tx, page))
            )
        }

    made, found = _take_over(into, trees, read, dry_run=dry_run)
    return ImportReport(
        moved=tuple(
            Moved(
                old=name,
                was=was[name],
                id=found[name].id if name in found else None,
                became=found[name].state if name in found else "deleted",
                created=name in found and found[name].id in made,
            )
            for name in names.values()
        )
    )


def take_over_runs(
    into: Holdfast, runs: Sequence[PastRun], was: Mapping[str, str], *, dry_run: bool = False
) -> ImportReport:
    """Import the runs; `was` has the old status of each run, and of each step as `run/step`."""

    def read(tx: Transaction, replies: Replies) -> list[Moved]:
        return [
            moved
            for run, (created,) in zip(runs, replies, strict=True)
            for moved in _moved(tx, str(run.run.input["id"]), created, was)
        ]

    return ImportReport(moved=tuple(_take_over(into, runs, read, dry_run=dry_run)))


def _moved(tx: Transaction, old: str, run: CreateResult, was: Mapping[str, str]) -> Iterator[Moved]:
    status = tx.read("run_by_id", run_id=run.id)[0]["status"]
    yield Moved(old=old, was=was[old], id=run.id, became=status, created=run.created)
    for task in map(read_task, tx.read("run_tasks", run_id=run.id)):
        name = f"{old}/{task.step}"
        # Tasks that a step has made since the import have no old status.
        if name in was:
            state = task.state
            yield Moved(old=name, was=was[name], id=task.id, became=state, created=run.created)


def _task_ids_of_keys(tx: Transaction, keys: Sequence[str]) -> list[str]:
    return [row["id"] for row in tx.read("tasks_by_key", keys=keys)]
