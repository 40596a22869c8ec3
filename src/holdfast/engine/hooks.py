"""What follows an end: one task for each hook that is for it, in the commit that records it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from holdfast.engine import creation, hook_template
from holdfast.engine.answers import refuse
from holdfast.engine.asked import TaskRow
from holdfast.engine.group import Group
from holdfast.engine.hook_operations import RegisterHooks, RemoveHook
from holdfast.engine.records import read_event, read_value
from holdfast.engine.unreadable import UNREADABLE, tell_problem
from holdfast.errors import tell_error
from holdfast.ids import Ids
from holdfast.model.hook import Ended, hook_step
from holdfast.model.result import Refusal, TransitionResult
from holdfast.store.database import Row

ACTOR = "hook"

log = logging.getLogger("holdfast.hooks")


def register(group: Group, operations: Sequence[RegisterHooks]) -> list[None]:
    # In one order, because two processes that register the same hooks wait for each other.
    rows = [hook for operation in operations for hook in operation.hooks]
    rows.sort(key=lambda hook: hook[0])
    group.tx.run("register_hooks", rows=rows)
    return [None for _ in operations]


def remove(group: Group, operation: RemoveHook) -> TransitionResult:
    if group.tx.write("remove_hook", hook=operation.name):
        return TransitionResult(ok=True)
    names = ", ".join(row["name"] for row in group.tx.read("list_hooks"))
    there = f"there are {names}" if names else "there is none at all"
    detail = f"no hook of this store is called {operation.name!r}; {there}"
    return refuse(Refusal.NOT_FOUND, None, detail)


def fire(group: Group) -> None:
    """Queue what is to follow the ends of this group; each end is there once, and so is this."""
    if not group.ends:
        return
    ends, group.ends = group.ends, []
    found = group.tx.read("hooks_to_fire", rows=[(end["entity"], end["version"]) for end in ends])
    tasks: list[tuple[TaskRow, str]] = []
    for row in found:
        try:
            tasks.append((_task(row, group.ids), ACTOR))
        except UNREADABLE as error:
            group.passed_hooks.append({**row, "problem": tell_problem(error)})
    creation.insert_tasks(group, tasks, {}, run_holds=0)
    failed = [end["entity"] for end in ends if end["status"] == "failed" and end["run_id"] is None]
    if failed:
        group.failed_hooks += group.tx.read("failed_hooks", ids=failed)


def report(failed: Sequence[Row], passed: Sequence[Row]) -> None:
    """Say which hooks have failed for good or were passed over, after what, and how to go on."""
    for row in failed:
        log.error(
            'hook %s failed for good: %s; what it follows stays as it ended; hf.tasks.retry("%s") '
            "tries it again",
            row["title"],
            tell_error(read_value(row["error"])),
            row["id"],
        )
    for row in passed:
        log.error(
            "hook %s was passed over after %s of %s, because this program cannot read it: %s; "
            "hf.hooks.list() tells it too; the program that has this hook registers it anew",
            row["name"],
            row["type"],
            row["entity"],
            row["problem"],
        )


def read_payload(payload: dict[str, Any]) -> Ended:
    """The event in the payload of a hook's task."""
    return Ended(**payload["event"])


def _task(row: Row, ids: Ids) -> TaskRow:
    name, entity = row["name"], row["entity"]
    event = Ended.tell(read_event(row), workflow=row["workflow"], step=row["step"])
    return TaskRow(
        id=ids.task(),
        step=hook_step(name),
        title=f"{name} after {row['type']} of {entity}",
        status="queued",
        key=f"{hook_step(name)} {entity} {row['version']}",
        payload=json.dumps({"event": asdict(event)}, ensure_ascii=False, separators=(",", ":")),
        **hook_template.read(row["template"]),
    )
