"""Every error Holdfast raises, on one screen.

A refused transition is not an error: it is a `TransitionResult` with a reason.

HoldfastError
├── InvalidInput          what a caller passed cannot be accepted; names the field
│   └── InvalidDefinition a workflow's graph cannot run; names every mistake
│       └── InvalidWorkflowFile  the same of a file, each mistake with its place
├── NotFound              no run or task has that id, no schedule that name
├── KeyConflict           the key exists with another body
├── TaskFailed            the awaited task or run ended without a result
├── ShuttingDown          the engine is closed or closing
├── WrongThread           a call that would wait for the very thread it is made in
└── StoreError
    ├── StoreUnreachable  the database does not answer
    ├── UnknownOutcome    a COMMIT whose fate the database could not tell
    ├── SchemaTooNew      the schema was made by a newer Holdfast
    ├── SchemaDamaged     an applied migration is not the one in the code
    └── UnsafeSqlite      this SQLite can corrupt a WAL database
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN_WIDTH = 100


class HoldfastError(Exception):
    """The root of every error Holdfast raises on purpose."""


class InvalidInput(HoldfastError):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidDefinition(InvalidInput):
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

    def shown(self, name: str) -> str:
        """For people: the place, what is wrong, the line with a caret under it, and the hint."""
        long = len(self.source) > SHOWN_WIDTH
        start = max(0, self.column - 1 - SHOWN_WIDTH // 2) if long else 0
        line = self.source[start : start + SHOWN_WIDTH]
        plain = "".join(each if each.isprintable() else " " for each in line)
        caret = " " * (self.column - 1 - start) + "^"
        pointed = f"\n    {plain}\n    {caret}" if plain.strip() else ""
        hint = f"\n    {self.hint}" if self.hint else ""
        return f"{name}:{self.line}:{self.column}: {self.message}{pointed}{hint}"


class InvalidWorkflowFile(InvalidDefinition):
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


class NotFound(HoldfastError):
    def __init__(self, identifier: str, kind: str = "run or task", hint: str = "") -> None:
        more = f"; {hint}" if hint else ""
        super().__init__(f"{identifier}: there is no such {kind} in this store{more}")
        self.identifier = identifier


class KeyConflict(HoldfastError):
    def __init__(self, key: str, existing: str) -> None:
        super().__init__(
            f"key {key!r} already belongs to {existing}, which was made from another body; "
            "use another key, or send the same body to get the existing one"
        )
        self.key = key
        self.existing = existing


class TaskFailed(HoldfastError):
    def __init__(
        self, identifier: str, status: str, error: object, step: str | None = None
    ) -> None:
        where = "" if step is None else f" at step {step!r}"
        why = "" if error is None else f": {in_words(error)}"
        super().__init__(f"{identifier} ended {status}{where}{why}")
        self.identifier = identifier
        self.status = status
        self.error = error
        self.step = step


def tell_error(error: object) -> str:
    """The error of an attempt in one line: its type and the first line of its message."""
    return in_words(error).partition("\n")[0]


def in_words(error: object) -> str:
    """The error of an attempt: its type and its message, or the last word of its verifier."""
    match error:
        case {"type": kind, "message": message}:
            return f"{kind}: {message}" if message else str(kind)
        case {"rounds": int(rounds), "feedback": feedback}:
            return f"rejected {rounds} {'time' if rounds == 1 else 'times'}, last: {feedback}"
        case _:
            return str(error)


class ShuttingDown(HoldfastError):
    pass


class WrongThread(HoldfastError):
    pass


class StoreError(HoldfastError):
    pass


class StoreUnreachable(StoreError):
    pass


class StoreBusy(StoreUnreachable):
    pass


class UnknownOutcome(StoreError):
    pass


class SchemaTooNew(StoreError):
    pass


class SchemaDamaged(StoreError):
    pass


class UnsafeSqlite(StoreError):
    pass
