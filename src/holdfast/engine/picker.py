"""The one place where it is decided which task a worker gets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.engine import slots
from holdfast.engine.group import Group
from holdfast.engine.operations import Claim, ClaimById
from holdfast.engine.records import read_task, read_value
from holdfast.engine.scripts import Script, gather, is_step
from holdfast.model.fill import fill
from holdfast.model.reference import Unresolved
from holdfast.model.task import Assignment
from holdfast.model.token import make_token
from holdfast.store.database import Row

DUE_AT_ONCE = 1_000

log = logging.getLogger("holdfast.engine")


def claim(group: Group, claims: Sequence[Claim]) -> list[list[Assignment]]:
    mark_due(group)
    return [serve(group, each).read() for each in claims]


def serve(group: Group, request: Claim) -> Claimed:
    """Claim what is ready by now."""
    return _gather(group, _claim(group, request))


def claim_by_id(group: Group, claims: Sequence[ClaimById]) -> list[list[Assignment]]:
    mark_due(group)
    named = group.tx.read("keys_of_tasks", ids=[each.task_id for each in claims])
    slots.hold(group, {row["concurrency_key"] for row in named})
    return [_gather(group, _claim_by_id(group, each)).read() for each in claims]


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
        if len(taken) < len(first) and len(request.agents) > 1:
            # Of one agent another process has the first in line; others' may be free.
            taken += _claim_from_any(group, request, request.count - len(claimed) - len(taken))
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


def _claim_from_any(group: Group, request: Claim, count: int) -> list[Row]:
    taken: list[Row] = []
    for agent in request.agents:
        if len(taken) < count:
            taken += _claim_from(group, request, agent, count - len(taken))
    return taken


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


def _gather(group: Group, rows: list[Row]) -> Claimed:
    """Claimed tasks with all that they need to run."""
    given: dict[str, list[Row]] = {}
    if rows:
        for row in group.tx.read("needed_outputs", ids=[row["entity"] for row in rows]):
            given.setdefault(row["task_id"], []).append(row)
    runs = {row["run_id"] for row in rows if row["run_id"] is not None}
    found = group.tx.read("run_inputs", ids=sorted(runs)) if runs else []
    around = {row["parent_id"] for row in rows if row["item"] is not None}
    groups: dict[str, list[Row]] = {}
    if around:
        for row in group.tx.read("items_around", ids=sorted(around)):
            groups.setdefault(row["root"], []).append(row)
    return Claimed(
        secret=group.secret,
        rows=rows,
        given=given,
        runs={row["id"]: row for row in found},
        around=groups,
        scripts=_scripts(group, rows, found),
    )


def _scripts(group: Group, rows: list[Row], runs: list[Row]) -> dict[str, Script]:
    """The texts of those that are steps of workflow files."""
    written = {
        run["id"]: (run, known)
        for run in runs
        if (known := group.graphs.scripted(group.tx, run["workflow"], run["workflow_version"]))
    }
    if not written:
        return {}
    chosen = []
    for row in rows:
        run, known = written.get(row["run_id"], (None, {}))
        if run is not None and row["step"] in known and is_step(row):
            chosen.append((row | {"id": row["entity"]}, known[row["step"]], run))
    return gather(group, chosen)


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """What a claim took, still as rows: whoever took it reads them, and not the writer."""

    secret: bytes = field(repr=False)
    rows: list[Row]
    given: dict[str, list[Row]]
    runs: dict[str, Row]
    # The groups around a step of an item, the nearest first.
    around: dict[str, list[Row]]
    scripts: dict[str, Script] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def read(self) -> list[Assignment]:
        """The assignments, in the order of the queue.

        One whose texts could be told before it was claimed, and now cannot, is given to nobody:
        its lease runs out.
        """
        assignments = [self._assignment(row) for row in self.rows]
        if self.scripts:
            assignments = [done for each in assignments if (done := self._with_work(each))]
        return sorted(assignments, key=_place)

    def _with_work(self, assignment: Assignment) -> Assignment | None:
        script = self.scripts.get(assignment.task.id)
        if script is None:
            return assignment
        try:
            work = script.work(assignment.feedback, assignment.attempt)
        except Unresolved:
            log.exception("the texts of %s cannot be told", assignment.task.id)
            return None
        return replace(assignment, work=work)

    def _assignment(self, row: Row) -> Assignment:
        task = read_task(row, row["entity"])
        run = self.runs.get(row["run_id"])
        groups = self.around.get(row["parent_id"], [])
        said = next((each["feedback"] for each in groups if each["feedback"] is not None), None)
        return fill(
            Assignment,
            {
                "task": task,
                "attempt": task.attempt,
                "token": make_token(self.secret, task.id, task.attempt),
                "expires_at": row["lease_expires_at"],
                "workflow": None if run is None else run["workflow"],
                "workflow_version": None if run is None else run["workflow_version"],
                "input": None if run is None else read_value(run["input"]),
                "needs": {
                    each["step"] or each["id"]: read_value(each["output"])
                    for each in self.given.get(task.id, ())
                },
                "item": read_value(groups[0]["payload"]) if groups else None,
                "around": read_value(said),
            },
        )


def _place(assignment: Assignment) -> tuple[bool, int, int, str]:
    task = assignment.task
    return (not task.run_now, -task.priority, task.position, task.id)
