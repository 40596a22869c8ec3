"""Pages of runs and tasks, newest first; the next page begins after the last id of a page.

The checks of their parameters are here too, because this module is quick to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from holdfast.engine.read.filters import (
    first_label,
    read_run_filters,
    read_task_filters,
)
from holdfast.errors import InvalidInput
from holdfast.ids import AnyId, id_of
from holdfast.model.filters import RunFilters, SharedFilters, TaskFilters
from holdfast.model.status import Status
from holdfast.model.text import clean_key, clean_text, parse_run_id, parse_task_id
from holdfast.store.database import Row, Transaction

MAX_INTEGER = 2**31 - 1
PAGE_SIZE = 100
MAX_PAGE_SIZE = 1_000
# The facades have a method `list`, beside which the type cannot be named by its own name.
Page = list
PageQuery = tuple[str, dict[str, Any]]
# A label that so many runs and tasks have, and more, is looked for beside the others of a page.
FEW_HOLDERS = 1_000


def choose_runs_query(
    now: Callable[[], int], *, limit: int, after: AnyId | None, **given: Unpack[RunFilters]
) -> PageQuery:
    """The query that gives a page of runs by the index that serves it, and its parameters."""
    parameters = choose_runs(now, given) | {"count": read_limit(limit)}
    if after is not None:
        parameters["after"] = min(parameters["after"], run_id(after, "after"))
    if given.get("key") is not None:
        return "list_runs_of_key", parameters
    if parameters["labels"] is not None:
        return "list_runs_of_label", parameters | first_label(parameters)
    if parameters["status"] is not None:
        return "list_runs_by_status", parameters
    return "list_runs" if parameters["workflow"] is None else "list_runs_of_workflow", parameters


def choose_run_counts(
    now: Callable[[], int], *, called: bool, **given: Unpack[RunFilters]
) -> PageQuery:
    """The query that counts runs by the index that serves it, and its parameters."""
    parameters = choose_runs(now, given) | {"called": called}
    if parameters["labels"] is not None:
        return "count_runs_of_label", parameters | first_label(parameters)
    return "count_runs" if parameters["workflow"] is None else "count_runs_of_workflow", parameters


def choose_runs(now: Callable[[], int], given: RunFilters) -> dict[str, Any]:
    """The parameters by which queries choose runs, called runs included."""
    _refuse_unknown(given, RunFilters)
    found = read_run_filters(given, now)
    return found | {"after": found.pop("before"), "called": True, "key": _read_key(given)}


def choose_tasks_query(
    now: Callable[[], int], *, limit: int, after: AnyId | None, **given: Unpack[TaskFilters]
) -> PageQuery:
    """The query that gives a page of tasks by the index that serves it, and its parameters."""
    _refuse_unknown(given, TaskFilters)
    found = read_task_filters(given, now)
    parameters = found | {"after": found.pop("before"), "count": read_limit(limit)}
    if after is not None:
        parameters["after"] = min(parameters["after"], task_id(after, "after"))
    run, parent, workflow = given.get("run"), given.get("parent"), parameters.pop("workflow")
    if given.get("key") is not None:
        if not (run is parent is workflow is None):
            raise InvalidInput("key", "is of one task; leave out run, parent and workflow")
        return "list_tasks_of_key", parameters | {"key": _read_key(given)}
    if run is not None and parent is not None:
        raise InvalidInput("parent", "a page is of a run or of a parent, not of both")
    if workflow is not None and not (run is parent is None):
        raise InvalidInput("workflow", "a page is of a workflow, of a run or of a parent alone")
    if workflow is not None:
        return "list_tasks_of_workflow", parameters | {"workflow": workflow}
    if run is not None:
        return "list_tasks_of_run", parameters | {"run_id": run_id(run, "run")}
    if parent is not None:
        return "list_tasks_of_parent", parameters | {"parent_id": task_id(parent, "parent")}
    if parameters["status"] in {None, Status.DONE}:
        return "list_tasks", parameters
    running = parameters["status"] == Status.RUNNING
    return "list_tasks_running" if running else "list_tasks_by_status", parameters


def read_runs(tx: Transaction, query: str, parameters: dict[str, Any]) -> list[Row]:
    """The rows of a page or a count; a label that many have is looked for beside the others."""
    other = _WITHOUT_LABEL.get(query)
    if other is None or (parameters["status"] is None and query.startswith("list")):
        return tx.read(query, **parameters)
    label = first_label(parameters)
    if _has_few_holders(tx, label):
        return tx.read(query, **parameters)
    return tx.read(other, **{name: parameters[name] for name in parameters if name not in label})


# What walks through the runs of a status, or through all, where the index of a label is no help.
_WITHOUT_LABEL = {
    "list_runs_of_label": "list_runs_by_status",
    "count_runs_of_label": "count_runs",
}


def _has_few_holders(tx: Transaction, label: Mapping[str, str]) -> bool:
    (found,) = tx.read("holders_of_label", **label, most=FEW_HOLDERS)
    return bool(found["number"] < FEW_HOLDERS)


def read_task_page(tx: Transaction, query: str, parameters: dict[str, Any]) -> list[Row]:
    """The rows of a page; those of a label that few have are found by its index."""
    if parameters["labels"] is not None and query in _WALKING_QUERIES:
        label = first_label(parameters)
        if _has_few_holders(tx, label):
            return tx.read("list_tasks_of_label", **parameters, **label)
    return tx.read(query, **parameters)


# These walk through tasks of all kinds, from the newest on.
_WALKING_QUERIES = frozenset({"list_tasks", "list_tasks_by_status", "list_tasks_running"})


def _read_key(given: SharedFilters) -> str | None:
    key = given.get("key")
    return None if key is None else clean_key("key", key)


def _refuse_unknown(given: Mapping[str, Any], known: type) -> None:
    for name in given:
        if name not in known.__annotations__:
            raise InvalidInput(name, f"is no filter; there are {', '.join(known.__annotations__)}")


def read_limit(value: int, field: str = "limit") -> int:
    return number(field, value, least=1, most=MAX_PAGE_SIZE)


def task_id(value: object, field: str = "task_id") -> str:
    return parse_task_id(clean_text(field, id_of(value)), field=field)


def run_id(value: object, field: str = "run_id") -> str:
    return parse_run_id(clean_text(field, id_of(value)), field=field)


def number(field: str, value: object, *, least: int, most: int = MAX_INTEGER) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"must be a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidInput(field, f"must be between {least} and {most}, not {value}")
    return value
