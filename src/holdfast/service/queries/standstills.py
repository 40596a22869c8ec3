"""Standstills: work that goes on only when somebody does something, for the report and the doctor.

Needs of a person that the engine knows of, such as approvals and answers, are no standstills.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from holdfast.clock import MICROSECONDS
from holdfast.engine.explain.explanation import TakenBy, find_taker
from holdfast.engine.explain.why_workers import fits, is_serving
from holdfast.engine.read.worker_loads import read_loads, read_workers
from holdfast.model.advice import Action, Advice
from holdfast.model.units import describe_duration
from holdfast.model.worker import LiveWorker
from holdfast.service.queries.command_lines import (
    ANY_PROGRAM,
    ListAgents,
    WriteCommand,
    describe_command,
)
from holdfast.service.queries.views import View, without_nulls
from holdfast.store.database import Transaction

# More tasks of one kind are not counted one by one.
MOST_COUNTED = 100_000
NAMES_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Standstill:
    """So many tasks, runs or schedules of one `kind` that stand still, and what helps."""

    kind: str
    count: int
    detail: str
    fix: str | None = None

    def view(self, typed: WriteCommand) -> View:
        return without_nulls(
            kind=self.kind,
            count=self.count,
            detail=self.detail,
            fix=None if self.fix is None else typed(self.fix),
        )


def find_standstills(
    tx: Transaction, since: int, commanded: ListAgents = tuple
) -> list[Standstill]:
    """All that stands still, and the steps that were skipped after a failure since a moment."""
    now = int(tx.read("now")[0]["now"])
    return [
        *_find_unserved_work(tx, read_workers(tx), commanded),
        *_find_overruns(tx),
        *_find_version_holds(tx),
        *_find_limits(tx, now),
        *_find_failing_schedules(tx),
        *_find_skipped_steps(tx, since),
    ]


def describe_standstill(standstill: Standstill, typed: WriteCommand) -> str:
    """A standstill in one line, with the command that helps."""
    fix = "" if standstill.fix is None else f": {typed(standstill.fix)}"
    return f"{standstill.detail}{fix}"


def _find_unserved_work(
    tx: Transaction, workers: Sequence[LiveWorker], commanded: ListAgents
) -> Iterator[Standstill]:
    serving = [each for each in workers if is_serving(each)]
    for row in tx.read("ready_work", most=MOST_COUNTED):
        tags = json.loads(row["tags"])
        if any(fits(each, row["agent"], tags, bare=bool(row["bare"])) for each in serving):
            continue
        offer = (("agent", row["agent"]), *(("tag", tag) for tag in tags))
        told = f'"{row["agent"]}"' + (f" with {', '.join(tags)}" if tags else "")
        tasks = _count(row["tasks"], "ready task")
        if row["bare"]:
            waits = "waits" if row["tasks"] == 1 else "wait"
            detail = (
                f"{tasks} for {told} {waits} to be claimed: no live worker has a command for "
                f"{row['agent']!r} in its holdfast.yaml"
            )
            fix = describe_command(Advice(Action.CLAIM, "", offer), commanded=commanded)
        else:
            detail = f"{tasks} for {told} {_be(row['tasks'])} served by no live worker"
            (first,) = tx.read("task_by_id", task_id=row["first"])
            app = ANY_PROGRAM if find_taker(tx, first) is TakenBy.PROGRAM else None
            fix = describe_command(Advice(Action.START_WORKER, "", offer), app=app)
        yield Standstill(kind="unserved", count=row["tasks"], detail=detail, fix=fix)


def _find_overruns(tx: Transaction) -> Iterator[Standstill]:
    overrun = [each for each in read_workers(tx) if each.overruns]
    for each in read_loads(tx, overrun, NAMES_SHOWN):
        slots, whole = len(each.overruns), _count(each.worker.concurrency, "slot")
        one = "a function that goes on after its attempt was over"
        functions = one if slots == 1 else "functions that go on after their attempts were over"
        taken = f"{slots} of {whole} of worker {each.worker.name} {_be(slots)} taken by {functions}"
        detail = f"{taken}: {_name_some(over.name for over in each.overruns)}"
        fix = describe_command(Advice(Action.LIST_WORKERS))
        yield Standstill(kind="overruns", count=slots, detail=detail, fix=fix)


def _find_version_holds(tx: Transaction) -> Iterator[Standstill]:
    rows = tx.read("functions_wanted", after="", count=MOST_COUNTED)
    held = [row for row in rows if row["open"]]
    for row in held[:NAMES_SHOWN]:
        of = f" of {row['workflow']}@{row['version'][:8]}" if row["workflow"] else ""
        detail = (
            f"{_count(row['tasks'], 'task')} on hold version: no worker so far could call the "
            f"function {row['step']!r}{of}"
        )
        yield Standstill(
            kind="version", count=row["tasks"], detail=detail, fix=f"holdfast why {row['last']}"
        )
    if rest := held[NAMES_SHOWN:]:
        tasks = sum(row["tasks"] for row in rest)
        detail = (
            f"{_count(tasks, 'task')} on hold version for {_count(len(rest), 'other function')}"
        )
        yield Standstill(kind="version", count=tasks, detail=detail)


def _find_limits(tx: Transaction, now: int) -> Iterator[Standstill]:
    until = {row["agent"]: int(row["until"]) for row in tx.read("limits_now")}
    waiting: dict[str, int] = {}
    for row in tx.read("limited_work", most=MOST_COUNTED):
        waiting[row["agent"]] = waiting.get(row["agent"], 0) + row["tasks"]
        if row["until"] is not None:
            until.setdefault(row["agent"], int(row["until"]))
    for agent in sorted({*until, *waiting}):
        tasks = waiting.get(agent, 0)
        left = max(0, until[agent] - now) if agent in until else None
        lifts = "" if left is None else f"; it lifts in {_describe_span(left)}"
        detail = f"agent {agent!r} is at its usage limit, {_count(tasks, 'task')} on hold{lifts}"
        fix = describe_command(Advice(Action.LIFT_LIMIT, agent))
        yield Standstill(kind="limit", count=tasks, detail=detail, fix=fix)


def _find_failing_schedules(tx: Transaction) -> Iterator[Standstill]:
    for row in tx.read("failing_schedules"):
        detail = f"schedule {row['name']} could not start its last tick: {row['last_error']}"
        yield Standstill(kind="schedule", count=1, detail=detail, fix="holdfast schedule list")


def _find_skipped_steps(tx: Transaction, since: int) -> Iterator[Standstill]:
    rows = tx.read("steps_skipped_after_failure", since=since, most=MOST_COUNTED)
    for workflow, found in groupby(rows, key=lambda row: str(row["workflow"])):
        skipped = list(found)
        runs = sorted({row["run_id"] for row in skipped})
        steps = _name_some(dict.fromkeys(row["step"] for row in skipped))
        many = f"{_count(len(skipped), 'step')} of {workflow} {_be(len(skipped), 'was', 'were')}"
        detail = f"{many} skipped after failure ({steps}) in {_count(len(runs), 'run')}"
        yield Standstill(
            kind="skipped", count=len(skipped), detail=detail, fix=f"holdfast show {runs[-1]}"
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _be(number: int, one: str = "is", many: str = "are") -> str:
    return one if number == 1 else many


def _name_some(names: Iterable[str]) -> str:
    told = list(names)
    more = len(told) - NAMES_SHOWN
    return ", ".join(told[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _describe_span(span: int) -> str:
    return describe_duration(round(span / MICROSECONDS) * MICROSECONDS)
