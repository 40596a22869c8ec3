"""What an import made of each row, what it left out, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A row of the older file and what stands for it here; `id` is None once that was deleted."""

    old: str
    was: str
    id: str | None
    became: str
    created: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """Something about one row that its owner has to know."""

    old: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportReport:
    """`moved` is what is here now, `left_out` what is not, `remarks` what to look at by hand."""

    moved: tuple[Moved, ...]
    left_out: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def created(self) -> int:
        """How many rows this import made; those that were here before it left alone."""
        return sum(each.created for each in self.moved)

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """How many rows of each status there have which state here."""
        return dict(sorted(Counter((each.was, each.became) for each in self.moved).items()))

    def __str__(self) -> str:
        lines = [f"{self.created} made, {len(self.moved) - self.created} here before"]
        lines += [f"  {was} → {became}: {n}" for (was, became), n in self.counts.items()]
        lines += [f"left out: {each.old}: {each.reason}" for each in self.left_out]
        lines += [f"see {each.old}: {each.reason}" for each in self.remarks]
        return "\n".join(lines)
