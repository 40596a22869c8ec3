"""Lines of commits: the heads that a line has had, and what attempts leave beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from holdfast.errors import InvalidInput
from holdfast.model.result import TransitionResult
from holdfast.model.text import clean_text

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest commit of a line; `number` counts the heads before it, and is 0 for the base."""

    line: str
    number: int
    sha: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NewHead:
    """A commit that becomes the head of a line: it descends from the head of this `number`.

    `base` is the commit that the attempt began at.
    """

    line: str
    number: int
    base: str
    sha: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A commit beside the line: of work in progress, or of what an attempt left."""

    base: str
    sha: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LineState:
    """The line that an attempt works on, and the commits that it may begin at.

    The line begins at `base` and is at `head`. `draft` is what an earlier attempt of the task gave
    back, `subject` the commit that the attempt judges, `around` the head of the line around the
    items of a loop, which begins at `around_base`. `host` is the machine that has the repository,
    or None for a URL.
    """

    id: str
    run_id: str
    base: str
    head: str
    number: int
    branch: str
    repository: str | None
    host: str | None
    draft: Draft | None = None
    subject: str | None = None
    around: Head | None = None
    around_base: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedLine:
    """The answer to an attempt that opens its line; without a `line` the line needs a base."""

    answer: TransitionResult
    line: LineState | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HostLine:
    """The line of a run in a repository of a host, whose branch follows its head.

    A run that has ended has `ended_at`; its worktrees are kept for `keep` seconds.
    """

    run_id: str
    repository: str
    branch: str
    base: str
    head: str
    number: int
    keep: float
    ended_at: datetime | None = None


def is_sha(value: object) -> bool:
    """Whether a value is the whole id of a commit."""
    return isinstance(value, str) and _SHA.fullmatch(value) is not None


def clean_sha(field: str, value: object) -> str:
    text = clean_text(field, value)
    if not is_sha(text):
        raise InvalidInput(field, f"{text[:40]!r} is no id of a commit: 40 or 64 hex digits")
    return text
