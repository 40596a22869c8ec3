"""Idempotency keys: the task or run that has each key, and whether a request asks for the same.

The function or the workflow and its arguments decide. Other options of a request do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from holdfast.engine.core.operation import StartRun
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.errors import KeyConflict
from holdfast.store.database import Row

MOST_NAMED = 5
_OTHER_WORK = "; use another key, or ask for the same to get the existing one"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRequest:
    """What is asked for under a key: `work` says which function or workflow is called.

    Without `arguments` they are not known, and only equal digests are the same.
    """

    id: str
    digest: str
    work: str = ""
    arguments: str | None = None


def request_task(task: TaskRow) -> KeyRequest:
    return KeyRequest(
        id=task.id,
        digest=task.body_digest,
        work=_describe_task(task.step, task.calls, plan=task.plan),
        arguments=task.payload,
    )


def request_run(run: StartRun) -> KeyRequest:
    return KeyRequest(
        id=run.run_id,
        digest=run.body_digest,
        work=_describe_run(run.workflow),
        arguments=run.input,
    )


def read_task_holder(row: Row) -> KeyRequest:
    """The task that holds a key, from its row; a removed task has no arguments any more."""
    return KeyRequest(
        id=row["id"],
        digest=row["body_digest"],
        work=_describe_task(row["step"], row["calls"], plan=row["planned"]),
        arguments=row["payload"],
    )


def read_run_holder(row: Row) -> KeyRequest:
    return KeyRequest(
        id=row["id"],
        digest=row["body_digest"],
        work=_describe_run(row["workflow"]),
        arguments=row["input"],
    )


def _describe_task(function: str | None, calls: str | None, *, plan: bool) -> str:
    if plan:
        return "a plan"
    if calls is not None:
        return _describe_run(calls)
    return "a task without a function" if function is None else f"a call of {function!r}"


def _describe_run(workflow: str) -> str:
    return f"a run of {workflow!r}"


def find_conflict(key: str, holder: KeyRequest, wanted: KeyRequest) -> KeyConflict | None:
    """The conflict of a request with the holder of its key; None if both ask for the same.

    The arguments are compared too: the digest may be that of an older release, or of an import.
    """
    if holder.digest == wanted.digest:
        return None
    if holder.arguments is None or wanted.arguments is None:
        return KeyConflict(key, holder.id)
    if holder.work != wanted.work:
        what = f"which is {holder.work} and not {wanted.work}"
        return KeyConflict(key, holder.id, what + _OTHER_WORK)
    if holder.arguments == wanted.arguments:
        return None
    differing = find_differing(json.loads(holder.arguments), json.loads(wanted.arguments))
    return KeyConflict(key, holder.id, differing=tuple(islice(differing, MOST_NAMED)))


def find_differing(held: Any, given: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """The names of the arguments that differ; those inside of an object after its name."""
    if isinstance(held, dict) and isinstance(given, dict):
        for name in sorted(held.keys() | given.keys()):
            here = f"{place}.{name}" if place else name
            if name not in held or name not in given:
                yield here
            elif json.dumps(held[name]) != json.dumps(given[name]):
                yield from find_differing(held[name], given[name], here)
    elif place:
        yield place


class IdempotencyKeys:
    """The task or run that has each key, in the store and in this unit of work."""

    def __init__(
        self, work: UnitOfWork, kind: Literal["task", "run"], wanted: Sequence[str | None]
    ) -> None:
        self._work = work
        self._kind = kind
        keys = sorted({key for key in wanted if key is not None})
        rows = work.tx.read(f"{kind}s_by_key", keys=keys) if keys else []
        self._holders: dict[str, KeyRequest] = {
            row["key"]: KeyRequest(id=row["id"], digest=row["body_digest"]) for row in rows
        }

    def claim(self, key: str | None, wanted: KeyRequest) -> str:
        """Return the id that has the key: the id of the request if the key was free."""
        if key is None:
            return wanted.id
        holder = self._holders.setdefault(key, wanted)
        unknown = holder.arguments is None and wanted.arguments is not None
        if unknown and holder.digest != wanted.digest:
            holder = self._holders[key] = self._read_arguments(holder)
        conflict = find_conflict(key, holder, wanted)
        if conflict is not None:
            raise conflict
        return holder.id

    def _read_arguments(self, holder: KeyRequest) -> KeyRequest:
        read = self._work.tx.read
        if self._kind == "task":
            found = [read_task_holder(row) for row in read("task_arguments", task_id=holder.id)]
        else:
            found = [read_run_holder(row) for row in read("run_by_id", run_id=holder.id)]
        # A removed holder has left its digest alone.
        return found[0] if found else holder

    def forget(self, identifiers: Iterable[str]) -> None:
        """Free the keys that a refused call had claimed."""
        gone = set(identifiers)
        self._holders = {
            key: holder for key, holder in self._holders.items() if holder.id not in gone
        }
