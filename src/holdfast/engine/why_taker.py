"""Who takes a task: a worker of a program, any worker, or whoever claims it."""

from __future__ import annotations

import json
from enum import StrEnum

from holdfast.engine.scripts import is_step
from holdfast.model.task import Task
from holdfast.model.workflow.graph import read_workflow
from holdfast.model.workflow.step import every
from holdfast.store.database import Row, Transaction


class TakenBy(StrEnum):
    """`PROGRAM`: a worker that has its function; `WORKER`: any; `CLAIMANT`: none of Holdfast's."""

    PROGRAM = "program"
    WORKER = "worker"
    CLAIMANT = "claimant"


def who_takes(tx: Transaction, row: Row) -> TakenBy:
    if row["step"] is None:
        return TakenBy.CLAIMANT
    runs = tx.read("run_by_id", run_id=row["run_id"]) if row["run_id"] and is_step(row) else []
    if not runs:
        return TakenBy.PROGRAM
    named = {"name": runs[0]["workflow"], "version": runs[0]["workflow_version"]}
    (found,) = tx.read("workflow_definition", **named)
    workflow = read_workflow(found["definition"])
    works = [step.work for step in every(workflow.steps) if step.id == row["step"]]
    if any(work and (work.command or work.http) for work in works):
        return TakenBy.WORKER
    return TakenBy.PROGRAM if workflow.declared is None else TakenBy.CLAIMANT


def tell_left(task: Task, taken_by: TakenBy) -> str | None:
    """Why no worker runs it, though one may serve its agent."""
    if taken_by is not TakenBy.CLAIMANT:
        return None
    lacks = "it names no function" if task.step is None else "its workflow file gives it no program"
    return f"{lacks}: no worker runs it, and whoever claims it does"


def tell_taker(task: Task, taken_by: TakenBy) -> str:
    """The call that takes it."""
    offer = f"agents={json.dumps([task.agent])}"
    offer += f", tags={json.dumps(task.tags)}" if task.tags else ""
    if taken_by is TakenBy.CLAIMANT:
        return f"hf.work.claim(…, {offer})"
    return f"hf.worker({offer}).run()"
