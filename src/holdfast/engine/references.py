"""What references stand for, as one task of a run sees them: in its item, around it, in its run."""

from __future__ import annotations

import json

from holdfast.engine.facts import RunFacts
from holdfast.engine.group import Group
from holdfast.engine.scripts import read_output
from holdfast.model.workflow.reference import Reference, Unresolved
from holdfast.model.workflow.step import Step
from holdfast.model.workflow.template import SKIPPED
from holdfast.store.database import Row


def resolve(group: Group, row: Row, reference: Reference) -> object:
    """The value of a reference; raises `Unresolved` where there is none."""
    root = reference.parts[0]
    if root == "input":
        return reference.resolve({"input": facts_of(group, row).value})
    if root == "item":
        around = group.tx.read("ancestors", task_id=row["id"])
        items = [above for above in around if above["item"] is not None]
        if not items:
            raise Unresolved(f"{reference} stands in no loop")
        return reference.resolve({"item": json.loads(items[0]["payload"])})
    name = str(reference.step)
    found = find_step(group, row, name)
    if found is None or found["status"] != "done":
        raise Unresolved(f"step {name!r} is not done")
    run = facts_of(group, row)
    work = group.graphs.step(group.tx, run.workflow, run.version, name).work
    output = read_output(found, None if work is None else work.outputs)
    return SKIPPED if output is SKIPPED else reference.resolve({"steps": {name: output}})


def find_step(group: Group, row: Row, name: str) -> Row | None:
    """The task of a step that stands beside a task, or beside a group around it."""
    for above in group.tx.read("ancestors", task_id=row["id"]):
        if found := group.tx.read("step_beside", parent_id=above["id"], step=name):
            return found[0]
    found = group.tx.read("step_in_run", run_id=row["run_id"], step=name)
    return found[0] if found else None


def step_of(group: Group, row: Row) -> Step:
    run = facts_of(group, row)
    return group.graphs.step(group.tx, run.workflow, run.version, row["step"])


def facts_of(group: Group, row: Row) -> RunFacts:
    return group.facts.of(group.tx, (row["run_id"],))[row["run_id"]]
