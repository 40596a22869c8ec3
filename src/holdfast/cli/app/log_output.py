"""What Holdfast logs, shown on a terminal: without control characters, beside a live tree."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, TextIO

import typer

from holdfast.cli.app.terminal import escape, print_note

LogJson = Annotated[
    bool,
    typer.Option(
        "--log-json",
        envvar="HOLDFAST_LOG_JSON",
        help="Log as JSON lines, with run, task and attempt.",
    ),
]


class PlainLogHandler(logging.Handler):
    """Writes to whatever the error stream is at that moment: a live tree takes its place."""

    def emit(self, record: logging.LogRecord) -> None:
        print_note(escape(self.format(record), keep="\n\t"))


# What they tell of every call is no news, and may name what nobody should read.
_NOISY_LOGGERS = ("httpcore", "httpx", "mcp", "uvicorn")


class JsonLogHandler(logging.StreamHandler[TextIO]):
    """Writes JSON, which needs no care for a terminal."""

    def __init__(self) -> None:
        from holdfast.logs import JsonLogFormatter

        super().__init__(sys.stderr)
        self.setFormatter(JsonLogFormatter())


def logs_json() -> bool:
    return any(isinstance(each, JsonLogHandler) for each in logging.getLogger().handlers)


def print_announcement(text: str) -> None:
    """Say what a process is about to do: in its log, where that is read by a program."""
    if logs_json():
        logging.getLogger("holdfast.cli").info(text)
    else:
        print_note(text)


def show_logs(level: int, *, json: bool = False) -> None:
    handler: logging.Handler = JsonLogHandler() if json else PlainLogHandler()
    if not json:
        handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
