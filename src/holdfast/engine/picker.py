"""The one place where it is decided which task a worker gets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from holdfast.engine import slots
from holdfast.engine.group import Group
from holdfast.engine.operations import Claim, ClaimById
from holdfast.engine.records import read_task
from holdfast.model.task import Assignment
from holdfast.model.token import make_token
from holdfast.store.database import Row

DUE_AT_ONCE = 1_000


def claim(group: Group, claims: Sequence[Claim]) -> list[list[Assignment]]:
    mark_due(group)
    return [_assign(group, _claim(group, each)) for each in claims]


def claim_by_id(group: Group, claims: Sequence[ClaimById]) -> list[list[Assignment]]:
    mark_due(group)
    named = group.tx.read("keys_of_tasks", ids=[each.task_id for each in claims])
    slots.hold(group, {row["concurrency_key"] for row in named})
    return [_assign(group, _claim_by_id(group, each)) for each in claims]


def mark_due(group: Group) -> None:
    if group.tx.write("mark_due", count=DUE_AT_ONCE):
        group.wakes = True


def _claim(group: Group, request: Claim) -> list[Row]:
    claimed: list[Row] = []
    while len(claimed) < request.count:
        first = _first(group, request, request.count - len(claimed))
        keys = {row["concurrency_key"] for row in first if row["concurrency_key"]}
        new = keys - group.slots
        # Before a start is recorded, so that the events count right at every prefix.
        slots.hold(group, new)
        taken = [
            row
            for agent, count in Counter(row["agent"] for row in first).items()
            for row in _claim_from(group, request, agent, count)
        ]
        claimed += taken
        # A key may have had room for fewer than were first in line; others may stand behind them.
        if not keys or not (taken or new):
            break
    return claimed


def _first(group: Group, request: Claim, count: int) -> list[Row]:
    """The first `count` ready tasks of all the agents that a worker serves."""
    ready = [
        row
        for agent in request.agents
        for row in group.tx.read("peek_tasks", agent=agent, tags=request.tags, count=count)
    ]
    if len(request.agents) > 1:
        ready.sort(
            key=lambda row: (not row["run_now"], -row["priority"], row["position"], row["id"])
        )
    return ready[:count]


def _claim_from(group: Group, request: Claim, agent: str, count: int) -> list[Row]:
    rows = group.change_tasks(
        "claim_tasks",
        agent=agent,
        tags=request.tags,
        count=count,
        keys=sorted(group.slots),
        passed=request.passed,
        worker=request.worker,
        lease=request.lease,
    )
    slots.take(group, rows)
    return rows


def _claim_by_id(group: Group, request: ClaimById) -> list[Row]:
    rows = group.change_tasks(
        "claim_task_by_id",
        task_id=request.task_id,
        agents=request.agents,
        tags=request.tags,
        worker=request.worker,
        lease=request.lease,
    )
    slots.take(group, rows)
    return rows


def _assign(group: Group, rows: list[Row]) -> list[Assignment]:
    """Give each claimed task its token and what it needs to run, in the order of the queue."""
    in_runs = [row["entity"] for row in rows if row["run_id"] is not None]
    needed = [row["entity"] for row in rows]
    outputs: dict[str, dict[str, object]] = {}
    if needed:
        for row in group.tx.read("needed_outputs", ids=needed):
            given = None if row["output"] is None else json.loads(row["output"])
            outputs.setdefault(row["task_id"], {})[row["step"] or row["id"]] = given
    runs: dict[str, Row] = {}
    if in_runs:
        ids = sorted({row["run_id"] for row in rows if row["run_id"] is not None})
        runs = {row["id"]: row for row in group.tx.read("run_inputs", ids=ids)}
    assignments = [
        _assignment(group.secret, row, runs.get(row["run_id"]), outputs.get(row["entity"], {}))
        for row in rows
    ]
    return sorted(_in_items(group, assignments), key=_place)


def _in_items(group: Group, assignments: list[Assignment]) -> list[Assignment]:
    """Give the steps of items their values, and what was said of the groups around them."""
    parents = {each.task.parent_id for each in assignments if each.task.item is not None}
    if not parents:
        return assignments
    values: dict[str, str] = {}
    said: dict[str, str] = {}
    for row in group.tx.read("items_around", ids=sorted(filter(None, parents))):
        values.setdefault(row["root"], row["payload"])
        if row["feedback"] is not None:
            said.setdefault(row["root"], row["feedback"])
    return [
        replace(each, item=json.loads(values[parent]), around=json.loads(said.get(parent, "null")))
        if (parent := each.task.parent_id) in values
        else each
        for each in assignments
    ]


def _place(assignment: Assignment) -> tuple[bool, int, int, str]:
    task = assignment.task
    return (not task.run_now, -task.priority, task.position, task.id)


def _assignment(secret: bytes, row: Row, run: Row | None, needs: dict[str, object]) -> Assignment:
    task = read_task(row | {"id": row["entity"]})
    return Assignment(
        task=task,
        attempt=task.attempt,
        token=make_token(secret, task.id, task.attempt),
        expires_at=row["lease_expires_at"],
        workflow=run["workflow"] if run else None,
        workflow_version=run["workflow_version"] if run else None,
        input=json.loads(run["input"]) if run else None,
        needs=needs,
    )
