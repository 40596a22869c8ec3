"""Removes what ended long ago, whole, with all its events, and leaves tombstones."""

from __future__ import annotations

from holdfast.engine.group import Group
from holdfast.engine.removal_operations import Removal, RemoveDeleted, RemoveRuns


def remove(group: Group, operation: Removal) -> list[str]:
    """Those runs and tasks that are gone now, and with them all that belonged to them.

    Their rows are locked: what the tombstones were made of is what is removed.
    """
    choose = _deleted if isinstance(operation, RemoveDeleted) else _bury
    tops = choose(group, operation)
    gone = [member for member, top in operation.members if top in tops]
    if not gone:
        return []
    tasks = [member for member in gone if member.startswith("t_")]
    if isinstance(operation, RemoveRuns):
        group.tx.run("bury_keys", ids=tasks)
    group.tx.run("remove_events", ids=gone)
    group.tx.run("remove_signals", ids=gone)
    group.tx.run("remove_traces", ids=gone)
    group.tx.run("remove_needs", ids=tasks)
    group.tx.run("remove_tasks", ids=tasks)
    if isinstance(operation, RemoveRuns):
        group.tx.run("remove_runs", ids=sorted(set(operation.runs).intersection(gone)))
    return sorted(tops)


def _bury(group: Group, operation: Removal) -> set[str]:
    query = "bury_runs" if isinstance(operation, RemoveRuns) else "bury_tasks"
    buried = group.tx.write(query, rows=operation.members, before=operation.before)
    return {row["entity"] for row in buried}.intersection(top for _, top in operation.members)


def _deleted(group: Group, operation: Removal) -> set[str]:
    """Nobody writes of them any more, and no key of theirs was kept."""
    unread = group.tx.read("unread_deleted", ids=operation.keys)
    return set(operation.keys).difference(row["entity"] for row in unread)
