"""The command of `agent`: how the agents of a project or a workflow are run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import Json
from holdfast.cli.app.session import project_settings
from holdfast.cli.app.terminal import escape, paint, print_json, print_line, print_note

agent = group("agent", "See how agents are run.")


@command("show", of=agent, example="holdfast agent show developer feature.yaml")
def show_agent(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Its workflow file; else holdfast.yaml has it."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the exact command line of an agent, and where its prompt goes."""
    from holdfast.definition.workflow_file import read_workflow_file
    from holdfast.service.project.agent_programs import describe_agent

    workflow = None if file is None else read_workflow_file(file)
    told = describe_agent(name, project_settings().commands, workflow)
    if json:
        print_json(told)
        return
    print_line(escape(shlex.join(told["command"])))
    for variable, value in told["env"].items():
        print_line(paint(escape(f"  {variable}={value}"), "dim"))
    where = "is its standard input" if told["prompt"] == "input" else "stands where PROMPT is"
    print_line(f"the prompt {where}")
    if "preset" not in told:
        return
    goes_on = "goes on in one session" if told["sessions"] else "begins anew each time"
    print_line(
        f"{told['program']}, access {told['access']}, account {escape(told['account'])}; a repair "
        f"{goes_on}"
    )
    if told["untried"]:
        print_note("This preset was written after the program's documentation, and not tried.")
    if not told["installed"]:
        print_note("The program is not installed here.")
    for note in told["notes"]:
        print_note(f"- {escape(note)}")
