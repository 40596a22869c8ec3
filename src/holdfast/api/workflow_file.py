"""A workflow that was read from a file: started and scheduled like one of Python functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.api.handle import RunHandle
from holdfast.api.recurring import Recurring
from holdfast.engine.edge import operation, then
from holdfast.errors import InvalidInput
from holdfast.model.graph import Workflow
from holdfast.model.run import NewRun
from holdfast.model.shape import map_paths
from holdfast.model.starting import fill_input

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


class WorkflowFile(Recurring):
    """Made by `hf.workflow_file(path)`; its `graph` is what was read, and stays as it is."""

    def __init__(self, engine: Callable[[], Engine], graph: Workflow) -> None:
        self._engine = engine
        self.graph = graph

    @property
    def name(self) -> str:
        return self.graph.name

    @operation
    def start(
        self,
        /,
        *unnamed: object,
        key: str | None = None,
        connection: object = None,
        **given: Any,
    ) -> Future[RunHandle]:
        """Start a run with the inputs by name; a `key` makes it exist once.

        Paths are those from the current folder. With a `connection` it is part of the
        application's own transaction there.
        """
        if unnamed:
            raise InvalidInput("start", f"inputs go by name: start(name={unnamed[0]!r})")
        run = replace(self.request(**given), key=key)
        engine = self._engine()
        return then(
            engine.runs.start.submit(run, connection=connection),
            lambda created: RunHandle(
                engine, created.id, lambda _, output: output, created=created.created
            ),
        )

    def request(self, /, **given: Any) -> NewRun:
        """The run that stands for one start."""
        return NewRun(workflow=self.graph, input=absolute(self.graph, given))


def absolute(workflow: Workflow, given: Any) -> Any:  # noqa: ANN401 - JSON is any value
    """An input with its defaults, and its paths as they are from the current folder."""
    filled = fill_input(workflow, given)
    declared = workflow.declared
    if declared is None or declared.input is None:
        return filled
    return map_paths(declared.input, filled, os.path.abspath)
