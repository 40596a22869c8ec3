"""Workflow graphs: one immutable version of a named workflow, checked whole before its use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from holdfast.errors import InvalidDefinition
from holdfast.model.retry import positive_microseconds
from holdfast.model.text import clean_name, digest
from holdfast.model.workflow import graph_text
from holdfast.model.workflow.declarations import WorkflowDeclarations, Workspace
from holdfast.model.workflow.graph_checks import MAX_PRIORITY, MAX_STEPS, find_flaws
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, Escalation, OnFailure, Step, all_steps
from holdfast.model.workflow.step_template import find_references, needs_later_values

__all__ = [
    "MAX_PRIORITY",
    "MAX_STEPS",
    "Concurrency",
    "Escalation",
    "OnFailure",
    "Step",
    "Workflow",
]

# The greatest depth of workflows that call each other.
MAX_CALL_DEPTH = 8
Definition = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """One immutable version of a named graph; `version` is the hash of its content."""

    name: str
    steps: tuple[Step, ...]
    concurrency: Concurrency | None = None
    declared: WorkflowDeclarations | None = None
    # The workflows that its steps call, as far as they were known when this one was made.
    called: tuple[Workflow, ...] = field(default=(), compare=False, repr=False)
    # Seconds from the start of a run to its deadline, unless the start sets another one.
    deadline: float | None = None

    @classmethod
    def define(  # noqa: PLR0913 - the parts of a workflow
        cls,
        name: str,
        steps: tuple[Step, ...],
        *,
        concurrency: Concurrency | None = None,
        declared: WorkflowDeclarations | None = None,
        called: tuple[Workflow, ...] = (),
        deadline: float | None = None,
    ) -> Self:
        return cls(
            name=name,
            steps=steps,
            concurrency=concurrency,
            declared=declared,
            called=called,
            deadline=deadline,
        )

    def __post_init__(self) -> None:
        """Check the whole graph and raise one error that names every mistake."""
        clean_name("workflow", self.name)
        if self.deadline is not None:
            positive_microseconds("deadline", self.deadline)
        if flaws := find_flaws(self.steps, self.concurrency, self.declared):
            raise InvalidDefinition(f"workflow {self.name}", [each.text for each in flaws])

    @cached_property
    def version(self) -> str:
        return digest(self.definition)

    @property
    def with_called_workflows(self) -> tuple[Workflow, ...]:
        """The workflow and the known workflows that it calls, directly or through others."""
        return (self, *(each for flow in self.called for each in flow.with_called_workflows))

    @property
    def workspace(self) -> Workspace | None:
        """The worktrees of its steps, where it has any."""
        return None if self.declared is None else self.declared.workspace

    @cached_property
    def definitions(self) -> frozenset[Definition]:
        """Name, version and text of each workflow that it calls, directly or through others."""
        return frozenset(
            (flow.name, flow.version, flow.definition) for flow in self.with_called_workflows[1:]
        )

    @cached_property
    def called_by_name(self) -> frozenset[str]:
        """Names of the workflows that it calls by name alone, directly or through others."""
        own = {
            step.work.workflow
            for step in all_steps(self.steps)
            if step.work is not None and step.work.workflow is not None
            if step.work.version is None and step.work.workflow != self.name
        }
        return frozenset(own.union(*(flow.called_by_name for flow in self.called)))

    @cached_property
    def named_inputs(self) -> tuple[tuple[str, Reference], ...]:
        """The references of its steps' texts to the input, each with the id of its step."""
        return tuple(
            (step.id, reference)
            for step in all_steps(self.steps)
            for reference in find_references(step)
            if reference.root == "input"
        )

    @cached_property
    def steps_known_at_start(self) -> tuple[Step, ...]:
        """The steps whose texts can be rendered when a run starts."""
        return tuple(
            step
            for step in all_steps(self.steps)
            if find_references(step) and not needs_later_values(step)
        )

    @cached_property
    def definition(self) -> str:
        return graph_text.write_graph_text(self)


def read_workflow(definition: str) -> Workflow:
    """The workflow that the text of a definition describes."""
    return Workflow(**graph_text.read_graph_text(definition))
