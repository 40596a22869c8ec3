"""What has been kept as long as it is to be: found page by page, and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.engine.desk import Desk
from holdfast.engine.removal_operations import Removal, RemoveRuns, RemoveTasks
from holdfast.ids import first_id

RUNS, TASKS = "r_", "t_"
# Of runs or trees of tasks, each with all that belongs to it.
PAGE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """What a page had that is gone now, and the id after which the next page begins."""

    gone: tuple[str, ...]
    next: str | None


class Removals:
    """Whole runs with what they called, and tasks without a run with all below them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def find(
        self, kind: str, before: int, *, after: str = "", count: int = PAGE
    ) -> Sequence[tuple[str, str]]:
        """A page of what ended before a moment: each member, with what it belongs to."""
        query = "ended_runs" if kind == RUNS else "ended_tasks"
        rows = self._desk.view(
            lambda tx: tx.read(
                query, after=after, until=first_id(kind, before), before=before, count=count
            )
        )
        return [(row["member"], row["top"]) for row in rows]

    def remove(self, kind: str, before: int, *, after: str = "", count: int = PAGE) -> Removed:
        """Remove a page, but for what somebody waits for or has not read."""
        members = tuple(sorted(self.find(kind, before, after=after, count=count)))
        tops = sorted({top for _, top in members})
        if not tops:
            return Removed(gone=(), next=None)
        make: type[Removal] = RemoveRuns if kind == RUNS else RemoveTasks
        gone = self._desk.submit(make(members=members, before=before)).result()
        return Removed(gone=tuple(gone), next=tops[-1] if len(tops) == count else None)
