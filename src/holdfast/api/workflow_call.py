"""Workflow calls: steps that call another workflow, with the input of its run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.api.start import StartableWorkflow
from holdfast.errors import InvalidInput
from holdfast.model.text import clean_name
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.template import parse_template


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowCall:
    """The called workflow, or its name in the store, and the input that is given to its run."""

    callee: StartableWorkflow | str
    given: Any

    @property
    def graph(self) -> Workflow | None:
        return None if isinstance(self.callee, str) else self.callee.read_graph()

    @property
    def work(self) -> StepWork:
        graph = self.graph
        if graph is None:
            return StepWork(workflow=str(self.callee), input=self.given)
        return StepWork(workflow=graph.name, version=graph.version, input=self.given)

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references of the input to values of the calling run."""
        found = [parse_template("input", text).references for text in _texts(self.given)]
        return tuple(reference for each in found for reference in each)

    def mistakes(self, step: str) -> Iterator[str]:
        if not isinstance(self.callee, str):
            yield from self.callee.find_wrong_inputs(step, self.given)


def check_callee(callee: object) -> StartableWorkflow | str:
    """The workflow, or the name of one; refuses any other value."""
    if isinstance(callee, str):
        return clean_name("workflow", callee)
    if isinstance(callee, StartableWorkflow):
        return callee
    reason = f"{callee!r} is no workflow; give one of hf.workflow(…), hf.workflow_file(…) or a name"
    raise InvalidInput("workflow", reason)


def find_misnamed_inputs(
    step: str, given: object, known: Collection[str], needed: Collection[str]
) -> list[str]:
    """Mistakes of inputs by name: those that are not known, and those needed but not given."""
    if not isinstance(given, dict | None):
        return []
    names = {} if given is None else given
    return [
        *(f"{step}: input: {each!r} is not taken" for each in names if each not in known),
        *(f"{step}: input: {each!r} is not given" for each in needed if each not in names),
    ]


def _texts(given: object) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict | list):
        for inner in given.values() if isinstance(given, dict) else given:
            yield from _texts(inner)
