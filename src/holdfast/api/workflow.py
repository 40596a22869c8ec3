"""A workflow written in Python: steps in the order they are written, or by what they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.api.body import Body
from holdfast.api.inputs import Inputs
from holdfast.api.startable import Startable
from holdfast.errors import InvalidDefinition
from holdfast.model.graph import Concurrency, Workflow
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


class WorkflowBuilder(Body, Startable):
    """Made by `hf.workflow(name)`; its graph is checked when it is first used."""

    def __init__(
        self,
        engine: Callable[[], Engine],
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
        self._taken: Inputs | None = None

    def request(self, /, **given: Any) -> NewRun:
        """The run that stands for one start."""
        return NewRun(workflow=self.graph, input=self._inputs.encode(given))

    @property
    def graph(self) -> Workflow:
        """The checked definition; its `version` names its content."""
        if self._graph is None:
            mistakes = [each for step in self.known.values() for each in step.mistakes(self.known)]
            if mistakes:
                raise InvalidDefinition(f"workflow {self.name}", mistakes)
            steps, _ = self.written()
            self._graph = Workflow.define(
                self.name, steps, concurrency=self._concurrency, deadline=self._deadline
            )
        return self._graph

    @property
    def _inputs(self) -> Inputs:
        if self._taken is None:
            self._taken = Inputs(self.name, self.known.values())
        return self._taken

    def _first_input(self) -> str:
        return self._inputs.first or "name"

    def _changed(self) -> None:
        self._graph = self._taken = None

    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401 - what its function returns
        # A run keeps the graph it was started with, and so may have steps that are here no longer.
        known = self.known.get(step)
        return output if known is None else known.decode(output)
