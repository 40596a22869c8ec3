"""Workflows: what the store knows, one of them drawn, a file checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import Json, WorkflowName
from holdfast.cli.registry import command, group
from holdfast.cli.running import read_file
from holdfast.cli.session import opened, with_store
from holdfast.cli.tables import say_table
from holdfast.cli.terminal import escape, note, paint, say, say_json
from holdfast.cli.words import ago

if TYPE_CHECKING:
    from holdfast.model.graph import Step, Workflow

workflow = group("workflow", "Look at workflows, and check their files.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow file.")]
SHORT = 12


@command("list", of=workflow, example="holdfast workflow list")
def list_workflows(json: Json = False) -> None:
    """List the workflows that the store knows: whatever was started or scheduled."""
    from holdfast.service.views import read_time

    with opened() as service:
        page = service.queries.workflows()
    if json:
        say_json(page)
        return
    if not page["items"]:
        note("No workflow was ever started or scheduled in this store.")
        return
    rows = [
        [
            escape(each["name"]),
            each["version"][:SHORT],
            str(len(each["versions"])),
            ago(read_time(each["created_at"])),
        ]
        for each in page["items"]
    ]
    say_table(("NAME", "VERSION", "VERSIONS", "NEWEST"), rows)


@command("show", of=workflow, example="holdfast workflow show checkout")
def show_workflow(
    name: WorkflowName,
    version: Annotated[str | None, typer.Option(help="Not the newest, but this one.")] = None,
    json: Json = False,
) -> None:
    """Draw the graph of a workflow that the store knows."""
    import json as text

    with opened() as service:
        known = service.commands.known_workflow(name, version)
    if json:
        say_json({"name": known.name, "version": known.version, **text.loads(known.definition)})
        return
    for line in draw(known):
        say(line)
    note(f"start: {with_store('holdfast run ' + known.name)}")


@command("validate", of=workflow, example="holdfast workflow validate feature.yaml")
def validate(path: File, json: Json = False) -> None:
    """Check a workflow file, and tell every mistake at once."""
    known = read_file(path)
    if json:
        say_json({"ok": True, "name": known.name, "version": known.version})
        return
    for line in draw(known):
        say(line)
    say(f"{paint('✓', 'green')} {escape(path)} is in order")


def draw(workflow: Workflow) -> list[str]:
    """The graph as text, one line a step."""
    head = f"{paint(escape(workflow.name), 'bold')} {paint(workflow.version[:SHORT], 'dim')}"
    return [head, *_draw(workflow.steps, 0)]


def _draw(steps: tuple[Step, ...], depth: int) -> list[str]:
    lines: list[str] = []
    before: str | None = None
    for step in steps:
        parts = [_needs(step, before), *_traits(step)]
        shown = "  ".join(part for part in parts if part)
        lines.append(f"{'  ' * depth}{paint('○', 'cyan')} {escape(step.id)}  {shown}".rstrip())
        lines += _draw(step.steps, depth + 1)
        before = step.id
    return lines


def _needs(step: Step, before: str | None) -> str:
    if not step.needs:
        return "at once" if before is not None and step.verifies is None else ""
    return "" if step.needs == (before,) else f"after {', '.join(step.needs)}"


def _traits(step: Step) -> list[Any]:
    failure = step.on_failure
    named = f" {failure.step}" if failure.step else ""
    return [
        f"for each of {step.for_each}, {step.parallel} at once" if step.for_each else "",
        f"verifies {step.verifies}, {step.max_rounds} rounds" if step.verifies else "",
        f"when {step.when}" if step.when else "",
        f"asks: {escape(step.approval)}" if step.approval else "",
        f"agent {step.agent}" if step.agent != "default" else "",
        f"on failure {failure.action}{named}" if failure.action != "fail" else "",
    ]
