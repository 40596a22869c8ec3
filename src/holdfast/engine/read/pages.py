"""Pages of runs and tasks, newest first; the next page begins after the last id of a page.

The checks of their parameters are here too, because this module is quick to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.ids import AnyId, id_of
from holdfast.model.status import RunStatus, Status
from holdfast.model.text import clean_key, clean_name, clean_text, parse_run_id, parse_task_id

MAX_INTEGER = 2**31 - 1
PAGE_SIZE = 100
MAX_PAGE_SIZE = 1_000
# These sort behind every id: the first character of an id's time is at most 7.
_NEWEST_RUN = "r_8"
_NEWEST_TASK = "t_8"
# The facades have a method `list`, beside which the type cannot be named by its own name.
Page = list
PageQuery = tuple[str, dict[str, Any]]


def choose_runs_query(
    *,
    limit: int,
    after: AnyId | None,
    status: str | None,
    workflow: str | None,
    key: str | None = None,
) -> PageQuery:
    """The query that gives a page of runs, and its parameters."""
    parameters: dict[str, Any] = {
        "count": read_limit(limit),
        "after": _NEWEST_RUN if after is None else run_id(after, "after"),
        "workflow": None if workflow is None else clean_name("workflow", workflow),
        "called": True,
    }
    chosen = None if status is None else _check_status(RunStatus, status)
    if key is not None:
        return "list_runs_of_key", {**parameters, "status": chosen, "key": clean_key("key", key)}
    if chosen is None:
        return "list_runs", parameters
    return "list_runs_by_status", {**parameters, "status": chosen}


def choose_tasks_query(
    page: Mapping[str, Any],
    *,
    run: AnyId | None = None,
    parent: AnyId | None = None,
    workflow: str | None = None,
) -> PageQuery:
    """The query that gives a page of tasks by the index that serves it, and its parameters."""
    after, status, agent = page["after"], page["status"], page["agent"]
    step, key = page.get("step"), page.get("key")
    parameters = {
        "count": read_limit(page["limit"]),
        "after": _NEWEST_TASK if after is None else task_id(after, "after"),
        "status": None if status is None else _check_status(Status, status),
        "agent": None if agent is None else clean_name("agent", agent),
        "step": None if step is None else clean_name("step", step),
    }
    if key is not None:
        if not (run is parent is workflow is None):
            raise InvalidInput("key", "is of one task; leave out run, parent and workflow")
        return "list_tasks_of_key", {**parameters, "key": clean_key("key", key)}
    if run is not None and parent is not None:
        raise InvalidInput("parent", "a page is of a run or of a parent, not of both")
    if workflow is not None and not (run is parent is None):
        raise InvalidInput("workflow", "a page is of a workflow, of a run or of a parent alone")
    if workflow is not None:
        return "list_tasks_of_workflow", {
            **parameters,
            "workflow": clean_name("workflow", workflow),
        }
    if run is not None:
        return "list_tasks_of_run", {**parameters, "run_id": run_id(run, "run")}
    if parent is not None:
        return "list_tasks_of_parent", {
            **parameters,
            "parent_id": task_id(parent, "parent"),
        }
    if parameters["status"] in {None, Status.DONE}:
        return "list_tasks", parameters
    running = parameters["status"] == Status.RUNNING
    return "list_tasks_running" if running else "list_tasks_by_status", parameters


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


def _check_status(kind: type[StrEnum], status: object) -> str:
    known = [each.value for each in kind]
    if not isinstance(status, str) or status not in known:
        raise InvalidInput("status", f"{status!r} is not one of {', '.join(known)}")
    return str(status)
