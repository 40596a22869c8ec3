"""The texts of a workflow file's steps, rendered from what is known of their run by then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.engine.facts import RunFacts
from holdfast.engine.graphs import Scripted
from holdfast.engine.records import read_value
from holdfast.model import json_schema, verdict
from holdfast.model.verdict import in_words, nearest
from holdfast.model.workflow.declarations import Work
from holdfast.model.workflow.step_template import render_title, render_work, try_texts
from holdfast.model.workflow.template import SKIPPED, Scope
from holdfast.store.database import Row, Transaction


@dataclass(frozen=True, kw_only=True)
class Script:
    """A step's texts, and the rows that its variables are read from when they are wanted.

    `run` has the run's id, workflow, key and input; `around` the item it is in, if any.
    """

    scripted: Scripted
    run: RunFacts
    seen: Mapping[str, Row] = field(default_factory=dict)
    around: Row | None = None

    def work(self, feedback: object, attempt: int) -> Work:
        """What a worker is given; raises `Unresolved`."""
        work = render_work(self.scripted.work, self._scope(feedback, attempt))
        if self.scripted.step.verifies is None or work.outputs is not None:
            return work
        return replace(work, outputs=verdict.SHAPE)

    def call(self, feedback: str | None, attempt: int) -> Work:
        """The workflow that it calls, with its input; raises `Unresolved`."""
        said = nearest((feedback, None if self.around is None else self.around["feedback"]))
        return render_work(self.scripted.work, self._scope(read_value(said), attempt))

    def try_out(self) -> str | None:
        """Its title, where it has one; raises `Unresolved` when any of its texts cannot be told."""
        scope = self._scope("", 0)
        try_texts(self.scripted.step, scope)
        return render_title(self.scripted.step, scope)

    def _scope(self, feedback: object, attempt: int) -> Scope:
        steps = {
            name: read_output(self.seen[name], schema)
            for name, schema in self.scripted.wanted.items()
            if name in self.seen
        }
        scope: dict[str, Any] = {
            "input": self.run.value,
            "run": tell_run(self.run.id, self.run.workflow, self.run.key),
            "steps": steps,
            "feedback": in_words("" if feedback is None else feedback),
            "attempt": attempt,
        }
        verified = self.scripted.step.verifies
        if verified in steps:
            scope["subject"] = steps[verified]
        if self.around is not None:
            scope["item"] = read_value(self.around["payload"])
        return scope


def read_output(row: Row, schema: json_schema.Schema | None) -> object:
    """What a step gave, and null for what it might have given; of one that was skipped, nothing."""
    if row["output"] is None and row["skipped"]:
        return SKIPPED
    output = read_value(row["output"])
    return output if schema is None else json_schema.fill(schema, output)


def tell_run(run_id: str, workflow: str, key: str | None) -> dict[str, Any]:
    """What a text can say of its run."""
    return {
        "id": run_id,
        "workflow": workflow,
        "key": key,
        # A run has none before there are workspaces.
        "branch": None,
    }


def is_step(row: Row) -> bool:
    """Whether a task stands for a step, and was not made by one that ran."""
    return row["parent_epoch"] is None or row["item"] is not None


def gather(tx: Transaction, tasks: Iterable[tuple[Row, Scripted, RunFacts]]) -> dict[str, Script]:
    """Scripts for tasks, each with its run, read together; the items around them too."""
    chosen = list(tasks)
    wanted = [(row["id"], name) for row, scripted, _ in chosen for name in scripted.wanted]
    seen: dict[str, dict[str, Row]] = {}
    if wanted:
        # The farthest first, so that the nearest of a name stays.
        for found in tx.read("outputs_seen", rows=wanted):
            seen.setdefault(found["root"], {})[found["wanted"]] = found
    parents = {row["parent_id"] for row, _, _ in chosen if row["parent_id"] is not None}
    around: dict[str, Row] = {}
    if parents:
        for found in tx.read("items_around", ids=sorted(parents)):
            around.setdefault(found["root"], found)
    return {
        row["id"]: Script(
            scripted=scripted,
            run=run,
            seen=seen.get(row["id"], {}),
            around=around.get(row["parent_id"]),
        )
        for row, scripted, run in chosen
    }
