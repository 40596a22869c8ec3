"""Errors: every error that Holdfast raises, on one screen.

A refused transition is not an error: it is a `TransitionResult` with a reason.

HoldfastError
├── InvalidInput          what a caller passed cannot be accepted; names the field
│   ├── InvalidNow        the same, because of the present status of something that it names
│   ├── TooMuchKept       an attempt or its run has as many effects and artifacts as it may have
│   └── InvalidDefinition a workflow's graph cannot run; names every mistake
│       └── InvalidFile   the same of a file, each mistake with its position
│           ├── InvalidWorkflowFile  of a workflow file
│           └── InvalidProjectFile   of the settings in holdfast.yaml
├── NotFound              no run or task has that id, no schedule that name
├── KeyConflict           the key exists with other arguments
├── TaskFailed            the awaited task or run ended without a result
├── ShuttingDown          the engine is closed or closing
├── WrongThread           a call that would wait for the very thread it is made in
├── BusUnreachable        Redis does not answer, or refuses
├── GitError              git, or a repository, cannot do what a step needs
│   ├── GitMissing        no git is installed that is new enough
│   ├── GitFailed         a git command failed; has its arguments and what git wrote
│   ├── RepositoryUnusable  a repository that cannot be worked with, and why
│   ├── RepositoryLocked  a lock file that another git made, or left behind
│   ├── BranchMoved       a branch is not where it was expected
│   ├── CheckoutInTheWay  a checkout of a branch holds changes that a move would lose
│   └── WorkspaceUnusable an agent left its worktree so that nothing can be committed
└── StoreError
    ├── StoreGone         the store's file was removed or replaced while it was open
    ├── StoreUnreachable  the database does not answer
    ├── StoreUnwritable   no room, or no leave, to write the database or a file beside it
    ├── UnknownOutcome    a COMMIT whose outcome the database could not tell
    ├── NotTrusted        a home or its settings may be another's; says how to trust it
    ├── SchemaTooNew      the schema was made by a newer Holdfast
    ├── SchemaDamaged     an applied migration is not the one in the code
    └── UnsafeSqlite      this SQLite can corrupt a WAL database
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHOWN_WIDTH = 100
SHOWN_NAMES = 10


class HoldfastError(Exception):
    """The root of every error Holdfast raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle would call the class with the message, but the class takes parts of the message:
        # without this a pool of processes could not read an error that one of them raised.
        return _remake_error, (type(self), self.args), self.__dict__


def _remake_error(kind: type[HoldfastError], args: tuple[object, ...]) -> HoldfastError:
    return kind.__new__(kind, *args)


class InvalidInput(HoldfastError):
    """A caller passed something that cannot be accepted: `field` names it, `reason` says why."""

    def __init__(self, field: str, reason: str) -> None:
        # With `+` a reason that carries advice keeps it.
        super().__init__(f"{field}: " + reason)
        self.field = field
        self.reason = reason


class InvalidNow(InvalidInput):
    """A caller passed something that is refused only because of the present `status` it names."""

    def __init__(self, field: str, reason: str, status: str) -> None:
        super().__init__(field, reason)
        self.status = status


class TooMuchKept(InvalidInput):
    """An attempt, or its run or lone task, has as many effects and artifacts as it may keep."""


class InvalidDefinition(InvalidInput):
    """A workflow's graph, or a function of it, cannot run; `mistakes` has every one of them."""

    def __init__(self, field: str, mistakes: list[str]) -> None:
        super().__init__(field, "; ".join(mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """One mistake in a file: where it is, counted from 1, and the line it is in."""

    line: int
    column: int
    message: str
    hint: str = ""
    source: str = ""

    def told(self) -> dict[str, int | str]:
        """The mistake for programs: its position, its message, and its hint, which may be empty."""
        position: dict[str, int | str] = {"line": self.line, "column": self.column}
        return position | {"message": self.message, "hint": self.hint}

    def shown(self, name: str) -> str:
        """The mistake for people: position, message, the line with a caret under it, and hint."""
        long = len(self.source) > SHOWN_WIDTH
        start = max(0, self.column - 1 - SHOWN_WIDTH // 2) if long else 0
        line = self.source[start : start + SHOWN_WIDTH]
        plain = "".join(each if each.isprintable() else " " for each in line)
        caret = " " * (self.column - 1 - start) + "^"
        pointed = f"\n    {plain}\n    {caret}" if plain.strip() else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{name}:{self.line}:{self.column}: {self.message}{pointed}{hint}"


class InvalidFile(InvalidDefinition):
    """A file cannot be used; `found` has every mistake, each with its position."""

    def __init__(self, name: str, found: Sequence[Mistake]) -> None:
        hints = [f"; {each.hint}" if each.hint else "" for each in found]
        super().__init__(
            name,
            [
                f"{each.line}:{each.column}: {each.message}{hint}"
                for each, hint in zip(found, hints, strict=True)
            ],
        )
        self.found = tuple(found)

    def __str__(self) -> str:
        return "\n\n".join(each.shown(self.field) for each in self.found)


class InvalidWorkflowFile(InvalidFile):
    """A workflow file cannot be used; `found` has every mistake, each with its position."""


class InvalidProjectFile(InvalidFile):
    """The settings of a project, in `holdfast.yaml`, cannot be used; `found` has every mistake."""


class NotFound(HoldfastError):
    """No run or task has that `identifier`, no schedule that name."""

    def __init__(
        self, identifier: str, kind: str = "run or task", hint: str = "", *, yet: bool = False
    ) -> None:
        more = "; " + hint if hint else ""
        where = "yet" if yet else "in this store"
        super().__init__(f"{identifier}: there is no such {kind} {where}" + more)
        self.identifier = identifier


class KeyConflict(HoldfastError):
    """The key belongs to another task or run already; `existing` is the id of that one.

    `differing` names the arguments that differ, as far as they are known.
    """

    def __init__(
        self,
        key: str,
        existing: str,
        reason: str | None = None,
        *,
        kind: str = "key",
        differing: tuple[str, ...] = (),
    ) -> None:
        told = reason or _describe_differing(differing)
        super().__init__(f"{kind} {key!r} already belongs to {existing}, " + told)
        self.key = key
        self.existing = existing
        self.differing = differing


def _describe_differing(names: tuple[str, ...]) -> str:
    plural = "arguments differ" if len(names) > 1 else "argument differs"
    what = f"whose {plural}: {', '.join(names)}" if names else "which has other arguments"
    return f"{what}; use another key, or send the same arguments to get the existing one"


class TaskFailed(HoldfastError):
    """The awaited task or run ended without a result; `step` is where it failed, if known."""

    def __init__(
        self, identifier: str, status: str, error: object, step: str | None = None
    ) -> None:
        where = "" if step is None else f" at step {step!r}"
        why = "" if error is None else f": {describe_error(error)}"
        super().__init__(f"{identifier} ended {status}{where}{why}")
        self.identifier = identifier
        self.status = status
        self.error = error
        self.step = step


def summarize_error(error: object) -> str:
    """The error of an attempt in one line: its type and the first line of its message."""
    return describe_error(error).partition("\n")[0]


def describe_error(error: object) -> str:
    """The error of an attempt: its type and its message, or the last feedback of its verifier."""
    match error:
        case {"type": kind, "message": message} | {"code": kind, "message": message}:
            return f"{kind}: {message}" if message else str(kind)
        case {"reason": reason, "comments": [*comments]}:
            said = [] if reason is None else [_to_text(reason)]
            return "\n".join([*said, *map(_describe_comment, comments)])
        case {"rounds": int(rounds), "feedback": feedback}:
            times = "time" if rounds == 1 else "times"
            return f"rejected {rounds} {times}, last: {_to_text(feedback)}"
        case _:
            return _to_text(error)


def read_traceback(error: object) -> list[str]:
    """The lines of the traceback of a function's error; none for other errors."""
    match error:
        # A single line only repeats the error.
        case {"traceback": [_, _, *_] as lines}:
            return [str(line) for line in lines]
        case _:
            return []


def _describe_comment(comment: object) -> str:
    match comment:
        case {"file": file, "line": line, "text": text}:
            return f"{file}:{line}: {text}"
        case {"file": file, "text": text}:
            return f"{file}: {text}"
        case _:
            return _to_text(comment)


def _to_text(value: object) -> str:
    """Text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


class ShuttingDown(HoldfastError):
    """The Holdfast is closed, or is being closed."""


class WrongThread(HoldfastError):
    """A call that would wait for the very thread it is made in."""


class BusUnreachable(HoldfastError):
    """The bus does not answer; a published message may or may not be there: publish it again."""


class GitError(HoldfastError):
    """Git, or a repository, cannot do what a step needs."""


class GitMissing(GitError):
    """No git is installed here, or none that is new enough."""


class GitFailed(GitError):
    """A git command failed: `code` is None where it did not end by itself."""

    def __init__(
        self, arguments: Sequence[str], folder: str, code: int | None, reason: str
    ) -> None:
        what = " ".join(arguments[:2])
        super().__init__(f"git {what} in {folder} failed: {reason or f'it ended with {code}'}")
        self.arguments = tuple(arguments)
        self.code = code
        self.reason = reason


class RepositoryUnusable(GitError):
    """A repository, or a name in it, cannot be worked with."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.path = str(path)


class RepositoryLocked(GitError):
    """A lock file that another git made, and holds or left behind."""

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path} exists: another git works there, or was killed there; wait for its end, or "
            "remove the file if no git runs, and ask again"
        )
        self.path = str(path)


class BranchMoved(GitError):
    """A branch is not at the commit where it was expected; `found` is None if it is gone."""

    def __init__(self, branch: str, expected: str | None, found: str | None) -> None:
        where = f"is at {found[:12]}" if found else "does not exist"
        wanted = f"at {expected[:12]}" if expected else "not yet there"
        super().__init__(f"{branch} {where}, and was expected {wanted}; look at it and ask again")
        self.branch = branch
        self.expected = expected
        self.found = found


class CheckoutInTheWay(GitError):
    """The checkout of a branch holds what a move of the branch would overwrite: `files`."""

    def __init__(self, checkout: object, branch: str, reason: str, files: Sequence[str]) -> None:
        more = len(files) - SHOWN_NAMES
        shown = ", ".join(files[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
        named = f": {shown}" if files else ""
        super().__init__(
            f"{branch} is checked out in {checkout}, {reason}{named}; commit, move or remove them "
            "there, and ask again"
        )
        self.checkout = str(checkout)
        self.branch = branch
        self.files = tuple(files)


class WorkspaceUnusable(GitError):
    """An agent left its worktree so that nothing can be committed."""

    def __init__(self, worktree: object, reason: str) -> None:
        super().__init__(f"{worktree}: {reason}")
        self.worktree = str(worktree)


class StoreError(HoldfastError):
    """The database refused, or cannot be used."""


class StoreGone(StoreError):
    """The file of a SQLite store was removed or replaced while it was open; open it anew.

    Nothing more is acknowledged. `saved` is a file with all the data, None where no file could be
    written.
    """

    def __init__(self, message: str, /, *, saved: Path | None = None) -> None:
        super().__init__(message)
        self.saved = saved


class StoreUnreachable(StoreError):
    """The database does not answer; the operation has not happened."""


class StoreBusy(StoreUnreachable):
    """Other transactions held the database for longer than a caller waits; ask again."""


class StoreUnwritable(StoreError):
    """The database, or a file beside it, cannot be written; the operation has not happened."""

    def __init__(self, path: object, reason: object) -> None:
        super().__init__(f"{path} cannot be written: {reason}; make room there, and ask again")


class UnknownOutcome(StoreError):
    """A commit whose outcome the database could not tell: look before you ask again."""


class NotTrusted(StoreError):
    """A home, or the settings of a project, that this user neither made here nor trusts."""


class SchemaTooNew(StoreError):
    """The schema was made by a newer Holdfast."""


class SchemaDamaged(StoreError):
    """An applied migration is not the one in the code."""


class UnsafeSqlite(StoreError):
    """The SQLite in use can corrupt a WAL database."""
