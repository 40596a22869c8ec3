"""Every command of the command line, with what its help says, for the reference and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.cli.app.command_registry import MODULES, build_command_line, format_argument


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
    """In the order that help lists them, whichever module was imported first."""
    program: Any = build_command_line(tuple(MODULES))
    words = [word for names in MODULES.values() for word in names]

    def place(each: Described) -> tuple[bool, int]:
        word = each.name.split()[0]
        return hasattr(program.commands[word], "commands"), words.index(word)

    return sorted(_walk(program, ""), key=place)


def _walk(command: Any, name: str) -> Iterator[Described]:  # noqa: ANN401 - Typer's own types
    below = getattr(command, "commands", None)
    if below is None:
        yield _describe(command, name)
        return
    if name and command.invoke_without_command:
        yield _describe(command, name)
    for each, found in below.items():
        yield from _walk(found, f"{name} {each}".strip())


def _describe(command: Any, name: str) -> Described:  # noqa: ANN401 - Typer's own types
    options = [_option(each) for each in command.params]
    arguments = [
        format_argument(each) for each in command.params if each.param_type_name == "argument"
    ]
    return Described(
        name=name,
        usage=" ".join(["holdfast", name, *arguments, "[OPTIONS]"]),
        help=" ".join((command.help or "").split()),
        example=(command.epilog or f"holdfast {name}").removeprefix("Example: "),
        options=tuple(options),
    )


def _option(parameter: Any) -> Option:  # noqa: ANN401 - Typer's own types
    if parameter.param_type_name == "argument":
        return Option(name=format_argument(parameter), metavar="", help=parameter.help or "")
    flag = getattr(parameter, "is_flag", False)
    metavar = "" if flag else parameter.metavar or ""
    return Option(name=", ".join(parameter.opts), metavar=metavar, help=parameter.help or "")
