"""Log records on the error stream: text without control characters, or lines of JSON."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, TextIO

import typer

from holdfast.cli.app.terminal import escape, print_note

# These loggers report each call, and their lines may hold secrets.
_NOISY_LOGGERS = ("httpcore", "httpx", "mcp", "uvicorn")
LogJson = Annotated[
    bool,
    typer.Option(
        "--log-json",
        envvar="HOLDFAST_LOG_JSON",
        help="Log as JSON lines, with run, task and attempt.",
    ),
]


class PlainLogHandler(logging.Handler):
    """Writes to the current `sys.stderr`, which a live tree replaces while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print_note(escape(self.format(record), keep="\n\t"))
        except Exception:  # noqa: BLE001 - a record that cannot be shown fails no caller
            self.handleError(record)


class JsonLogHandler(logging.StreamHandler[TextIO]):
    """Writes JSON lines, in which control characters are escaped."""

    def __init__(self) -> None:
        from holdfast.logs import JsonLogFormatter

        super().__init__(sys.stderr)
        self.setFormatter(JsonLogFormatter())


def logs_json() -> bool:
    return any(isinstance(each, JsonLogHandler) for each in logging.getLogger().handlers)


def print_announcement(text: str) -> None:
    """Print a line about the process, or log it where the log is JSON for a program."""
    if logs_json():
        logging.getLogger("holdfast.cli").info(text)
    else:
        print_note(text)


def show_logs(level: int, *, json: bool = False) -> None:
    handler: logging.Handler = JsonLogHandler() if json else PlainLogHandler()
    if not json:
        handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", datefmt="%H:%M:%S"))
    handler.setLevel(level)
    # The logs of attempts have the records of steps from INFO on, also where fewer are shown here.
    logging.basicConfig(level=min(level, logging.INFO), handlers=[handler], force=True)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
