"""Texts of steps in workflow files, rendered from what is known of their run.

References are resolved as one task of a run sees them: in its item, around the task, in its run.
Titles are rendered also for readers who look before an approval has all that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.engine.core.run_cache import RunCache, RunFacts
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.core.workflow_cache import FileStep, WorkflowCache
from holdfast.engine.read.records import read_value
from holdfast.model import json_schema, verdict
from holdfast.model.verdict import describe_feedback, first_feedback
from holdfast.model.workflow.branch import name_branch
from holdfast.model.workflow.declarations import StepWork, Workspace
from holdfast.model.workflow.prompt_feedback import add_to_work
from holdfast.model.workflow.reference import Reference, Unresolved
from holdfast.model.workflow.step import Step
from holdfast.model.workflow.step_template import (
    names_feedback,
    render_title,
    render_work,
    try_rendering,
)
from holdfast.model.workflow.template import SKIPPED, Variables
from holdfast.store.database import Row, Transaction


@dataclass(frozen=True, kw_only=True)
class StepTexts:
    """The texts of a step, and the rows that their variables are read from when wanted.

    `run` has the id, workflow, key and input of the run; `around` is the row of the item that the
    task is in, if any, and `head` the newest commit of the line that a verifier stands in.
    """

    scripted: FileStep
    run: RunFacts
    seen: Mapping[str, Row] = field(default_factory=dict)
    around: Row | None = None
    head: str | None = None

    def work(self, feedback: object, attempt: int) -> StepWork:
        """Render the work that a worker is given; raises `Unresolved`."""
        scripted = self.scripted
        placed = scripted.work
        if placed.in_workspace:
            placed = replace(placed, workspace=scripted.workspace, line=scripted.line)
        work = render_work(placed, self._variables(feedback, attempt))
        if self._is_sent_back(feedback):
            work = add_to_work(work, feedback)
        if self.scripted.step.verifies is None or work.outputs is not None:
            return work
        return replace(work, outputs=verdict.VERDICT_SCHEMA)

    def _is_sent_back(self, feedback: object) -> bool:
        """Whether the prompt has to end with the feedback, because no text of the step names it.

        A verifier that has rejected judges anew: the feedback is its own.
        """
        judges = self.scripted.step.verifies is not None
        return feedback is not None and not judges and not names_feedback(self.scripted.work)

    def call(self, feedback: str | None, attempt: int) -> StepWork:
        """Render the call of a workflow, with its input; raises `Unresolved`."""
        said = first_feedback((feedback, None if self.around is None else self.around["feedback"]))
        return render_work(self.scripted.work, self._variables(read_value(said), attempt))

    def render_title(self) -> str | None:
        """Render the title, if any; raises `Unresolved` when any text of the step cannot be."""
        variables = self._variables("", 0)
        try_rendering(self.scripted.step, variables)
        return render_title(self.scripted.step, variables)

    def _variables(self, feedback: object, attempt: int) -> Variables:
        steps = {
            name: read_output(self.seen[name], schema)
            for name, schema in self.scripted.wanted.items()
            if name in self.seen
        }
        variables: dict[str, Any] = {
            **build_known_variables(self.run, self.scripted.workspace),
            "steps": steps,
            "feedback": describe_feedback("" if feedback is None else feedback),
            "attempt": attempt,
        }
        verified = self.scripted.step.verifies
        if verified in steps:
            variables["subject"] = steps[verified]
            variables |= self._subject_in_git(steps[verified], variables["run"]["branch"])
        if self.around is not None:
            variables["item"] = read_value(self.around["payload"])
        return variables

    def _subject_in_git(self, subject: object, branch: str | None) -> dict[str, Any]:
        """The commit and branch of what is verified; a loop has the newest commit of the line."""
        if self.scripted.workspace is None:
            return {}
        commit = subject.get("commit", self.head) if isinstance(subject, dict) else self.head
        return {"subject.commit": commit, "subject.branch": branch}


def read_output(row: Row, schema: json_schema.Schema | None) -> object:
    """Read the output of a step, with defaults for what it left out; `SKIPPED` if skipped."""
    if row["output"] is None and row["skipped"]:
        return SKIPPED
    output = read_value(row["output"])
    return output if schema is None else json_schema.fill_defaults(schema, output)


def build_run_variables(
    run_id: str, workflow: str, key: str | None, given: object, workspace: Workspace | None
) -> dict[str, Any]:
    """Build the variables that are known of a run from its start: its input, and the run itself."""
    named = {"id": run_id, "workflow": workflow, "key": key, "branch": None}
    variables: dict[str, Any] = {"input": given, "run": named}
    if workspace is not None:
        named["branch"] = name_branch(workspace, variables)
    return variables


def build_known_variables(run: RunFacts, workspace: Workspace | None) -> dict[str, Any]:
    return build_run_variables(run.id, run.workflow, run.key, run.value, workspace)


def is_step(row: Row) -> bool:
    """Whether a task stands for a step, and was not made by a step that ran."""
    return row["parent_epoch"] is None or row["item"] is not None


def read_step_texts(
    tx: Transaction, tasks: Iterable[tuple[Row, FileStep, RunFacts]]
) -> dict[str, StepTexts]:
    """Read the texts of tasks, each with its run, and the items around them, all together."""
    chosen = list(tasks)
    wanted = [(row["id"], name) for row, scripted, _ in chosen for name in scripted.wanted]
    seen: dict[str, dict[str, Row]] = {}
    if wanted:
        # The farthest rows come first, so that the nearest of a name stays.
        for found in tx.read("outputs_seen", rows=wanted):
            seen.setdefault(found["root"], {})[found["wanted"]] = found
    parents = {row["parent_id"] for row, _, _ in chosen if row["parent_id"] is not None}
    around: dict[str, Row] = {}
    if parents:
        for found in tx.read("items_around", ids=sorted(parents)):
            around.setdefault(found["root"], found)
    judging = [row["id"] for row, scripted, _ in chosen if _names_subject_in_git(scripted)]
    heads = (
        {row["root"]: row["head"] for row in tx.read("heads_around", ids=judging)}
        if judging
        else {}
    )
    return {
        row["id"]: StepTexts(
            scripted=scripted,
            run=run,
            seen=seen.get(row["id"], {}),
            around=around.get(row["parent_id"]),
            head=heads.get(row["id"]),
        )
        for row, scripted, run in chosen
    }


def _names_subject_in_git(scripted: FileStep) -> bool:
    return scripted.workspace is not None and scripted.step.verifies in scripted.wanted


def resolve_reference(work: UnitOfWork, row: Row, reference: Reference) -> object:
    """Resolve a reference to its value; raises `Unresolved` where there is none."""
    root = reference.parts[0]
    if root == "input":
        return reference.resolve({"input": read_run_facts(work, row).value})
    if root == "item":
        around = work.tx.read("ancestors", task_id=row["id"])
        items = [above for above in around if above["item"] is not None]
        if not items:
            raise Unresolved(f"{reference} stands in no loop")
        return reference.resolve({"item": json.loads(items[0]["payload"])})
    name = str(reference.step)
    found = find_task_of_step(work, row, name)
    if found is None or found["status"] != "done":
        raise Unresolved(f"step {name!r} is not done")
    run = read_run_facts(work, row)
    declared = work.workflow_cache.step(work.tx, run.workflow, run.version, name).work
    output = read_output(found, None if declared is None else declared.outputs)
    return SKIPPED if output is SKIPPED else reference.resolve({"steps": {name: output}})


def find_task_of_step(work: UnitOfWork, row: Row, name: str) -> Row | None:
    """Find the task of a step that stands beside a task, or beside a group around the task."""
    for above in work.tx.read("ancestors", task_id=row["id"]):
        if found := work.tx.read("step_beside", parent_id=above["id"], step=name):
            return found[0]
    found = work.tx.read("step_in_run", run_id=row["run_id"], step=name)
    return found[0] if found else None


def read_step(work: UnitOfWork, row: Row) -> Step:
    run = read_run_facts(work, row)
    return work.workflow_cache.step(work.tx, run.workflow, run.version, row["step"])


def read_run_facts(work: UnitOfWork, row: Row) -> RunFacts:
    return work.run_cache.read_facts(work.tx, (row["run_id"],))[row["run_id"]]


def render_current_titles(tx: Transaction, rows: Sequence[Row]) -> dict[str, str]:
    """Render titles with the values named in them once all are known, until then as written.

    The writer does the same when an approval has all it needs, which may be much later; the title
    that it wrote is stale once the steps that it was made from begin again.
    """
    waiting = [row for row in rows if row["blocked"] and row["conditional"]]
    runs = RunCache().read_facts(tx, [row["run_id"] for row in waiting]) if waiting else {}
    graphs = WorkflowCache()
    known = {each: graphs.scripted(tx, run.workflow, run.version) for each, run in runs.items()}
    scripts = read_step_texts(
        tx,
        [
            (row, known[row["run_id"]][row["step"]], runs[row["run_id"]])
            for row in waiting
            if row["step"] in known[row["run_id"]]
        ],
    )
    titles = {row["id"]: str(row["title"]) for row in rows}
    return titles | {
        each: _render_current_title(script) or titles[each] for each, script in scripts.items()
    }


def _render_current_title(script: StepTexts) -> str | None:
    try:
        return script.render_title()
    except Unresolved:
        step = script.scripted.step
        return step.title or step.approval
