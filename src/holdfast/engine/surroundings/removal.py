"""Removes what ended long ago, whole, with all its events, and leaves tombstones.

What is asked of the writer when something has been kept as long as it is to be.

What has been kept as long as it is to be: found page by page, and removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation
from holdfast.engine.core.task_rows import BASE_SIZE, ID_SIZE
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.ids import first_id
from holdfast.store.database import Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal(Operation):
    """Each of the `members` is named with what it is removed with, or stays with."""

    members: tuple[tuple[str, str], ...]
    before: int

    @property
    def keys(self) -> Keys:
        return tuple(member for member, _ in self.members)

    @property
    def size(self) -> int:
        return BASE_SIZE + 2 * ID_SIZE * len(self.members)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveRuns(Removal):
    @property
    def runs(self) -> Keys:
        return tuple(key for key in self.keys if key.startswith("r_"))


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveTasks(Removal):
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoveDeleted(Removal):
    """Of tasks that somebody deleted there is nothing left but their past."""


def remove(work: UnitOfWork, operation: Removal) -> list[str]:
    """Those runs and tasks that are gone now, and with them all that belonged to them.

    Their rows are locked: what the tombstones were made of is what is removed.
    """
    choose = _deleted if isinstance(operation, RemoveDeleted) else _bury
    tops = choose(work, operation)
    gone = [member for member, top in operation.members if top in tops]
    if not gone:
        return []
    tasks = [member for member in gone if member.startswith("t_")]
    if isinstance(operation, RemoveRuns):
        work.tx.run("bury_keys", ids=tasks)
    work.tx.run("remove_events", ids=gone)
    work.tx.run("remove_signals", ids=gone)
    work.tx.run("remove_traces", ids=gone)
    work.tx.run("remove_needs", ids=tasks)
    work.tx.run("remove_tasks", ids=tasks)
    if isinstance(operation, RemoveRuns):
        work.tx.run("remove_runs", ids=sorted(set(operation.runs).intersection(gone)))
    return sorted(tops)


def _bury(work: UnitOfWork, operation: Removal) -> set[str]:
    query = "bury_runs" if isinstance(operation, RemoveRuns) else "bury_tasks"
    buried = work.tx.write(query, rows=operation.members, before=operation.before)
    return {row["entity"] for row in buried}.intersection(top for _, top in operation.members)


def _deleted(work: UnitOfWork, operation: Removal) -> set[str]:
    """Nobody writes of them any more, and no key of theirs was kept."""
    unread = work.tx.read("unread_deleted", ids=operation.keys)
    return set(operation.keys).difference(row["entity"] for row in unread)


RUNS, TASKS, DELETED = "runs", "tasks", "deleted"
# Of runs or trees of tasks, each with all that belongs to it.
PAGE = 100
# How many runs and tasks go in one transaction, unless a single run or tree has more.
MOST = 1_000
# How many trees are looked at together: of a large one all that belongs to it is read.
_LOOK = 10

Members = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    prefix: str
    find: str
    remove: type[Removal]


_KINDS = {
    RUNS: _Kind(prefix="r_", find="ended_runs", remove=RemoveRuns),
    TASKS: _Kind(prefix="t_", find="ended_tasks", remove=RemoveTasks),
    DELETED: _Kind(prefix="t_", find="deleted_tasks", remove=RemoveDeleted),
}
KINDS = tuple(_KINDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much is removed in one transaction: runs or trees of tasks, and members of them."""

    tops: int = PAGE
    members: int = MOST


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What a page had that is gone now, and the id before which the next page begins."""

    gone: tuple[str, ...]
    next: str | None


class Removals:
    """Whole runs with what they called, and tasks without a run with all below them.

    The newest come first: whatever needs a task is gone before that is looked at.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def find(
        self, kind: str, before: int, *, until: str | None = None, count: int = PAGE
    ) -> Members:
        """A page of what ended before a moment: each member, with what it belongs to."""
        chosen = _KINDS[kind]
        last = first_id(chosen.prefix, before) if until is None else until
        rows = self._context.view(
            lambda tx: tx.read(chosen.find, until=last, before=before, count=count)
        )
        return sorted(
            ((row["member"], row["top"]) for row in rows), key=itemgetter(1), reverse=True
        )

    def remove(
        self,
        kind: str,
        before: int,
        *,
        until: str | None = None,
        limits: Limits | None = None,
        knots: bool = False,
    ) -> Removed:
        """Remove a page, but for what somebody waits for or has not read.

        With `knots` also the trees of tasks that can only go together with some of the page.
        """
        members, following = self._page(kind, before, until, limits or Limits())
        if not members:
            return Removed(gone=(), next=None)
        if knots:
            members += self._context.view(lambda tx: _knotted(tx, members, before))
        make = _KINDS[kind].remove
        gone = self._context.submit(make(members=tuple(sorted(members)), before=before)).result()
        return Removed(gone=tuple(gone), next=following)

    def walk(self, kind: str, before: int, limits: Limits | None = None) -> Iterator[Removed]:
        """Remove whatever can go, page by page, until a whole walk finds nothing that can.

        Knots are looked for in what is left then: most trees go once those have that need them.
        """
        fruitful, knots = True, False
        while fruitful or (kind == TASKS and not knots):
            fruitful, knots, until = False, not fruitful, None
            while True:
                page = self.remove(kind, before, until=until, limits=limits, knots=knots)
                fruitful, until = fruitful or bool(page.gone), page.next
                yield page
                if until is None:
                    break

    def _page(
        self, kind: str, before: int, until: str | None, limits: Limits
    ) -> tuple[list[tuple[str, str]], str | None]:
        """What goes in one transaction, and where the next page begins, unless this is the last."""
        chosen: list[tuple[str, str]] = []
        while limits.tops > 0:
            wanted = min(_LOOK, limits.tops)
            trees = _trees(self.find(kind, before, until=until, count=wanted))
            for top, tree in trees:
                if chosen and len(chosen) + len(tree) > limits.members:
                    return chosen, until
                chosen += tree
                until = top
            if len(trees) < wanted:
                return chosen, None
            limits = replace(limits, tops=limits.tops - wanted)
        return chosen, until

    def forget(self, before: int, count: int = MOST) -> int:
        """Forget that something without a key was removed before a moment; of how much."""
        with self._context.database.begin() as connection:
            tx = self._context.database.join(connection)
            return len(tx.write("forget_tombstones", before=before, count=count))


def _knotted(tx: Transaction, page: Members, before: int) -> list[tuple[str, str]]:
    """The trees of later pages that need one of this page, or one of those, and so on.

    The newest tree of a knot finds all of it: what is newer than a page was looked at before.
    """
    newest = max(top for _, top in page)
    known = {top for _, top in page}
    found: list[tuple[str, str]] = []
    members = page
    while members:
        ids = [member for member, _ in members]
        needing = {row["top"] for row in tx.read("trees_needing", ids=ids)}
        older = sorted(top for top in needing - known if top < newest)
        known.update(older)
        rows = tx.read("ended_trees", ids=older, before=before) if older else []
        members = [(row["member"], row["top"]) for row in rows]
        found += members
    return found


def _trees(members: Members) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(top, list(tree)) for top, tree in groupby(members, key=itemgetter(1))]
