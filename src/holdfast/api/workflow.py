"""A workflow written in Python: steps in the order they are written, or by what they need."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.api.body import Body
from holdfast.api.handle import RunHandle
from holdfast.api.inputs import Inputs
from holdfast.api.recurring import Recurring
from holdfast.engine.edge import operation
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.graph import Concurrency, Workflow
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import NewRun

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


class WorkflowBuilder(Body, Recurring):
    """Made by `hf.workflow(name)`; its graph is checked when it is first used."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        name: str,
        *,
        concurrency: Concurrency | None,
        retry: RetryPolicy,
    ) -> None:
        super().__init__(name, retry)
        self._engine = engine
        self._concurrency = concurrency
        self._graph: Workflow | None = None
        self._taken: Inputs | None = None

    @operation
    def start(
        self,
        /,
        *unnamed: object,
        key: str | None = None,
        connection: object = None,
        **given: Any,
    ) -> Future[RunHandle]:
        """Start a run with the steps' inputs by name; a `key` makes it exist once.

        With a `connection` it is part of the application's own transaction there.
        """
        if unnamed:
            first = self._inputs.first or "name"
            raise InvalidInput("start", f"inputs go by name: start({first}={unnamed[0]!r})")
        run = self.request(**given)
        if key is not None:
            run = replace(run, key=key)
        engine = self._engine()
        return engine.runs.starting(
            run,
            lambda created: RunHandle(engine, created.id, self._decode, created=created.created),
            connection=connection,
        )

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
            self._graph = Workflow.define(self.name, steps, concurrency=self._concurrency)
        return self._graph

    @property
    def _inputs(self) -> Inputs:
        if self._taken is None:
            self._taken = Inputs(self.name, self.known.values())
        return self._taken

    def _changed(self) -> None:
        self._graph = self._taken = None

    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401 - what its function returns
        # A run keeps the graph it was started with, and so may have steps that are here no longer.
        known = self.known.get(step)
        return output if known is None else known.decode(output)
