"""Reports of imports: the public result of an import, apart from the modules that make it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A row of the older file and its task or run here; `id` is None once that was deleted."""

    old: str
    was: str
    id: str | None
    became: str
    created: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """A remark about one row for the owner of the file."""

    old: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """The rows that are here now, the rows that were left out, and remarks to look at by hand."""

    moved: tuple[Moved, ...]
    left_out: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def created(self) -> int:
        """The number of rows that this import made; it left rows alone that were here before."""
        return sum(each.created for each in self.moved)

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """The number of rows by their old status and their state here."""
        return dict(sorted(Counter((each.was, each.became) for each in self.moved).items()))

    def told(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "created": self.created,
            "moved": [asdict(each) for each in self.moved],
            "left_out": [asdict(each) for each in self.left_out],
            "remarks": [asdict(each) for each in self.remarks],
        }

    def __str__(self) -> str:
        lines = [f"{self.created} made, {len(self.moved) - self.created} here before"]
        lines += [f"  {was} → {became}: {n}" for (was, became), n in self.counts.items()]
        lines += [f"left out: {each.old}: {each.reason}" for each in self.left_out]
        lines += [f"see {each.old}: {each.reason}" for each in self.remarks]
        return "\n".join(lines)
