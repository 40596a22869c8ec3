"""The command `trust`, in a module of its own: each command loads only its own module."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app.command_registry import command
from holdfast.cli.app.options import Json
from holdfast.cli.app.terminal import escape, paint, print_json, print_line

_TRACKED = {True: "git tracks it", False: "git does not track it", None: "git cannot be asked"}


@command("trust", example="holdfast trust .")
def trust(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A .holdfast, a holdfast.yaml, a store, or their folder."
        ),
    ],
    json: Json = False,
) -> None:
    """Trust a .holdfast or holdfast.yaml that you did not make."""
    from holdfast.service.admin.trust import trust_path

    told = trust_path(path)
    if json:
        print_json(told)
        return
    for each in told["items"]:
        open_to = ", others may write to it" if each["writable"] else ""
        about = f"belongs to {each['owner']}, {_TRACKED[each['tracked']]}{open_to}"
        print_line(f"{paint('✓', 'green')} {escape(each['path'])}: {escape(about)}")
    print_line("Whoever writes there has commands run in your name.")
