"""Older files: the tables of older programs that a file has, and their import."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike

from holdfast.api.holdfast import Holdfast
from holdfast.errors import InvalidInput
from holdfast.importing.import_writer import check_target
from holdfast.importing.report import ImportReport
from holdfast.importing.runs import import_runs
from holdfast.importing.tasks import import_tasks
from holdfast.model.text import clean_name
from holdfast.store.sqlite.foreign_file import find_foreign_tables

TakeOver = Callable[..., ImportReport]
# The tables that each kind of import needs, by its name.
NEEDED = {"tasks": ("tasks",), "runs": ("runs", "steps")}


def import_file(  # noqa: PLR0913 - what may differ from one import to the next
    source: str | PathLike[str],
    *,
    into: Holdfast,
    only: str | None = None,
    name: str | None = None,
    agent: str = "default",
    step: str | None = None,
    dry_run: bool = False,
) -> dict[str, ImportReport]:
    """Take over all that a file has, or `only` its `tasks` or its `runs`: a report of each.

    Nothing is written before all of it was read and checked.
    """
    path = check_target(source, into)
    if name is not None:
        clean_name("name", name)
    chosen = _choose(only)
    found = find_foreign_tables(path, [table for kind in chosen for table in NEEDED[kind]])
    kinds = [kind for kind in chosen if set(NEEDED[kind]) <= {*found}]
    if not kinds:
        wanted = " or ".join(" and ".join(NEEDED[kind]) for kind in chosen)
        raise InvalidInput("source", f"{path} has no tables {wanted} of an older task runner")
    if step is not None and "tasks" not in kinds:
        raise InvalidInput("step", "is for the tasks of a file, and this one has runs alone")
    take_over: dict[str, TakeOver] = {
        "tasks": partial(
            import_tasks, path, into=into, name=name or "tasks", agent=agent, step=step
        ),
        "runs": partial(import_runs, path, into=into, name=name or "runs"),
    }
    if dry_run or len(kinds) > 1:
        rehearsed = {kind: take_over[kind](dry_run=True) for kind in kinds}
        if dry_run:
            return rehearsed
    return {kind: take_over[kind]() for kind in kinds}


def _choose(only: str | None) -> list[str]:
    if only is not None and only not in NEEDED:
        raise InvalidInput("only", f"{only!r} is not one of {', '.join(NEEDED)}")
    return list(NEEDED) if only is None else [only]
