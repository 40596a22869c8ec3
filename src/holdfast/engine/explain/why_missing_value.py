"""Missing values: a task that lacked one needs a retry of the step that should have given it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.engine.read.addresses import find_called_run, follow_address
from holdfast.engine.read.task_records import read_task
from holdfast.engine.read.task_state import name_tasks
from holdfast.engine.state import child_run_refusals
from holdfast.model.advice import Action, advise
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.store.database import Row, Transaction

# The error that the writer gives a step whose texts, list or condition it cannot resolve.
_MISSING_VALUE = re.compile(
    r"(?:step|loop) '([^']*)': (?:there is no )?(?:(subject)\b|steps\.([\w:/@+-]+))"
)

# The type of the error that ends a function whose signal did not come in time.
_SIGNAL_TIMEOUT = "SignalTimeout"


def retry_for_value(tx: Transaction, tasks: Sequence[Task]) -> str:
    """The call that makes up for the first missing value of some tasks; empty if none is missing.

    It does the step again whose output was missing, because a retry of the task alone would fail
    as before. A function whose signal did not come is re-opened, because a retry remembers that.
    """
    ways = (
        _retry_giver(tx, each)
        or _retry_giver_in_called_run(tx, each)
        or _reopen_after_timeout(each)
        for each in tasks
    )
    return next(filter(None, ways), "")


def retry_for_value_of_rows(tx: Transaction, rows: Sequence[Row]) -> str:
    return retry_for_value(tx, [read_task(row) for row in rows])


def _retry_giver(tx: Transaction, task: Task) -> str:
    found = _MISSING_VALUE.match(task.error) if isinstance(task.error, str) else None
    if found is None or task.run_id is None or found[1] != task.step:
        return ""
    address = (
        _find_subject(tx, task.id) if found[2] else _find_beside(tx, task.run_id, task.id, found[3])
    )
    return "" if address is None else child_run_refusals.retry_step(tx, task.run_id, address)


def _retry_giver_in_called_run(tx: Transaction, task: Task) -> str:
    """The same call for the failed tasks of the run that a task has called."""
    if task.calls is None or task.status is not Status.FAILED:
        return ""
    child = find_called_run(tx, tx.read("task_by_id", task_id=task.id)[0])
    failed = [] if child is None else tx.read("failed_in_run", run_id=child)
    ids = [row["id"] for row in failed]
    return retry_for_value_of_rows(tx, tx.read("tasks_by_id", ids=ids)) if ids else ""


def _reopen_after_timeout(task: Task) -> str:
    kind = task.error.get("type") if isinstance(task.error, dict) else None
    remembers = task.status is Status.FAILED and kind == _SIGNAL_TIMEOUT
    return advise(Action.REOPEN, task.id) if remembers else ""


def _find_subject(tx: Transaction, task_id: str) -> str | None:
    (row,) = tx.read("task_by_id", task_id=task_id)
    return name_tasks(tx, [row["verifies"]]).get(row["verifies"]) if row["verifies"] else None


def _find_beside(tx: Transaction, run_id: str, task_id: str, step: str) -> str | None:
    """The address of a step that a task names: beside the task, or beside a group around it."""
    around = _addresses_around(name_tasks(tx, [task_id])[task_id])
    addresses = (f"{each}.{step}" if each else step for each in around)
    return next(
        (address for address in addresses if follow_address(tx, run_id, address).found is not None),
        None,
    )


def _addresses_around(address: str) -> Iterator[str]:
    while address:
        address = address.rpartition(".")[0]
        yield address
