"""Reads a workflow file: all of its mistakes at once, or the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.definition.called_files import Beside
from holdfast.definition.findings import Findings
from holdfast.definition.keys import WORKFLOW
from holdfast.definition.nodes import Fields, Items, Mark, Node
from holdfast.definition.steps import Agents, Steps
from holdfast.definition.text_file import MAX_BYTES, alone, compose, read_text, too_long
from holdfast.definition.values import read_section
from holdfast.errors import InvalidDefinition
from holdfast.model.workflow.call_checks import find_bad_calls
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.graph_checks import find_flaws
from holdfast.model.workflow.step import Step


def read_workflow_file(path: str | Path) -> Workflow:
    """The workflow of a YAML or JSON file; `InvalidWorkflowFile` tells every mistake and where.

    What its steps call is read too, where a file of that name stands beside it.
    """
    place = Path(path)
    return _read_file(place, Beside(read=_read_file, way=(place,)))


def _read_file(place: Path, beside: Beside) -> Workflow:
    return read_workflow_text(read_text(place), name=str(place), beside=beside)


def read_workflow_text(
    text: str, *, name: str = "workflow", beside: Beside | None = None
) -> Workflow:
    """The workflow of a text; one whose name ends in `.json` is JSON, any other YAML."""
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise too_long(name)
    findings = Findings(name, text)
    top = compose(text, findings)
    if not isinstance(top, Fields):
        if not findings:
            findings.add(Mark(1, 1), "a workflow is a mapping with a name and steps")
        raise findings.error()
    return _Reading(top, findings, beside).workflow()


class _Reading:
    def __init__(self, top: Fields, findings: Findings, beside: Beside | None) -> None:
        self._top = top
        self._findings = findings
        self._said = read_section(WORKFLOW, top, findings)
        self._agents = Agents.read(top.nodes.get("agents"), findings)
        self._steps = Steps(self._agents, findings, beside)

    def workflow(self) -> Workflow:
        steps = self._steps.read(self._top.nodes["steps"]) if "steps" in self._top.nodes else ()
        concurrency, declared = self._said.get("concurrency"), self._declared()
        # Without steps that can be read there is nothing more to be said.
        if steps or not self._findings:
            for flaw in (*find_flaws(steps, concurrency, declared), *self._bad_calls(steps)):
                self._findings.add(self._locate(flaw), flaw.message, partial(getattr, flaw, "hint"))
        if self._findings:
            raise self._findings.error()
        try:
            return Workflow.define(
                self._said["name"],
                steps,
                concurrency=concurrency,
                declared=declared,
                called=tuple(self._steps.called.values()),
                deadline=self._said.get("deadline"),
            )
        except InvalidDefinition as error:
            raise alone(self._findings.name, self._top.mark, error.reason) from None

    def _bad_calls(self, steps: tuple[Step, ...]) -> Iterator[Flaw]:
        declared = {name: flow.declared for name, flow in self._steps.called.items()}
        return find_bad_calls(
            steps, {name: said.input for name, said in declared.items() if said is not None}
        )

    def _declared(self) -> WorkflowDeclarations:
        given = self._said.get("input")
        if given is not None:
            given.setdefault("additionalProperties", False)
        return WorkflowDeclarations(
            input=given,
            budget=self._said.get("budget"),
            agents={name: _kept(said) for name, said in self._agents.said.items()},
            env=tuple(sorted(self._said.get("env", ()))),
        )

    def _locate(self, flaw: Flaw) -> Mark:
        """Where a flaw of the graph was written: its word, its key, its step, or the file."""
        around = self._top if flaw.step is None else self._steps.place(flaw.step)
        node = self._node(around, (flaw.field or "").removeprefix("run.").removeprefix("items."))
        if node is None:
            return around.mark
        return node.mark if flaw.named is None else self._findings.find(node, flaw.named)

    def _node(self, around: Fields, place: str) -> Node | None:
        """The value that stands at a place such as `env.TOKEN` or `command.1`."""
        key, _, rest = place.partition(".")
        if key == "command" and "run" in around.nodes:
            key = "run"
        node = around.nodes.get(key)
        if node is None or (rest and _inner(node, rest) is None):
            named = around.nodes.get("agent")
            agent = self._agents.nodes.get(str(getattr(named, "value", "")))
            node = node if agent is None else agent.nodes.get(key, node)
        return node if node is None or not rest else _inner(node, rest) or node


def _inner(node: Node, path: str) -> Node | None:
    key, _, rest = path.partition(".")
    found: Node | None = None
    if isinstance(node, Fields):
        found = node.nodes.get(path) or node.nodes.get(key)
    elif isinstance(node, Items) and key.isdigit() and int(key) < len(node.nodes):
        found = node.nodes[int(key)]
    return _inner(found, rest) or found if found is not None and rest else found


def _kept(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in said.items()
    }
