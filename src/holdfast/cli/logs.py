"""What Holdfast logs, shown on a terminal: without control characters, beside a live tree."""

from __future__ import annotations

import logging

from holdfast.cli.terminal import escape, note


class Plain(logging.Handler):
    """Writes to whatever the error stream is at that moment: a live tree takes its place."""

    def emit(self, record: logging.LogRecord) -> None:
        note(escape(self.format(record), keep="\n\t"))


# What they tell of every call is no news, and may name what nobody should read.
_LOUD = ("httpx", "httpcore", "mcp", "uvicorn")


def show_logs(level: int) -> None:
    handler = Plain()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", datefmt="%H:%M:%S"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _LOUD:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
