"""All commands: which module has each, so that one command does not load the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from typer.main import get_command

from holdfast.cli.registry import app

# In the order that help lists them.
MODULES = {
    "report": (),
    "starting": ("init", "demo"),
    "running": ("run",),
    "looking": ("runs", "tasks", "show", "why"),
    "following": ("events", "logs"),
    "steering": (
        "cancel",
        "retry",
        "pause",
        "resume",
        "approve",
        "reject",
        "answer",
        "continue",
        "signal",
    ),
    "tasks": ("task", "plan"),
    "working": ("worker", "workers"),
    "scripting": ("work", "guard"),
    "serving": ("serve", "up", "token"),
    "opening": ("open",),
    "agents": ("mcp",),
    "database": ("doctor", "clean", "db"),
    "trust": ("trust",),
    "workflows": ("workflow",),
    "schedules": ("schedule", "lease"),
    "buses": ("bus",),
}


Program = Callable[..., object]


def load(arguments: Sequence[str]) -> Program:
    """The program with the command that is called, or with all of them for help and completion."""
    called = arguments[0] if arguments else ""
    owner = next((module for module, names in MODULES.items() if called in names), None)
    return put_together(tuple(MODULES) if owner is None else ("report", owner))


@cache
def put_together(modules: Sequence[str]) -> Program:
    """Put together once: Typer would do it again for each line that is typed in a program."""
    for module in modules:
        import_module(f"holdfast.cli.{module}")
    return get_command(app)
