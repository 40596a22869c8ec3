"""Workflows: what the store knows, one of them drawn, a file checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import Json, complete_workflow
from holdfast.cli.app.session import opened, with_store
from holdfast.cli.app.terminal import escape, note, paint, say, say_json, say_table
from holdfast.cli.commands.run import FILES
from holdfast.cli.render.formats import ago

if TYPE_CHECKING:
    from holdfast.model.workflow.graph import Workflow

workflow = group("workflow", "List, show, check and add workflows.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow file.")]
SHORT = 12


@command("list", of=workflow, example="holdfast workflow list")
def list_workflows(json: Json = False) -> None:
    """List the workflows in the store."""
    from holdfast.service.queries.views import read_time

    with opened() as service:
        page = service.queries.workflows()
    if json:
        say_json(page)
        return
    if not page["items"]:
        note("No workflows. One that is added, started or scheduled is listed here.")
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
    name: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW", help="A name or a file.", autocompletion=complete_workflow
        ),
    ],
    version: Annotated[str | None, typer.Option(help="A version (default: the newest).")] = None,
    json: Json = False,
) -> None:
    """Draw the graph of a workflow, from the store or a file."""
    import json as text

    if Path(name).suffix in FILES:
        known = _read(Path(name))
    else:
        with opened() as service:
            known = service.commands.find_workflow(name, version)
    if json:
        say_json({"version": known.version, **text.loads(known.definition)})
        return
    _draw(known)
    note(f"start: {with_store(' '.join(['holdfast run', name, *_inputs(known), '--wait']))}")


@command("validate", of=workflow, example="holdfast workflow validate feature.yaml")
def validate(path: File, json: Json = False) -> None:
    """Check a workflow file; reports every mistake with its place."""
    known = _read(path)
    if json:
        say_json({"ok": True, "name": known.name, "version": known.version})
        return
    _draw(known)
    say(f"{paint('✓', 'green')} {escape(path)} is valid")


@command("add", of=workflow, example="holdfast workflow add feature.yaml")
def add(path: File, json: Json = False) -> None:
    """Add a workflow file to the store: what its name means from now on."""
    known = _read(path)
    with opened(begins=True) as service:
        told = service.commands.add_workflow(known)
    if json:
        say_json(told)
        return
    said = "is added" if told["created"] else "was added before"
    say(f"{escape(known.name)} {known.version[:SHORT]} {said}")
    note(f"start: {with_store(f'holdfast run {known.name} --wait')}")


def _inputs(known: Workflow) -> list[str]:
    """What has to be given to start it, as it is typed."""
    declared = (known.declared.input if known.declared else None) or {}
    return [f"-i {name}=…" for name in declared.get("required", ())]


def _read(path: Path) -> Workflow:
    from holdfast.definition.workflow_file import read_workflow_file

    return read_workflow_file(path)


def _draw(known: Workflow) -> None:
    from holdfast.definition.diagram import draw_workflow

    head, *steps = draw_workflow(known)
    say(f"{paint(escape(head), 'bold')}  {paint(known.version[:SHORT], 'dim')}")
    for line in steps:
        say(escape(line))
