"""The commands of `workflow`: workflows of the store, and workflow files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import Json, complete_workflow
from holdfast.cli.app.session import open_service, with_store
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note, print_table
from holdfast.cli.commands.run import WORKFLOW_FILE_SUFFIXES
from holdfast.cli.render.formats import format_ago

if TYPE_CHECKING:
    from holdfast.model.workflow.graph import Workflow

workflow = group("workflow", "List, show, check and add workflows.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow file.")]
SHORT = 12


@command("list", of=workflow, example="holdfast workflow list")
def list_workflows(json: Json = False) -> None:
    """List the workflows in the store."""
    from holdfast.service.queries.views import read_time

    with open_service() as service:
        page = service.queries.workflows()
    if json:
        print_json(page)
        return
    if not page["items"]:
        print_note("No workflows. One that is added, started or scheduled is listed here.")
        return
    rows = [
        [
            escape(each["name"]),
            each["version"][:SHORT],
            str(len(each["versions"])),
            format_ago(read_time(each["created_at"])),
        ]
        for each in page["items"]
    ]
    print_table(("NAME", "VERSION", "VERSIONS", "NEWEST"), rows)


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

    if Path(name).suffix in WORKFLOW_FILE_SUFFIXES:
        known = _read(Path(name))
    else:
        with open_service() as service:
            known = service.commands.find_workflow(name, version)
    if json:
        print_json({"version": known.version, **text.loads(known.definition)})
        return
    _print_graph(known)
    print_note(f"start: {with_store(' '.join(['holdfast run', name, *_inputs(known), '--wait']))}")


@command("versions", of=workflow, example="holdfast workflow versions checkout")
def versions(
    name: Annotated[
        str,
        typer.Argument(metavar="WORKFLOW", help="A name.", autocompletion=complete_workflow),
    ],
    json: Json = False,
) -> None:
    """List the versions of a workflow, the newest first."""
    from holdfast.service.queries.views import read_time

    with open_service() as service:
        page = service.queries.workflow_versions(name)
    if json:
        print_json(page)
        return
    rows = [[each["version"], format_ago(read_time(each["created_at"]))] for each in page["items"]]
    print_table(("VERSION", "ADDED"), rows)


@command("validate", of=workflow, example="holdfast workflow validate feature.yaml")
def validate(path: File, json: Json = False) -> None:
    """Check a workflow file; reports every mistake with its place."""
    known = _read(path)
    if json:
        print_json({"ok": True, "name": known.name, "version": known.version})
        return
    _print_graph(known)
    print_line(f"{paint('✓', 'green')} {escape(path)} is valid")


@command("add", of=workflow, example="holdfast workflow add feature.yaml")
def add(path: File, json: Json = False) -> None:
    """Add a workflow file to the store: what its name means from now on."""
    known = _read(path)
    with open_service(begins=True) as service:
        told = service.commands.add_workflow(known)
    if json:
        print_json(told)
        return
    said = "is added" if told["created"] else "was added before"
    print_line(f"{escape(known.name)} {known.version[:SHORT]} {said}")
    print_note(f"start: {with_store(f'holdfast run {known.name} --wait')}")


def _inputs(known: Workflow) -> list[str]:
    """The options for the required inputs of a workflow, as they are typed."""
    declared = (known.declared.input if known.declared else None) or {}
    return [f"-i {name}=…" for name in declared.get("required", ())]


def _read(path: Path) -> Workflow:
    from holdfast.definition.workflow_file import read_workflow_file

    return read_workflow_file(path)


def _print_graph(known: Workflow) -> None:
    from holdfast.definition.diagram import draw_workflow

    head, *steps = draw_workflow(known)
    print_line(f"{paint(escape(head), 'bold')}  {paint(known.version[:SHORT], 'dim')}")
    for line in steps:
        print_line(escape(line))
