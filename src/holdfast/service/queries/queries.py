"""Queries of front ends: pages and single runs, tasks and events as JSON, each on one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.engine.read.pages import (
    MAX_PAGE_SIZE,
    PAGE_SIZE,
    choose_run_counts,
    choose_runs_query,
    choose_tasks_query,
    read_limit,
    read_runs,
    read_task_page,
)
from holdfast.engine.read.records import read_event, read_run, read_value
from holdfast.engine.read.spending import read_usage_of_runs
from holdfast.engine.read.task_state import (
    add_derived_states,
    count_done_in_called_runs,
    count_done_in_runs,
    name_tasks,
    read_usage_limits,
)
from holdfast.errors import NotFound
from holdfast.model.filters import RunFilters, TaskFilters
from holdfast.model.run import Run
from holdfast.model.status import RunStatus
from holdfast.model.text import clean_name
from holdfast.service.queries.artifacts import view_artifacts
from holdfast.service.queries.child_runs import (
    CalledRuns,
    add_usage_below,
    find_addresses_from_top,
    nest_called_runs,
    read_callers,
    read_runs_below,
    view_called_runs,
)
from holdfast.service.queries.plain_tasks import is_fresh, is_plain, view_plain
from holdfast.service.queries.run_history import StoreReader, read_run_events, read_settled_page
from holdfast.service.queries.views import (
    View,
    describe_removed,
    format_time,
    read_titles,
    usage_by_owner,
    view_attempt,
    view_budget,
    view_event,
    view_run,
    view_schedule,
    view_task,
    view_tombstone,
    view_worker,
    without_nulls,
)
from holdfast.store.database import Row, Transaction

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine
    from holdfast.model.task import Task

# Parsing longer JSON takes longer than reading all the rest of a task.
MAX_BRIEF_LENGTH = 16_384


class Queries:
    """Reads of a store. Most need only the store; the others open an engine."""

    def __init__(self, view: StoreReader, engine: Callable[[], Engine]) -> None:
        self._read_store = view
        self._engine = engine

    def runs(
        self,
        *,
        limit: int = PAGE_SIZE,
        after: str | None = None,
        called: bool = False,
        **filters: Unpack[RunFilters],
    ) -> View:
        """A page of runs, newest first: `{items, next}`; with `called`, called runs as well."""

        def read(tx: Transaction) -> View:
            query, asked = choose_runs_query(
                partial(_read_now, tx), limit=limit, after=after, **filters
            )
            rows = [read_run(row) for row in read_runs(tx, query, asked | {"called": called})]
            return _view_page(_add_needs_of_people(tx, view_runs(tx, rows)), limit, "id")

        return self._read_store(read)

    def run_counts(self, *, called: bool = False, **filters: Unpack[RunFilters]) -> View:
        """How many runs fit the filters, in all and by status: `{total, statuses}`."""

        def read(tx: Transaction) -> View:
            query, asked = choose_run_counts(partial(_read_now, tx), called=called, **filters)
            found = {row["status"]: row["runs"] for row in read_runs(tx, query, asked)}
            known = {each.value: found.get(each.value, 0) for each in RunStatus}
            return {"total": sum(known.values()), "statuses": known}

        return self._read_store(read)

    def tasks(
        self, *, limit: int = PAGE_SIZE, after: str | None = None, **filters: Unpack[TaskFilters]
    ) -> View:
        """A page of tasks, newest first: `{items, next}`."""

        def read(tx: Transaction) -> View:
            query, asked = choose_tasks_query(
                partial(_read_now, tx), limit=limit, after=after, **filters
            )
            rows = read_task_page(tx, query, asked)
            return _view_page(view_tasks(tx, _read_tasks(rows)), limit, "id")

        return self._read_store(read)

    def run(self, run_id: str, *, brief: bool = False) -> View:
        """A run, and its tasks in the order they were written, with the runs that they called.

        With `brief`, long payloads and outputs are left out: a live view does not show them.
        """

        def read(tx: Transaction) -> View:
            rows = tx.read("run_by_id", run_id=run_id)
            if not rows:
                raise NotFound(run_id, "run", describe_removed(tx, run_id))
            (run,) = view_runs(tx, [read_run(rows[0])], brief=brief)
            below = read_runs_below(tx, [run_id]).get(run_id, [])
            tasks = _read_tasks_of_runs(tx, [run_id, *below], brief=brief)
            return {**run, "tasks": nest_called_runs(tasks[run_id], _read_called(tx, below, tasks))}

        return self._read_store(read)

    def past_run(self, run_id: str, at: int) -> View:
        """A run with its tasks as it stood right after the event of a number."""
        # The records of tasks and events are slow to load, and most reads need none.
        from holdfast.service.queries.past_runs import read_past_run  # noqa: PLC0415

        return self._read_store(lambda tx: read_past_run(tx, run_id, at))

    def task(self, task_id: str) -> View:
        def read(tx: Transaction) -> View:
            rows = tx.read("task_by_id", task_id=task_id)
            if not rows:
                raise NotFound(task_id, "task", describe_removed(tx, task_id))
            return view_tasks(tx, _read_tasks(rows))[0]

        return self._read_store(read)

    def require(self, identifier: str) -> None:
        """Raise `NotFound` where there is no run or task of this id."""
        engine = self._engine()
        (engine.tasks if identifier.startswith("t_") else engine.runs).get(identifier)

    def tombstone(self, identifier: str) -> View | None:
        """The tombstone of a run or task that was removed."""
        rows = self._read_store(lambda tx: tx.read("tombstone_of", entity=identifier))
        return view_tombstone(rows[0]) if rows else None

    def tasks_by_id(self, ids: Sequence[str]) -> list[View]:
        """Tasks by their ids, in any order."""

        def read(tx: Transaction) -> list[View]:
            return view_rows(tx, tx.read("tasks_by_id", ids=sorted({*ids})))

        return self._read_store(read)

    def tasks_below(self, task_id: str) -> list[View]:
        """The tasks below a task without a run, at any depth, without long payloads and outputs."""

        def read(tx: Transaction) -> list[View]:
            rows = [_drop_long_values(row) for row in tx.read("tasks_below", task_id=task_id)]
            return view_tasks(tx, _read_tasks(rows))

        return self._read_store(read)

    def task_with_attempts(self, task_id: str) -> View:
        """A task with its attempts, its artifacts, and the tasks right below it in their order."""
        below = self.tasks(parent=task_id, limit=MAX_PAGE_SIZE)["items"]
        children = sorted(below, key=lambda each: (each["position"], each["id"]))
        task = self.task(task_id)
        attempts = self.attempts(task_id)
        child = self._read_called_run(task) if "calls" in task else None
        artifacts = self._read_store(lambda tx: view_artifacts(tx, task["id"]))
        return without_nulls(
            **task,
            attempts=attempts,
            children=children or None,
            child=child,
            artifacts=artifacts or None,
        )

    def _read_called_run(self, task: View) -> View | None:
        """The run that a task has called and waits for."""

        def read(tx: Transaction) -> dict[str, View]:
            return view_called_runs(tx, tx.read("run_by_id", run_id=task.get("waits_for", "")))

        return next(iter(self._read_store(read).values()), None)

    def attempts(self, task_id: str) -> list[View]:
        attempts = self._engine().tasks.attempts(task_id)
        made: dict[int, list[Row]] = {}
        for row in self._read_store(lambda tx: tx.read("commits_of_tasks", ids=[task_id])):
            made.setdefault(row["attempt"], []).append(row)
        return [view_attempt(each, made.get(each.number, ())) for each in attempts]

    def events(
        self, identifier: str, *, after: int = 0, limit: int = PAGE_SIZE, final: bool = False
    ) -> View:
        """A page of the history of a run with its tasks, or of one task, oldest first.

        A `final` page does not wait for transactions that commit late: no page follows it.
        """
        count = read_limit(limit)

        def read(tx: Transaction) -> list[Row]:
            if identifier.startswith("t_"):
                return tx.read("task_events_after", task_id=identifier, after=after, count=count)
            return read_run_events(tx, identifier, after, count)

        alone = final or identifier.startswith("t_")
        rows = (
            self._read_store(read)
            if alone
            else read_settled_page(self._read_store, read, identifier, after)
        )
        return _view_page(self._view_events(rows), limit, "seq")

    def latest_events(self, limit: int = PAGE_SIZE) -> list[View]:
        """The newest events of the whole store, oldest first."""
        count = read_limit(limit)
        rows = self._read_store(lambda tx: tx.read("latest_events", count=count))
        return self._view_events(rows[::-1])

    def _view_events(self, rows: Sequence[Row]) -> list[View]:
        titles = self._read_store(lambda tx: read_titles(tx, rows))
        return [view_event(read_event(row), titles) for row in rows]

    def name_each(self, ids: Iterable[str]) -> dict[str, str]:
        """The names of the runs and tasks that exist: a workflow, an address or a title."""
        wanted = sorted({*ids})

        def read(tx: Transaction) -> dict[str, str]:
            runs = [each for each in wanted if each.startswith("r_")]
            rows = tx.read("runs_by_id", ids=runs) if runs else []
            return {row["id"]: row["workflow"] for row in rows} | name_tasks(tx, wanted)

        return self._read_store(read)

    def schedules(self, *, limit: int = PAGE_SIZE, after: str | None = None) -> View:
        found = self._engine().schedules.list(limit=limit, after=after)
        return _view_page([view_schedule(each) for each in found], limit, "name")

    def workers(self) -> View:
        """Every live worker, on any machine, with what takes its slots."""
        return {"items": [view_worker(each) for each in self._engine().workers.loads()]}

    def workflows(self) -> View:
        """Every workflow that the store knows, with its newest version first."""
        rows = self._read_store(lambda tx: tx.read("known_workflows"))
        known: dict[str, View] = {}
        for row in rows:
            told = known.setdefault(
                row["name"],
                {
                    "name": row["name"],
                    "version": row["version"],
                    "created_at": format_time(row["created_at"]),
                    "versions": [],
                },
            )
            told["versions"].append(row["version"])
        return {"items": list(known.values())}

    def workflow_versions(self, name: str) -> View:
        """The versions of a workflow, the newest first."""
        chosen = clean_name("workflow", name)
        rows = self._read_store(lambda tx: tx.read("versions_of_workflow", name=chosen))
        if not rows:
            raise NotFound(name, "workflow", "GET /workflows lists them")
        told = [
            {"version": row["version"], "created_at": format_time(row["created_at"])}
            for row in rows
        ]
        return {"items": told}

    def tasks_for_people(self, limit: int = PAGE_SIZE, *, run: str | None = None) -> list[View]:
        """The tasks of one run, or of all, that wait for an approval or an answer; oldest first.

        Each task has its address.
        """

        def read(tx: Transaction) -> list[View]:
            rows = (
                tx.read("tasks_for_people", count=limit)
                if run is None
                else tx.read("tasks_of_run_for_people", run_id=run, count=limit)
            )
            return add_addresses(tx, view_tasks(tx, _read_tasks(rows)))

        return self._read_store(read)

    def tasks_out_of_queue(self, limit: int = PAGE_SIZE) -> list[View]:
        """The steps of runs that wait until a person enqueues them; each with its address."""

        def read(tx: Transaction) -> list[View]:
            rows = tx.read("steps_out_of_queue", count=limit)
            return add_addresses(tx, view_tasks(tx, _read_tasks(rows)))

        return self._read_store(read)


def _read_now(tx: Transaction) -> int:
    (row,) = tx.read("now")
    return int(row["now"])


def add_addresses(tx: Transaction, tasks: Sequence[View]) -> list[View]:
    """Add the address to each of some tasks; in a called run it starts at the topmost run."""
    addresses = find_addresses_from_top(tx, {each["id"]: each.get("run_id") for each in tasks})
    return [each | {"address": _write_address(*addresses[each["id"]])} for each in tasks]


def _add_needs_of_people(tx: Transaction, runs: Sequence[View]) -> list[View]:
    """Add to runs the tasks of them, and of runs called below, that wait for a person."""
    ids = [run["id"] for run in runs if run["status"] == "running"]
    if not ids:
        return [*runs]
    below = read_runs_below(tx, ids)
    tops = {each: run for run in ids for each in (run, *below.get(run, ()))}
    rows = tx.read("tasks_of_runs_for_people", ids=sorted(tops), count=MAX_PAGE_SIZE)
    if not rows:
        return [*runs]
    needs: dict[str, list[View]] = {}
    for task in add_addresses(tx, view_tasks(tx, _read_tasks(rows))):
        needs.setdefault(tops[task["run_id"]], []).append(task)
    return [run | without_nulls(needs_you=needs.get(run["id"])) for run in runs]


def _write_address(run: str | None, name: str) -> str:
    """The address of a task: `RUN:name`, or its title where it has no run."""
    return name if run is None else f"{run}:{name}"


def _read_tasks_of_runs(
    tx: Transaction, runs: Sequence[str], *, brief: bool
) -> dict[str, list[View]]:
    rows = tx.read("tasks_of_runs", ids=runs)
    if brief:
        rows = [_drop_long_values(row) for row in rows]
    tasks: dict[str, list[View]] = {run: [] for run in runs}
    for task in view_tasks(tx, _read_tasks(rows)):
        tasks[task["run_id"]].append(task)
    return tasks


def _read_called(tx: Transaction, ids: Sequence[str], tasks: dict[str, list[View]]) -> CalledRuns:
    rows = sorted(tx.read("runs_by_id", ids=ids), key=lambda row: int(row["parent_epoch"]))
    callers = sorted({row["parent_id"] for row in rows})
    counted = {row["id"] for row in tx.read("child_runs", ids=callers)}
    runs = {
        run_id: view
        | without_nulls(superseded=None if run_id in counted else True, tasks=tasks[run_id])
        for run_id, view in view_called_runs(tx, rows).items()
    }
    return CalledRuns(runs=runs, last_by_task={row["parent_id"]: row["id"] for row in rows})


def _drop_long_values(row: Row) -> Row:
    long = [name for name in ("payload", "output") if len(row[name] or "") > MAX_BRIEF_LENGTH]
    return {**row, **dict.fromkeys(long)} if long else row


def view_runs(tx: Transaction, runs: Sequence[Run], *, brief: bool = False) -> list[View]:
    ids = [run.id for run in runs]
    counted = count_done_in_runs(tx, ids)
    outputs: dict[str, dict[str, Any]] = {}
    for row in () if brief else tx.read("outputs_of_runs", ids=ids):
        outputs.setdefault(row["run_id"], {})[row["step"]] = read_value(row["output"])
    below = read_runs_below(tx, ids)
    everyone = sorted({*ids, *(each for called in below.values() for each in called)})
    usages = usage_by_owner(tx.read("usages_of_runs", ids=everyone))
    parents = read_callers(tx, runs)
    limited = read_usage_of_runs(tx, [run.id for run in runs if run.budget is not None])
    lines = {row["id"]: row for row in tx.read("line_states", ids=ids)}
    return [
        view_run(
            run,
            branch=lines[run.id]["branch"] if run.id in lines else None,
            commit=lines[run.id]["head"] if run.id in lines else None,
            output=_join_outputs(outputs.get(run.id, {})),
            usage=add_usage_below(usages, below, run.id),
            caller=parents.get(run.id),
            budget=None if run.budget is None else view_budget(run.budget, limited[run.id]),
            progress=_view_progress(counted.get(run.id)),
        )
        for run in runs
    ]


def view_rows(tx: Transaction, rows: Sequence[Row]) -> list[View]:
    """The views of some rows of tasks; plain tasks come first."""
    plain = [row for row in rows if is_plain(row) and is_fresh(row)]
    if any(row["status"] == "queued" for row in plain):
        limits = read_usage_limits(tx)
        plain = [row for row in plain if row["agent"] not in limits]
    ids = [row["id"] for row in plain]
    parents = {row["parent_id"] for row in tx.read("count_children", ids=ids)} if ids else set()
    seen = {*ids} - parents
    others = _read_tasks([row for row in rows if row["id"] not in seen])
    told = [view_plain(row) for row in plain if row["id"] in seen]
    return told + view_tasks(tx, others) if others else told


def _read_tasks(rows: Iterable[Row]) -> list[Task]:
    # The records of tasks are slow to load, and a page of runs needs none.
    from holdfast.engine.read.task_records import read_task  # noqa: PLC0415

    return [read_task(row) for row in rows]


def view_tasks(tx: Transaction, tasks: Iterable[Task]) -> list[View]:
    listed = add_derived_states(tx, list(tasks))
    ids = [task.id for task in listed]
    waits: dict[str, list[str]] = {}
    blocked = [task.id for task in listed if task.blocked]
    for row in tx.read("unmet_needs", ids=blocked) if blocked else ():
        waits.setdefault(row["task_id"], []).append(row["id"])
    below = {
        row["parent_id"]: (row["done"], row["whole"]) for row in tx.read("count_children", ids=ids)
    }
    below |= count_done_in_called_runs(tx, listed)
    # The row of a new attempt or epoch starts without usage: that of earlier ones is in events.
    used = [task.id for task in listed if task.usage or task.attempt > 1 or task.epoch > 1]
    usages = usage_by_owner(tx.read("usages_of_tasks", ids=used)) if used else {}
    made = [task.id for task in listed if task.run_id is not None and task.attempt]
    heads = {row["id"]: row["sha"] for row in tx.read("heads_of_tasks", ids=made)} if made else {}
    return [
        view_task(task, blocked_by=waits.get(task.id), below=below.get(task.id))
        | without_nulls(usage=usages.get(task.id), commit=heads.get(task.id))
        for task in listed
    ]


def _join_outputs(outputs: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON is any value
    """The output of a run: that of its last step, or those of its last steps by name."""
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    return outputs or None


def _view_progress(counted: tuple[int, int] | None) -> View | None:
    return None if counted is None else {"done": counted[0], "total": counted[1]}


def _view_page(items: list[View], limit: int, field: str) -> View:
    return without_nulls(items=items, next=items[-1][field] if len(items) == limit else None)
