"""The program: it reads the arguments, runs the command, and gives text and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence

# All other imports are inside `_run`, where a Ctrl-C during an import is caught.
BROKEN_PIPE = 141
INTERRUPTED = 130
# More objects than a command makes that only reads and prints.
FIRST_COLLECTION = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    given = _move_json(list(sys.argv[1:] if arguments is None else arguments))
    if arguments is None:
        _put_off_collection()
        # At its exit the interpreter collects once more, and would walk past every module that a
        # command has loaded: 9 % of what `holdfast runs` takes.
        atexit.register(gc.freeze)
    try:
        try:
            return _run(given)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has gone: the rest of the output is dropped without an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _put_off_collection() -> None:
    """Let the first garbage collection come later, and all others as usual.

    Modules that a command loads are no garbage, and to look for some among them is 8 % of what
    `holdfast runs` takes.
    """
    usual = gc.get_threshold()

    def collect_as_usual(_phase: str, _info: object) -> None:
        gc.set_threshold(*usual)
        gc.callbacks.remove(collect_as_usual)

    gc.callbacks.append(collect_as_usual)
    gc.set_threshold(FIRST_COLLECTION, *usual[1:])


def _move_json(given: list[str]) -> list[str]:
    """The arguments with a `--json` that stands before the command moved behind it."""
    start = 0
    while start < len(given) and given[start].startswith("-"):
        start += 2 if given[start] == "--db" else 1
    if start >= len(given) or "--json" not in given[:start]:
        return given
    before = [each for each in given[:start] if each != "--json"]
    end = given.index("--") if "--" in given else len(given)
    return [*before, *given[start:end], "--json", *given[end:]]


def _run(given: list[str]) -> int:
    from holdfast.cli.app.session import called_command, chosen_store, typed_arguments
    from holdfast.cli.app.terminal import prepare_streams
    from holdfast.errors import HoldfastError
    from holdfast.stop_signals import stop_between_transactions

    prepare_streams()
    import logging

    from holdfast.cli.app.command_registry import load_command_line
    from holdfast.cli.app.log_output import PlainLogHandler

    # Commands that do not show the log still print its warnings.
    logging.lastResort = PlainLogHandler(logging.WARNING)

    chosen_store.set(None)
    called_command.set(None)
    typed_arguments.set(tuple(given))
    json = "--json" in given
    try:
        with stop_between_transactions():
            command = load_command_line(given)
            ended = command(args=given, prog_name="holdfast", standalone_mode=False)
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):
            raise left.__context__ from None
        ended = left.code
    except HoldfastError as error:
        from holdfast.cli.app.advice import print_error

        return print_error(error, json=json)
    except OSError as error:
        if error.filename is None and not isinstance(error, FileNotFoundError):
            raise
        from holdfast.cli.app.advice import print_error
        from holdfast.errors import StoreUnreachable

        # An error without a file name means that the current folder was deleted.
        where = error.filename or "the current folder"
        told = StoreUnreachable(f"{where} cannot be used: {error.strerror}")
        return print_error(told, json=json)
    except Exception as mistake:
        from holdfast.cli.app.usage_errors import UsageError, print_usage_error

        if not isinstance(mistake, UsageError):
            raise
        return print_usage_error(mistake, json=json)
    return ended if isinstance(ended, int) else int(ended is not None)
