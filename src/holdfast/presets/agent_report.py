"""Agent report: what the stream of an agent's command line has said so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.presets.reset_times import find_reset

MOST_UNKNOWN = 20
LONGEST_LINE = 2_000
LONGEST_SHOWN = 200


@dataclass(kw_only=True, slots=True)
class AgentUsage:
    """The tokens and dollars that a stream tells of; `cached_tokens` are part of `input_tokens`."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None

    def add(self, other: AgentUsage) -> None:
        self.input_tokens += other.input_tokens
        self.cached_tokens += other.cached_tokens
        self.output_tokens += other.output_tokens
        if other.usd is not None:
            self.usd = (self.usd or 0.0) + other.usd

    @property
    def empty(self) -> bool:
        return not (self.input_tokens or self.output_tokens or self.usd)


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageLimit:
    """A usage limit that an agent has met, and when it lifts, as far as its stream says so.

    `at` without a time zone is in the zone of the machine that the agent ran on.
    """

    message: str
    at: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Denial:
    """A tool that the agent was not allowed to use, with what it was to do."""

    tool: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.tool} ({self.about})" if self.about else self.tool


@dataclass(kw_only=True, slots=True)
class AgentReport:
    """What one run of an agent has said.

    - `text`: the last thing that the agent said; `result`: its answer, once the run has ended
    - `session`: the name by which the client continues this conversation
    - `usage`: what was used; clients with `totals_go_on` count the earlier runs of the session too
    - `error`: why the run went wrong, and `login` whether that is a login or key that is missing
    - `unknown`: the last lines that the reader could not read
    """

    text: str = ""
    result: str | None = None
    session: str | None = None
    usage: AgentUsage = field(default_factory=AgentUsage)
    denials: list[Denial] = field(default_factory=list)
    limit: UsageLimit | None = None
    error: str | None = None
    login: bool = False
    questions: list[str] = field(default_factory=list)
    progress: str = ""
    ended: bool = False
    unknown: list[str] = field(default_factory=list)
    unknown_count: int = 0

    @property
    def answer(self) -> str:
        """The result, or else the last thing that the agent said."""
        return self.text if self.result is None else self.result

    def say(self, text: object) -> None:
        """Note what the agent said."""
        if isinstance(text, str) and text.strip():
            self.text = text
            self.show(text.strip().splitlines()[-1])

    def use_tool(self, name: object, given: object) -> None:
        """Note that the agent uses a tool."""
        if isinstance(name, str) and name:
            about = describe_tool_input(given)
            self.show(f"{name}: {about}" if about else name)

    def show(self, line: str) -> None:
        self.progress = line.strip()[:LONGEST_SHOWN]

    def deny(self, tool: object, given: object = None) -> None:
        denial = Denial(tool=str(tool or "a tool"), about=describe_tool_input(given))
        same = [each for each in self.denials if each.tool == denial.tool]
        if any(each.about == denial.about or not denial.about for each in same):
            return
        self.denials = [each for each in self.denials if each not in same or each.about]
        self.denials.append(denial)

    def fail(self, message: object, *, login: bool = False) -> None:
        if isinstance(message, str) and message.strip():
            self.error = message.strip()
        self.login = self.login or login

    def meet_limit(
        self, message: object, *, at: datetime | None = None, seconds: float | None = None
    ) -> None:
        """Note a usage limit; a time that was told before is kept."""
        said = message.strip() if isinstance(message, str) else ""
        if at is None and seconds is None:
            at, seconds = find_reset(said)
        before = self.limit
        if before is not None and at is None and seconds is None:
            at, seconds = before.at, before.seconds
        told = said or (before.message if before else "its usage limit is reached")
        self.limit = UsageLimit(message=told, at=at, seconds=seconds)

    def keep_unknown(self, line: str) -> None:
        self.unknown_count += 1
        self.unknown = [*self.unknown[1 - MOST_UNKNOWN :], line[:LONGEST_LINE]]


# What tells most of a tool's input, the first that is there.
_TELLING = ("command", "file_path", "filePath", "path", "pattern", "query", "url", "description")


def describe_tool_input(given: object) -> str:
    if isinstance(given, str):
        return _first_line(given)
    if not isinstance(given, Mapping):
        return ""
    return next((_first_line(said) for key in _TELLING if (said := given.get(key))), "")


def _first_line(said: Any) -> str:  # noqa: ANN401 - JSON is any value
    lines = str(said).strip().splitlines()
    return lines[0][:LONGEST_SHOWN] if lines else ""
