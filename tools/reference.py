"""Writes the reference pages that are made from the code; a test says when they are stale."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

from holdfast.bus.envelope import make_schema as make_envelope_schema
from holdfast.cli.app.command_registry import EPILOG
from holdfast.definition.project_file import SETTINGS, Setting
from holdfast.definition.schema import make_key_tables, make_schema
from holdfast.engine.explain.doctor import CHECKS
from holdfast.model.result import Refusal
from holdfast.model.status import RUN_TRANSITIONS, TASK_TRANSITIONS, Hold, Transition
from holdfast.settings import COMMAND_VARIABLES, VARIABLES, Settings
from holdfast.store.sql_text import queries
from tools.calls import list_calls, list_problems
from tools.commands import Described, every_command
from tools.python_api import make_api_page

PAGES = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Made by `make reference` from the code; change the code, not this page. -->\n\n"


def transitions() -> str:
    """The transition table of tasks and runs, as a diagram and as a list."""
    return (
        NOTE
        + "# Statuses and transitions\n\nWhatever is not listed here is refused, by the engine and"
        " by the database itself.\n\n## A task\n\n"
        + _diagram(TASK_TRANSITIONS, ("idle", "queued"), ("done", "failed", "cancelled"))
        + _table(TASK_TRANSITIONS)
        + "\n## A run\n\n"
        + _diagram(RUN_TRANSITIONS, ("running",), ("completed", "failed", "cancelled"))
        + _table(RUN_TRANSITIONS)
    )


def codes() -> str:
    """The stable words a program may compare with: refusals, holds, checks."""
    refusals = "".join(f"- `{reason}`\n" for reason in Refusal)
    holds = "".join(f"| `{str(hold.name).lower()}` | {hold.value} |\n" for hold in Hold)
    checks = "".join(f"| `{name}` | {_purpose(f'check_{name}')} |\n" for name in CHECKS)
    return (
        NOTE
        + f"# Codes\n\n## Why a transition was refused\n\n{refusals}\n"
        + f"## Holds, and their bits in the store\n\n| hold | bit |\n|---|---|\n{holds}\n"
        + f"## What the doctor checks\n\n| check | what must hold |\n|---|---|\n{checks}"
    )


def statements() -> str:
    """Every named statement of the store, with what it is for and what guards it."""
    rows = "".join(
        f"| `{query.name}` | {query.purpose} | {query.guards} |\n"
        for query in queries.load("postgresql").values()
        if not query.name.startswith("check_")
    )
    return NOTE + "# Statements\n\n| name | purpose | guards |\n|---|---|---|\n" + rows


def workflow_files() -> str:
    """Every key of a workflow file, from the table that the reader goes by."""
    return (
        NOTE + "# Keys of workflow files\n\n[How to write one](../how-to/workflow-files.md).\n"
        "For editors: [workflow.schema.json](workflow.schema.json).\n\n" + make_key_tables()
    )


def workflow_schema() -> str:
    return json.dumps(make_schema(), indent=2) + "\n"


def settings() -> str:
    """Every setting of a project and of a store, and every variable of the environment."""
    rows = "".join(
        f"| `{each.name}` | {each.about} | {each.default} | {_variable(each)} |\n"
        for each in SETTINGS
    )
    return (
        NOTE + "# Settings\n\n## Of a project\n\n"
        "`holdfast.yaml`, in a folder or above it, says them for the command line and its workers;"
        " `holdfast init` writes one. Each is optional. A variable of the environment wins over the"
        " file, and an option of a command over both.\n\n"
        "| key | what it says | unless said | variable |\n|---|---|---|---|\n"
        f"{rows}\n## Of a store\n\n"
        '`Holdfast("sqlite:///shop.db", lease=60)` says them in a program; durations are seconds.'
        f"\n\n| setting | what it says | unless said |\n|---|---|---|\n{_knobs()}"
        "\n## Of the environment\n\n"
        f"| variable | what it says |\n|---|---|\n{_named(VARIABLES)}"
        "\n[A command that a worker runs](../how-to/commands.md) finds these set, and no"
        " other of its worker's but `HOLDFAST_HOME`:\n\n"
        f"| variable | what it is |\n|---|---|\n{_named(COMMAND_VARIABLES)}"
    )


def _knobs() -> str:
    """The settings of a store, from the lines that describe them."""
    told = re.findall(r"^    - (`.*?`): (.*)$", Settings.__doc__ or "", re.MULTILINE)
    defaults = {each.name: each.default for each in fields(Settings) if each.name != "url"}
    listed = {names: re.findall(r"`(\w+)`", names) for names, _ in told}
    if sorted(each for names in listed.values() for each in names) != sorted(defaults):
        raise ValueError(f"described: {listed}; there are: {list(defaults)}")
    usual = {
        names: " and ".join(f"{defaults[each]:,}" for each in each_of)
        for names, each_of in listed.items()
    }
    return "".join(f"| {names} | {about} | {usual[names]} |\n" for names, about in told)


def _named(variables: Mapping[str, str]) -> str:
    return "".join(f"| `{name}` | {about} |\n" for name, about in variables.items())


def _variable(each: Setting) -> str:
    return f"`{each.variable}`" if each.variable else ""


def envelope_schema() -> str:
    return json.dumps(make_envelope_schema(), indent=2) + "\n"


def commands() -> str:
    """Every command of the command line: what it does, an example, its arguments and options."""
    described = every_command()
    listed = "".join(
        f"| [`{each.name}`](#holdfast-{each.name.replace(' ', '-')}) | {each.help} |\n"
        for each in described
    )
    return (
        NOTE
        + "# Commands\n\n`holdfast` alone tells what happened since yesterday, what needs you and"
        " what to type next.\n\n"
        + f"{EPILOG.replace('Exit codes:', 'Commands exit with')}\n\n"
        + f"| command | does |\n|---|---|\n{listed}"
        + "".join(_command(each) for each in described)
    )


def calls() -> str:
    """Every call of the HTTP server, and what it may be refused with."""
    return (
        NOTE
        + "# Calls over HTTP\n\n[How to serve, and to work from anywhere](../how-to/http.md). What"
        " stands in brackets may be left out; null is absent. A server tells all of this, with what"
        " each call answers, as `/openapi.json`.\n" + list_calls() + list_problems()
    )


def _command(each: Described) -> str:
    rows = "".join(
        f"| `{option.name}{' ' + option.metavar if option.metavar else ''}` | {option.help} |\n"
        for option in each.options
    )
    return (
        f"\n## `holdfast {each.name}`\n\n{each.help}\n\n"
        f"    {each.example}\n\n| option | |\n|---|---|\n{rows}"
    )


BUILT: dict[str, Callable[[], str]] = {
    "transitions.md": transitions,
    "codes.md": codes,
    "python.md": make_api_page,
    "statements.md": statements,
    "commands.md": commands,
    "settings.md": settings,
    "http.md": calls,
    "workflow-files.md": workflow_files,
    "workflow.schema.json": workflow_schema,
    "envelope.schema.json": envelope_schema,
}


def main() -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, build in BUILT.items():
        (PAGES / name).write_text(build(), encoding="utf-8")


def _diagram(table: tuple[Transition, ...], starts: tuple[str, ...], ends: tuple[str, ...]) -> str:
    lines = [f"    [*] --> {start}" for start in starts]
    lines += [f"    {move.source} --> {move.target}: {', '.join(move.by)}" for move in table]
    lines += [f"    {end} --> [*]" for end in ends]
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(lines) + "\n```\n\n"


def _table(table: tuple[Transition, ...]) -> str:
    rows = "".join(
        f"| {move.source} | {move.target} | {', '.join(move.by)} "
        f"| {'yes' if move.new_generation else ''} |\n"
        for move in table
    )
    return "| from | to | by | new generation |\n|---|---|---|---|\n" + rows


def _purpose(name: str) -> str:
    return queries.load("postgresql")[name].purpose


if __name__ == "__main__":
    main()
