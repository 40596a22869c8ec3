"""Child runs: the runs that steps call, their callers, usage and holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.engine.read.task_state import name_tasks
from holdfast.model.run import Run
from holdfast.model.status import Hold, RunStatus
from holdfast.service.queries.views import Usage, View, add_usage, without_nulls
from holdfast.store.database import Row, Transaction


def read_callers(tx: Transaction, runs: Sequence[Run]) -> dict[str, View]:
    """The task that called each of some runs, with the step and the run of the task."""
    called = [run.id for run in runs if run.parent_id is not None]
    if not called:
        return {}
    return {
        row["id"]: without_nulls(
            **{name: row[name] for name in ("task_id", "step", "run_id", "workflow")}
        )
        for row in tx.read("callers_of", ids=called)
    }


def find_addresses_from_top(
    tx: Transaction, tasks: Mapping[str, str | None]
) -> dict[str, tuple[str | None, str]]:
    """The topmost run of each of some tasks, and the address of the task in that run.

    A task without a run has no run and its title.
    """
    names = name_tasks(tx, tasks)
    runs = sorted({run for run in tasks.values() if run is not None})
    callers = tx.read("callers_of", ids=runs) if runs else []
    rows = {row["id"]: row for row in callers if row["run_id"] is not None}
    if not rows:
        return {task: (run, names[task]) for task, run in tasks.items()}
    above = find_addresses_from_top(tx, {row["task_id"]: row["run_id"] for row in rows.values()})
    found: dict[str, tuple[str | None, str]] = {}
    for task, run in tasks.items():
        if run in rows:
            top, name = above[rows[run]["task_id"]]
            found[task] = (top, f"{name}.{names[task]}")
        else:
            found[task] = (run, names[task])
    return found


def read_runs_below(tx: Transaction, ids: Sequence[str]) -> dict[str, list[str]]:
    """The ids of all runs below each of some runs, at any depth."""
    found: dict[str, list[str]] = {}
    for row in tx.read("runs_below", ids=ids):
        found.setdefault(row["top"], []).append(row["id"])
    return found


def add_usage_below(
    usages: Mapping[str, Usage], below: Mapping[str, Sequence[str]], run_id: str
) -> Usage | None:
    """The usage of a run and of all runs below it."""
    total: Usage = {}
    for each in (run_id, *below.get(run_id, ())):
        add_usage(total, usages.get(each))
    return total or None


def view_called_runs(tx: Transaction, rows: Sequence[Row]) -> dict[str, View]:
    """Short views of called runs with their holds, and who has the slots of a full key."""
    keys = {row["concurrency_key"] for row in rows if _read_holds(row) & Hold.SLOT} - {None}
    slots = _describe_slots(tx, keys) if keys else {}
    return {row["id"]: _view_called_run(row, slots) for row in rows}


def _describe_slots(tx: Transaction, keys: Iterable[str]) -> dict[str, str]:
    # The explanation of keys is slow to load, and most runs have none.
    from holdfast.engine.explain.why_slot import explain_slot  # noqa: PLC0415

    return {key: explain_slot(tx, key)[0] for key in keys}


def _view_called_run(row: Row, slots: Mapping[str, str]) -> View:
    view: View = {name: row[name] for name in ("id", "workflow", "status")}
    holds = _read_holds(row)
    slot = slots.get(row["concurrency_key"] or "") if holds & Hold.SLOT else None
    return view | without_nulls(holds=[*holds.names] or None, slot=slot)


def _read_holds(row: Row) -> Hold:
    """The holds of a run that has not ended."""
    return Hold(row["holds"] if row["status"] == RunStatus.RUNNING else 0)


@dataclass(frozen=True, kw_only=True)
class CalledRuns:
    """Called runs by their ids, and the id of the last run that each calling task has called."""

    runs: Mapping[str, View]
    last_by_task: Mapping[str, str]


def nest_called_runs(tasks: Sequence[View], called: CalledRuns) -> list[View]:
    """Put the called run and its tasks into each task that waits for it, or has waited for it."""
    return [_nest_called_run(task, called) for task in tasks]


def _nest_called_run(task: View, called: CalledRuns) -> View:
    run = called.runs.get(task.get("waits_for") or called.last_by_task.get(task["id"], ""))
    if run is None or "calls" not in task:
        return task
    return task | {"child": run | {"tasks": nest_called_runs(run["tasks"], called)}}
