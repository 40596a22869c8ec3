"""A group commit over a sheet of paper: what is written together, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from holdfast.clock import ManualClock
from holdfast.errors import StoreBusy
from holdfast.settings import Settings
from holdfast.store.database import Transaction
from holdfast.store.group_commit.queue import GroupCommit
from holdfast.store.sql_text.macros import Dialect
from holdfast.threads import SystemThreads

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Note:
    keys: tuple[str, ...]
    number: int = 0
    error: BaseException | None = None
    refusal: BaseException | None = None
    size: int = 1


class Paper:
    """A database of which only this is known: all of a transaction is kept, or nothing."""

    dialect: Dialect = "sqlite"
    file = None

    def __init__(self) -> None:
        self.groups: list[list[Note]] = []
        self.pending: list[Note] = []
        self.patience: list[float | None] = []
        # Whose rows another transaction has.
        self.locked: set[str] = set()
        self.before_commit: Callable[[], None] = lambda: None

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        self.patience.append(patience)
        self.pending = []
        result = work(cast("Transaction", self))
        self.before_commit()
        self.groups.append(self.pending)
        return result

    def view(self, work: Callable[[Transaction], T]) -> T:
        return work(cast("Transaction", self))

    def upgrade(self) -> None:
        raise AssertionError("a group only writes")

    def close(self) -> None:
        raise AssertionError("a group only writes")


@dataclass
class Desk:
    """A group commit over a sheet of paper, and what its hook saw."""

    size: int = 500
    clock: ManualClock = field(default_factory=ManualClock)
    paper: Paper = field(default_factory=Paper)
    seen: list[Sequence[Any]] = field(default_factory=list)
    hook: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        settings = Settings(url="sqlite:///unused.db", group_size=self.size)
        self.group: GroupCommit[Note] = GroupCommit(
            self.paper, self.apply, SystemThreads(), settings, self.clock, on_commit=self.on_commit
        )

    def apply(self, _transaction: Transaction, notes: Sequence[Note]) -> list[object]:
        for note in notes:
            if note.error:
                raise note.error
            if not self.paper.locked.isdisjoint(note.keys):
                raise StoreBusy("somebody has locked a row")
            self.paper.pending.append(note)
        return [note.refusal or note.number for note in notes]

    def on_commit(self, replies: Sequence[Any]) -> None:
        self.seen.append(replies)
        self.hook()

    def submit(self, *notes: Note) -> list[Future[Any]]:
        return self.group.submit_many(notes)

    def step_all(self) -> None:
        while self.group.step():
            pass

    @property
    def numbers(self) -> list[list[int]]:
        return [[note.number for note in group] for group in self.paper.groups]


def notes(*keys: str) -> list[Note]:
    return [Note(keys=(key,), number=number) for number, key in enumerate(keys)]
