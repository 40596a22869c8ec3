"""The definition of a workflow: steps and what each needs, checked whole before it is used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from holdfast.errors import InvalidDefinition
from holdfast.model import graph_text
from holdfast.model.declared import Declared
from holdfast.model.graph_checks import MAX_PRIORITY, MAX_STEPS, find_flaws
from holdfast.model.reference import Reference
from holdfast.model.rendering import is_uncertain, references
from holdfast.model.retry import positive_microseconds
from holdfast.model.step import Concurrency, OnFailure, Step, every
from holdfast.model.text import clean_name, digest

__all__ = ["MAX_PRIORITY", "MAX_STEPS", "Concurrency", "OnFailure", "Step", "Workflow"]


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """One immutable version of a named graph; `version` is the hash of its content."""

    name: str
    steps: tuple[Step, ...]
    concurrency: Concurrency | None = None
    declared: Declared | None = None
    # Seconds that a run has from its start on, unless its start says otherwise.
    deadline: float | None = None

    @classmethod
    def define(
        cls,
        name: str,
        steps: tuple[Step, ...],
        *,
        concurrency: Concurrency | None = None,
        declared: Declared | None = None,
        deadline: float | None = None,
    ) -> Self:
        return cls(
            name=name,
            steps=steps,
            concurrency=concurrency,
            declared=declared,
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

    @cached_property
    def named_inputs(self) -> tuple[tuple[str, Reference], ...]:
        """What the texts of its steps take from the input, with the step that does."""
        return tuple(
            (step.id, reference)
            for step in every(self.steps)
            for reference in references(step)
            if reference.root == "input"
        )

    @cached_property
    def settled(self) -> tuple[Step, ...]:
        """The steps whose texts are made of what is known when a run starts."""
        return tuple(
            step
            for step in every(self.steps)
            if step.work is not None and references(step) and not is_uncertain(step)
        )

    @cached_property
    def definition(self) -> str:
        return graph_text.write(self)


def read_workflow(definition: str) -> Workflow:
    """The workflow that a definition describes."""
    return Workflow(**graph_text.read(definition))
