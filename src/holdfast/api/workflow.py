"""Workflows, written in Python or read from a file, that can be started and scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.api.program_engine import ProgramEngine
from holdfast.api.run_inputs import RunInputs
from holdfast.api.start import StartableWorkflow
from holdfast.api.workflow_body import WorkflowBody
from holdfast.api.workflow_call import WorkflowCall
from holdfast.errors import InvalidDefinition
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.workflow.call_checks import find_bad_calls
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.model.workflow.run_input import make_paths_absolute


class WorkflowBuilder(WorkflowBody, StartableWorkflow):
    """Made by `hf.workflow(name)`; its graph is checked when it is first used."""

    def __init__(
        self,
        engine: ProgramEngine,
        name: str,
        *,
        concurrency: Concurrency | None,
        deadline: float | None,
        retry: RetryPolicy,
    ) -> None:
        super().__init__(name, retry)
        self._engine = engine
        self._concurrency = concurrency
        self._deadline = deadline
        self._graph: Workflow | None = None
        self._run_inputs: RunInputs | None = None
        self._calls: list[WorkflowCall] = []
        self._reading_called = False

    def request(self, /, **given: Any) -> NewRun:
        """The run of one start with these inputs."""
        return NewRun(workflow=self.graph, input=self._inputs.encode(given))

    @property
    def graph(self) -> Workflow:
        """The checked definition; its `version` names its content."""
        called = self._called() if self._calls else ()
        if self._graph is None or called != self._graph.called:
            mistakes = [each for step in self.known.values() for each in step.mistakes(self.known)]
            # Where a signature has a mistake, its inputs may not be known.
            mistakes = mistakes or self._inputs.mistakes
            if mistakes:
                raise InvalidDefinition(f"workflow {self.name}", mistakes)
            steps, _ = self.build_steps()
            self._graph = Workflow.define(
                self.name,
                steps,
                concurrency=self._concurrency,
                called=called,
                deadline=self._deadline,
            )
        return self._graph

    def _called(self) -> tuple[Workflow, ...]:
        """The workflows of this program that its steps call, in their present versions."""
        if self._reading_called:
            reason = "calls itself, near or far; call a workflow in such a circle by its name"
            raise InvalidDefinition(f"workflow {self.name}", [reason])
        self._reading_called = True
        try:
            found = {graph.name: graph for call in self._calls if (graph := call.graph) is not None}
        finally:
            self._reading_called = False
        return tuple(found.values())

    def read_graph(self) -> Workflow:
        """The `graph`."""
        return self.graph

    def find_wrong_inputs(self, step: str, given: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        """The mistakes in the input that a step of another workflow gives to this one."""
        yield from self._inputs.find_wrong_inputs(step, given)

    @property
    def _inputs(self) -> RunInputs:
        if self._run_inputs is None:
            self._run_inputs = RunInputs(self.name, self.known.values(), self._concurrency)
        return self._run_inputs

    def _has_input(self, name: str) -> bool:
        return self._inputs.takes(name)

    def _first_input(self) -> str:
        return self._inputs.first or "name"

    def _forget_graph(self) -> None:
        self._graph = self._run_inputs = None
        self._calls = [step.call for step in self.known.values() if step.call is not None]

    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401 - what its function returns
        # A run keeps the graph of its start, and so may have steps that no longer exist here.
        known = self.known.get(step)
        return output if known is None else known.decode(output)


class WorkflowFile(StartableWorkflow):
    """Made by `hf.workflow_file(path)`; its `graph` was read from the file once and never changes.

    Paths in an input are relative to the current folder.
    """

    def __init__(self, engine: ProgramEngine, graph: Workflow) -> None:
        self._engine = engine
        self.graph = graph

    @property
    def name(self) -> str:
        """The name of the workflow in its file."""
        return self.graph.name

    def request(self, /, **given: Any) -> NewRun:
        """The run of one start with these inputs."""
        return NewRun(
            workflow=self.graph, input=make_paths_absolute(self.graph, given, str(Path.cwd()))
        )

    def read_graph(self) -> Workflow:
        """The `graph`."""
        return self.graph

    def find_wrong_inputs(self, step: str, given: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        """The mistakes in the input that a step of another workflow gives to this one."""
        declared = None if self.graph.declared is None else self.graph.declared.input
        call = Step(id=step, work=StepWork(workflow=self.name, input=given))
        yield from (flaw.text for flaw in find_bad_calls((call,), {self.name: declared}))

    def _has_input(self, name: str) -> bool:
        return name in self._declared_inputs

    def _first_input(self) -> str:
        return next(iter(self._declared_inputs), "name")

    @property
    def _declared_inputs(self) -> Mapping[str, Any]:
        declared = None if self.graph.declared is None else self.graph.declared.input
        known: Mapping[str, Any] = (declared or {}).get("properties", {})
        return known

    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401, ARG002 - JSON as it is
        return output
