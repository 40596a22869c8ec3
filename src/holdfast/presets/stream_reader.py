"""Stream reader: the output of an agent's command line, read line by line into an agent report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.presets.agent_report import AgentReport, AgentUsage

# A longer line is kept as unknown, cut off, so that memory stays bounded.
LONGEST_STREAM_LINE = 32 * 1024 * 1024
MOST_TEXT_LINES = 2_000

Event = Mapping[str, Any]


class UnreadableLine(Exception):
    """The line is none that the client is known to write."""


class StreamReader:
    """Reads a stream in pieces of any size; what it cannot read is kept, and ends nothing."""

    def __init__(self) -> None:
        self.report = AgentReport()
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > LONGEST_STREAM_LINE:
                self.end()
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            self._take(line)

    def end(self) -> None:
        """Read the last line, which may have been cut off."""
        line, self._rest = bytes(self._rest), bytearray()
        if line:
            self._take(line)

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        try:
            self.read_line(text)
        # A line may have any form, and a client that is newer than its reader writes new ones.
        except (UnreadableLine, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.report.keep_unknown(text)

    def read_line(self, line: str) -> None:
        raise NotImplementedError


class JsonReader(StreamReader):
    """Reads a stream of JSON objects, one in each line."""

    def read_line(self, line: str) -> None:
        if not line.strip():
            return
        event = json.loads(line)
        if not isinstance(event, dict):
            raise UnreadableLine
        self.read_event(event)

    def read_event(self, event: Event) -> None:
        raise NotImplementedError


class TextReader(StreamReader):
    """Reads plain text: all of it is the answer."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []

    def read_line(self, line: str) -> None:
        self._said = [*self._said[-MOST_TEXT_LINES:], line]
        self.report.text = "\n".join(self._said).strip()
        if line.strip():
            self.report.show(line)


def as_mapping(value: object) -> Event:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: object) -> int:
    """A number of tokens; anything else counts as none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, int(value)) if value == value else 0  # noqa: PLR0124 - NaN


def as_dollars(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:  # noqa: PLR2004
        return None
    return float(value)


def read_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def make_usage(
    *, fresh: object = 0, cached: object = 0, written: object = 0, usd: object = None
) -> AgentUsage:
    """The usage of counts: what the model read afresh and from a cache, and what it wrote."""
    return AgentUsage(
        input_tokens=as_count(fresh) + as_count(cached),
        cached_tokens=as_count(cached),
        output_tokens=as_count(written),
        usd=as_dollars(usd),
    )
