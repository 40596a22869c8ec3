"""The definition of a workflow: steps and what each needs, checked whole before it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from holdfast.errors import InvalidDefinition
from holdfast.model.retry import positive_microseconds
from holdfast.model.text import clean_name, digest
from holdfast.model.workflow import graph_text
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph_checks import MAX_PRIORITY, MAX_STEPS, find_flaws
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, OnFailure, Step, all_steps
from holdfast.model.workflow.step_template import find_references, needs_later_values

__all__ = ["MAX_PRIORITY", "MAX_STEPS", "Concurrency", "OnFailure", "Step", "Workflow"]

# How deep workflows may call each other.
MAX_CALL_DEPTH = 8
Definition = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """One immutable version of a named graph; `version` is the hash of its content."""

    name: str
    steps: tuple[Step, ...]
    concurrency: Concurrency | None = None
    declared: WorkflowDeclarations | None = None
    # What its steps call, as far as that was known when it was made.
    called: tuple[Workflow, ...] = field(default=(), compare=False, repr=False)
    # Seconds that a run has from its start on, unless its start says otherwise.
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
        """Itself and what its steps call, near or far, as far as that is known."""
        return (self, *(each for flow in self.called for each in flow.with_called_workflows))

    @cached_property
    def definitions(self) -> frozenset[Definition]:
        """Name, version and text of what its steps call, near or far."""
        return frozenset(
            (flow.name, flow.version, flow.definition) for flow in self.with_called_workflows[1:]
        )

    @cached_property
    def called_by_name(self) -> frozenset[str]:
        """The workflows that its steps call, near or far, in whichever version is the newest."""
        own = {
            step.work.workflow
            for step in all_steps(self.steps)
            if step.work is not None and step.work.workflow is not None
            if step.work.version is None and step.work.workflow != self.name
        }
        return frozenset(own.union(*(flow.called_by_name for flow in self.called)))

    @cached_property
    def named_inputs(self) -> tuple[tuple[str, Reference], ...]:
        """What the texts of its steps take from the input, with the step that does."""
        return tuple(
            (step.id, reference)
            for step in all_steps(self.steps)
            for reference in find_references(step)
            if reference.root == "input"
        )

    @cached_property
    def steps_known_at_start(self) -> tuple[Step, ...]:
        """The steps whose texts are made of what is known when a run starts."""
        return tuple(
            step
            for step in all_steps(self.steps)
            if step.work is not None and find_references(step) and not needs_later_values(step)
        )

    @cached_property
    def definition(self) -> str:
        return graph_text.write_graph_text(self)


def read_workflow(definition: str) -> Workflow:
    """The workflow that a definition describes."""
    return Workflow(**graph_text.read_graph_text(definition))
