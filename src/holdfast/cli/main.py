"""The program: reads what was typed, has it done, and answers with words and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

# All else is imported where a Ctrl-C that comes meanwhile is heard.
BROKEN_PIPE = 141
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _run(given)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone: what is still to be written goes nowhere, and nobody is told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(given: list[str]) -> int:
    from holdfast.cli.session import called_command, chosen_store, typed_arguments
    from holdfast.cli.terminal import prepare_streams
    from holdfast.errors import HoldfastError

    prepare_streams()
    from holdfast.cli.commands import load

    chosen_store.set(None)
    called_command.set(None)
    typed_arguments.set(tuple(given))
    json = "--json" in given
    try:
        load(given)(args=given, prog_name="holdfast")
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            raise ended.__context__ from None
        if json:
            _tell_usage(ended.__context__)
        return _code(ended)
    except HoldfastError as error:
        from holdfast.cli.advice import say_error

        return say_error(error, json=json)
    return 0


def _code(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    return ended.code if isinstance(ended.code, int) else 1


def _tell_usage(mistake: Any) -> None:  # noqa: ANN401 - Typer's own
    """What Typer has told the person of what was typed, once more for the program that asked."""
    if not hasattr(mistake, "format_message"):
        return
    from holdfast.cli.terminal import say_json_line

    context = getattr(mistake, "ctx", None)
    called = "holdfast" if context is None else context.command_path
    told = {"code": "usage", "message": mistake.format_message(), "next": f"{called} --help"}
    say_json_line({"error": told})
