"""All commands: which module has each, so that one command does not load the others."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

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
    "workflows": ("workflow",),
    "schedules": ("schedule", "lease"),
    "buses": ("bus",),
}


def load(arguments: Sequence[str]) -> typer.Typer:
    """The program with the command that is called, or with all of them for help and completion."""
    called = arguments[0] if arguments else ""
    owner = next((module for module, names in MODULES.items() if called in names), None)
    for module in MODULES if owner is None else ("report", owner):
        import_module(f"holdfast.cli.{module}")
    return app
