"""Workflow cache: the graphs of workflow versions, which never change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.model.json_schema import Schema
from holdfast.model.workflow.declarations import StepWork, Workspace
from holdfast.model.workflow.graph import Workflow, read_workflow
from holdfast.model.workflow.graph_text import read_graph_text
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step import Step, all_steps, find_lines
from holdfast.model.workflow.step_template import steps_in_texts
from holdfast.store.database import Transaction

KEPT_VERSIONS = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FileStep:
    """A step of a workflow file, and the steps that its texts name, with their declared outputs.

    The task of a step that is handed to another agent has the work of `handed_over`. `workspace` is
    that of its workflow, and `line` the loop whose items have lines of commits of their own.
    """

    step: Step
    work: StepWork
    wanted: dict[str, Schema | None]
    workspace: Workspace | None = None
    line: str | None = None

    def as_done_by(self, agent: str | None) -> FileStep:
        """The step as an agent does it."""
        other = self.step.handed_over
        if other is None or other.agent != agent or other.work is None:
            return self
        return replace(self, work=other.work)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Graph:
    steps: dict[str, Step]
    scripted: dict[str, FileStep]
    workspace: Workspace | None
    # The agents of each account, for the agents that use a preset.
    accounts: dict[str, frozenset[str]]


class WorkflowCache:
    """The workflow versions that the writer has read; all are forgotten when there are too many."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], _Graph] = {}
        self._workflows: dict[tuple[str, str], Workflow] = {}

    def step(self, tx: Transaction, workflow: str, version: str, name: str) -> Step:
        """One step of a version, also from inside a group or loop."""
        return self._graph(tx, workflow, version).steps[name]

    def scripted(self, tx: Transaction, workflow: str, version: str) -> dict[str, FileStep]:
        """The steps of a version whose work is declared in its file; for Python workflows, none."""
        return self._graph(tx, workflow, version).scripted

    def workspace(self, tx: Transaction, workflow: str, version: str) -> Workspace | None:
        """The workspace that a version declares, if any."""
        return self._graph(tx, workflow, version).workspace

    def agents_on_account(
        self, tx: Transaction, version: tuple[str, str], agent: str
    ) -> frozenset[str]:
        """The agents of a version that are on the account of one of them, itself included."""
        groups = self._graph(tx, *version).accounts.values()
        return next((each for each in groups if agent in each), frozenset({agent}))

    def workflow(self, tx: Transaction, name: str, version: str) -> Workflow:
        """A whole version, to start a run of; raises `Unresolved` if the store does not have it."""
        found = self._workflows.get((name, version))
        if found is None:
            rows = tx.read("workflow_definition", name=name, version=version)
            if not rows:
                raise Unresolved(f"this store knows no version {version} of the workflow {name!r}")
            found = read_workflow(rows[0]["definition"])
            if len(self._workflows) >= KEPT_VERSIONS:
                self._workflows.clear()
            self._workflows[name, version] = found
        return found

    def _graph(self, tx: Transaction, workflow: str, version: str) -> _Graph:
        found = self._graphs.get((workflow, version))
        if found is None:
            rows = tx.read("workflow_definition", name=workflow, version=version)
            found = _read_graph(rows[0]["definition"])
            if len(self._graphs) >= KEPT_VERSIONS:
                self._graphs.clear()
            self._graphs[workflow, version] = found
        return found


def _read_graph(definition: str) -> _Graph:
    described = read_graph_text(definition)
    declared, found = described["declared"], described["steps"]
    workspace = None if declared is None else declared.workspace
    steps = {step.id: step for step in all_steps(found)}
    lines = {} if workspace is None else find_lines(found)
    return _Graph(
        steps=steps,
        scripted={
            name: FileStep(
                step=step,
                work=step.work,
                wanted={each: _outputs(steps[each]) for each in sorted(steps_in_texts(step))},
                workspace=workspace,
                line=lines.get(name),
            )
            for name, step in steps.items()
            if step.work is not None
        },
        workspace=workspace,
        accounts=_read_accounts(steps.values()),
    )


def _read_accounts(steps: Iterable[Step]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for step in steps:
        for doer in (step, step.handed_over):
            if doer is not None and doer.work is not None and doer.work.use is not None:
                account = doer.work.use.account or doer.work.use.preset
                found[account] = found.get(account, frozenset()) | {doer.agent}
    return found


def _outputs(step: Step) -> Schema | None:
    return None if step.work is None else step.work.outputs
