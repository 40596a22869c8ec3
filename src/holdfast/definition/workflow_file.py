"""Workflow file: reads a YAML or JSON file into a workflow, or into all its mistakes at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.definition.called_files import CalledFiles
from holdfast.definition.findings import Findings
from holdfast.definition.keys import WORKFLOW
from holdfast.definition.nodes import Fields, FileNode, Items, Mark
from holdfast.definition.steps import AgentSections, StepReader
from holdfast.definition.text_file import (
    MAX_BYTES,
    make_length_error,
    make_single_error,
    read_nodes,
    read_text,
)
from holdfast.definition.values import read_section
from holdfast.errors import InvalidDefinition
from holdfast.model.workflow.call_checks import find_bad_calls
from holdfast.model.workflow.declarations import WorkflowDeclarations, Workspace
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.graph_checks import find_flaws
from holdfast.model.workflow.step import Step


def read_workflow_file(path: str | Path) -> Workflow:
    """The workflow of a YAML or JSON file; `InvalidWorkflowFile` has all mistakes and positions.

    A workflow that its steps call is read too, where a file of that name is beside it.
    """
    file = Path(path)
    return _read_file(file, CalledFiles(read=_read_file, files_above=(file,)))


def _read_file(path: Path, called_files: CalledFiles) -> Workflow:
    return read_workflow_text(read_text(path), name=str(path), called_files=called_files)


def read_workflow_text(
    text: str, *, name: str = "workflow", called_files: CalledFiles | None = None
) -> Workflow:
    """The workflow of a text; a text whose name ends in `.json` is JSON, any other YAML."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise make_length_error(name)
    findings = Findings(name, text)
    top = read_nodes(text, findings)
    if not isinstance(top, Fields):
        if not findings:
            findings.add(Mark(1, 1), "a workflow is a mapping with a name and steps")
        raise findings.make_error()
    return _WorkflowReader(top, findings, called_files).workflow()


class _WorkflowReader:
    def __init__(self, top: Fields, findings: Findings, called_files: CalledFiles | None) -> None:
        self._top = top
        self._findings = findings
        self._values = read_section(WORKFLOW, top, findings)
        self._agents = AgentSections.read(top.nodes.get("agents"), findings)
        # A workspace that cannot be read is a finding, and no reason for others.
        unreadable = Workspace(git="?") if "workspace" in top.nodes else None
        self._workspace: Workspace | None = self._values.get("workspace", unreadable)
        in_workspace = self._workspace is not None
        self._steps = StepReader(self._agents, findings, called_files, in_workspace=in_workspace)

    def workflow(self) -> Workflow:
        steps = self._steps.read(self._top.nodes["steps"]) if "steps" in self._top.nodes else ()
        concurrency, declared = self._values.get("concurrency"), self._declared()
        # A file with mistakes and no readable steps has no graph to check.
        if steps or not self._findings:
            for flaw in (*find_flaws(steps, concurrency, declared), *self._bad_calls(steps)):
                self._findings.add(self._locate(flaw), flaw.message, partial(getattr, flaw, "hint"))
        if self._findings:
            raise self._findings.make_error()
        try:
            return Workflow.define(
                self._values["name"],
                steps,
                concurrency=concurrency,
                declared=declared,
                called=tuple(self._steps.called.values()),
                deadline=self._values.get("deadline"),
            )
        except InvalidDefinition as error:
            raise make_single_error(self._findings.name, self._top.mark, error.reason) from None

    def _bad_calls(self, steps: tuple[Step, ...]) -> Iterator[Flaw]:
        declared = {name: flow.declared for name, flow in self._steps.called.items()}
        return find_bad_calls(
            steps, {name: said.input for name, said in declared.items() if said is not None}
        )

    def _declared(self) -> WorkflowDeclarations:
        given = self._values.get("input")
        if given is not None:
            given.setdefault("additionalProperties", False)
        return WorkflowDeclarations(
            input=given,
            budget=self._values.get("budget"),
            agents={name: _with_lists(said) for name, said in self._agents.values.items()},
            env=tuple(sorted(self._values.get("env", ()))),
            workspace=self._workspace,
            labels=self._values.get("labels", {}),
        )

    def _locate(self, flaw: Flaw) -> Mark:
        """The mark of a flaw of the graph: of its word, its key, its step, or the file."""
        around = self._top if flaw.step is None else self._steps.fields_of_step(flaw.step)
        node = self._node_at(around, (flaw.field or "").removeprefix("run.").removeprefix("items."))
        if node is None:
            return around.mark
        return node.mark if flaw.named is None else self._findings.locate_word(node, flaw.named)

    def _node_at(self, around: Fields, field: str) -> FileNode | None:
        """The node of a field such as `env.TOKEN` or `command.1`."""
        key, _, rest = field.partition(".")
        if key == "command" and "run" in around.nodes:
            key = "run"
        node = around.nodes.get(key)
        if node is None or (rest and _node_inside(node, rest) is None):
            named = around.nodes.get("agent")
            agent = self._agents.nodes.get(str(getattr(named, "value", "")))
            node = node if agent is None else agent.nodes.get(key, node)
        return node if node is None or not rest else _node_inside(node, rest) or node


def _node_inside(node: FileNode, path: str) -> FileNode | None:
    key, _, rest = path.partition(".")
    found: FileNode | None = None
    if isinstance(node, Fields):
        found = node.nodes.get(path) or node.nodes.get(key)
    elif isinstance(node, Items) and key.isdigit() and int(key) < len(node.nodes):
        found = node.nodes[int(key)]
    return _node_inside(found, rest) or found if found is not None and rest else found


def _with_lists(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in said.items()
    }
