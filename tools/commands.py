"""Every command of the command line, with what its help says, for the reference and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer.main

from holdfast.cli.commands import load


@dataclass(frozen=True, kw_only=True)
class Option:
    name: str
    metavar: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Described:
    name: str
    usage: str
    help: str
    example: str
    options: tuple[Option, ...]


def every_command() -> list[Described]:
    return list(_walk(typer.main.get_command(load([])), ""))


def _walk(command: Any, name: str) -> Iterator[Described]:  # noqa: ANN401 - Typer's own types
    below = getattr(command, "commands", None)
    if below is None:
        yield _describe(command, name)
        return
    for each, found in below.items():
        yield from _walk(found, f"{name} {each}".strip())


def _describe(command: Any, name: str) -> Described:  # noqa: ANN401 - Typer's own types
    options = [_option(each) for each in command.params]
    arguments = [each.metavar for each in command.params if each.param_type_name == "argument"]
    return Described(
        name=name,
        usage=" ".join(["holdfast", name, *(each or "" for each in arguments), "[OPTIONS]"]),
        help=" ".join((command.help or "").split()),
        example=(command.epilog or "").removeprefix("Example: "),
        options=tuple(options),
    )


def _option(parameter: Any) -> Option:  # noqa: ANN401 - Typer's own types
    if parameter.param_type_name == "argument":
        return Option(name=parameter.metavar or "", metavar="", help=parameter.help or "")
    flag = getattr(parameter, "is_flag", False)
    metavar = "" if flag else parameter.metavar or ""
    return Option(name=", ".join(parameter.opts), metavar=metavar, help=parameter.help or "")
