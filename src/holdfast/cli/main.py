"""The program: reads what was typed, has it done, and answers with words and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from holdfast.cli.session import called_command, chosen_store
from holdfast.cli.terminal import prepare_streams
from holdfast.errors import HoldfastError

BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    prepare_streams()
    from holdfast.cli.commands import load

    chosen_store.set(None)
    called_command.set(None)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            load(given)(args=given, prog_name="holdfast")
        except SystemExit as ended:
            return _code(ended)
        except HoldfastError as error:
            from holdfast.cli.advice import say_error

            return say_error(error)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone: what is still to be written goes nowhere, and nobody is told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return 0


def _code(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    return ended.code if isinstance(ended.code, int) else 1
