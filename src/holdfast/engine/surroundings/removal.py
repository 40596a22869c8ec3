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
class RemoveDeletedTasks(Removal):
    """Of tasks that somebody deleted there is nothing left but their past."""


def remove_runs_and_tasks(work: UnitOfWork, operation: Removal) -> list[str]:
    """Those runs and tasks that are gone now, and with them all that belonged to them.

    Their rows are locked: what the tombstones were made of is what is removed.
    """
    choose = _choose_deleted if isinstance(operation, RemoveDeletedTasks) else _bury_ended
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


def _bury_ended(work: UnitOfWork, operation: Removal) -> set[str]:
    query = "bury_runs" if isinstance(operation, RemoveRuns) else "bury_tasks"
    buried = work.tx.write(query, rows=operation.members, before=operation.before)
    return {row["entity"] for row in buried}.intersection(top for _, top in operation.members)


def _choose_deleted(work: UnitOfWork, operation: Removal) -> set[str]:
    """Nobody writes of them any more, and no key of theirs was kept."""
    unread = work.tx.read("unread_deleted", ids=operation.keys)
    return set(operation.keys).difference(row["entity"] for row in unread)


RUNS, TASKS, DELETED = "runs", "tasks", "deleted"
# Of runs or trees of tasks, each with all that belongs to it.
TOPS_AT_ONCE = 100
# How many runs and tasks go in one transaction, unless a single run or tree has more.
MEMBERS_AT_ONCE = 1_000
# How many trees are looked at together: of a large one all that belongs to it is read.
_TREES_AT_ONCE = 10

Members = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _RemovalKind:
    prefix: str
    find: str
    remove: type[Removal]


_REMOVAL_KINDS = {
    RUNS: _RemovalKind(prefix="r_", find="ended_runs", remove=RemoveRuns),
    TASKS: _RemovalKind(prefix="t_", find="ended_tasks", remove=RemoveTasks),
    DELETED: _RemovalKind(prefix="t_", find="deleted_tasks", remove=RemoveDeletedTasks),
}
KINDS = tuple(_REMOVAL_KINDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovalLimits:
    """How much is removed in one transaction: runs or trees of tasks, and members of them."""

    tops: int = TOPS_AT_ONCE
    members: int = MEMBERS_AT_ONCE


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovedPage:
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
        self, kind: str, before: int, *, until: str | None = None, count: int = TOPS_AT_ONCE
    ) -> Members:
        """A page of what ended before a moment: each member, with what it belongs to."""
        chosen = _REMOVAL_KINDS[kind]
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
        limits: RemovalLimits | None = None,
        with_dependents: bool = False,
    ) -> RemovedPage:
        """Remove a page, but for what somebody waits for or has not read.

        With `knots` also the trees of tasks that can only go together with some of the page.
        """
        members, following = self._choose_page(kind, before, until, limits or RemovalLimits())
        if not members:
            return RemovedPage(gone=(), next=None)
        if with_dependents:
            members += self._context.view(lambda tx: _find_dependent_trees(tx, members, before))
        make = _REMOVAL_KINDS[kind].remove
        gone = self._context.submit(make(members=tuple(sorted(members)), before=before)).result()
        return RemovedPage(gone=tuple(gone), next=following)

    def remove_all(
        self, kind: str, before: int, limits: RemovalLimits | None = None
    ) -> Iterator[RemovedPage]:
        """Remove whatever can go, page by page, until a whole walk finds nothing that can.

        Knots are looked for in what is left then: most trees go once those have that need them.
        """
        removed_any, with_dependents = True, False
        while removed_any or (kind == TASKS and not with_dependents):
            removed_any, with_dependents, until = False, not removed_any, None
            while True:
                page = self.remove(
                    kind, before, until=until, limits=limits, with_dependents=with_dependents
                )
                removed_any, until = removed_any or bool(page.gone), page.next
                yield page
                if until is None:
                    break

    def _choose_page(
        self, kind: str, before: int, until: str | None, limits: RemovalLimits
    ) -> tuple[list[tuple[str, str]], str | None]:
        """What goes in one transaction, and where the next page begins, unless this is the last."""
        chosen: list[tuple[str, str]] = []
        while limits.tops > 0:
            wanted = min(_TREES_AT_ONCE, limits.tops)
            trees = _group_by_top(self.find(kind, before, until=until, count=wanted))
            for top, tree in trees:
                if chosen and len(chosen) + len(tree) > limits.members:
                    return chosen, until
                chosen += tree
                until = top
            if len(trees) < wanted:
                return chosen, None
            limits = replace(limits, tops=limits.tops - wanted)
        return chosen, until

    def forget_tombstones(self, before: int, count: int = MEMBERS_AT_ONCE) -> int:
        """Forget that something without a key was removed before a moment; of how much."""
        with self._context.database.begin() as connection:
            tx = self._context.database.join(connection)
            return len(tx.write("forget_tombstones", before=before, count=count))


def _find_dependent_trees(tx: Transaction, page: Members, before: int) -> list[tuple[str, str]]:
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


def _group_by_top(members: Members) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(top, list(tree)) for top, tree in groupby(members, key=itemgetter(1))]
