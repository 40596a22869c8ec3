"""Removal: runs and trees of tasks that ended long ago go whole, with all their events.

They are found page by page. A tombstone stays for each.
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

RUNS, TASKS, DELETED = "runs", "tasks", "deleted"
# This many runs or trees of tasks go in one page, each with all that belongs to it.
TOPS_AT_ONCE = 100
# This many runs and tasks go in one transaction, unless a single run or tree has more.
MEMBERS_AT_ONCE = 1_000
# This many trees are read together, because all that belongs to a tree is read with it.
_TREES_AT_ONCE = 10
Members = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal(Operation):
    """Runs and tasks to remove: each of `members` with the top that it goes or stays with."""

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
    """The removal of what is left of deleted tasks: their events."""


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
    """The tops of a page that are gone now, and the id before which the next page begins."""

    gone: tuple[str, ...]
    next: str | None


def remove_runs_and_tasks(work: UnitOfWork, operation: Removal) -> list[str]:
    """Remove runs and tasks with all that belongs to them; the tops that are gone.

    The rows are locked: exactly what the tombstones were made of is removed.
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
    """Choose deleted tasks without an unread event or stored message; no key of theirs is kept."""
    unread = work.tx.read("unread_deleted", ids=operation.keys)
    return set(operation.keys).difference(row["entity"] for row in unread)


class Removals:
    """Removal of whole runs with the runs they called, and of whole trees of tasks without a run.

    The newest go first: the tasks that need a task are gone before that task is looked at.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context = context

    def find(
        self, kind: str, before: int, *, until: str | None = None, count: int = TOPS_AT_ONCE
    ) -> Members:
        """A page of runs or trees that ended before a moment: each member with its top."""
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
        """Remove a page, except what somebody waits for or has not read.

        With `with_dependents` the trees of tasks go too that can only go with trees of the page.
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
        """Remove what can go, page by page, until a pass over all pages removes nothing.

        Dependent trees are looked for only after a pass that removed nothing, because most trees
        can go by themselves once the trees that need them are gone.
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
        """Choose what goes in one transaction; with where the next page begins, if there is one."""
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
        """Forget tombstones without a key from before a moment; how many were forgotten."""
        with self._context.database.begin() as connection:
            tx = self._context.database.join(connection)
            return len(tx.write("forget_tombstones", before=before, count=count))


def _find_dependent_trees(tx: Transaction, page: Members, before: int) -> list[tuple[str, str]]:
    """Find the trees of later pages that need a tree of this page, directly or through others.

    Of trees that need each other the newest finds all: newer trees were looked at before.
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
