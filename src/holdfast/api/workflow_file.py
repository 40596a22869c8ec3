"""A workflow that was read from a file: started and scheduled like one of Python functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.api.startable import Startable
from holdfast.model.run import NewRun
from holdfast.model.workflow.call_checks import bad_calls
from holdfast.model.workflow.declarations import Work
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.run_input import place_paths

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


class WorkflowFile(Startable):
    """Made by `hf.workflow_file(path)`; its `graph` is what was read, and stays as it is.

    Paths in an input are those from the current folder.
    """

    def __init__(self, engine: Callable[[], Engine], graph: Workflow) -> None:
        self._engine = engine
        self.graph = graph

    @property
    def name(self) -> str:
        """What the workflow is called in its file."""
        return self.graph.name

    def request(self, /, **given: Any) -> NewRun:
        """The run that stands for one start."""
        return NewRun(workflow=self.graph, input=place_paths(self.graph, given, str(Path.cwd())))

    def read_graph(self) -> Workflow:
        """The same as `graph`."""
        return self.graph

    def misgiven(self, step: str, given: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        """What is wrong with what a step of another workflow gives to a run of this one."""
        declared = None if self.graph.declared is None else self.graph.declared.input
        call = Step(id=step, work=Work(workflow=self.name, input=given))
        yield from (flaw.text for flaw in bad_calls((call,), {self.name: declared}))

    def _first_input(self) -> str:
        declared = None if self.graph.declared is None else self.graph.declared.input
        return next(iter((declared or {}).get("properties", ())), "name")

    def _decode(self, step: str, output: Any) -> Any:  # noqa: ANN401, ARG002 - JSON as it is
        return output
