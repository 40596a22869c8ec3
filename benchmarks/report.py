"""Rates as a table: medians, and how far the pairs lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.scenarios import Pair

PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"
_HEADINGS = ("what", "database", "Holdfast", "beside it", "ratio", "spread of the ratio")
_INTRODUCTION = """\
<!-- Made by `python -m benchmarks --write`; run it again, do not edit this page. -->

# Benchmarks

What group commit costs beside hand-written SQL that writes the same rows, in the same batches,
with the same durability, into the same schema: the task row, each status with its version and
fence, one event for each transition, the run. Both sides are one process; the two of a pair are
taken one right after the other, in either order by turns, and the ratio is the median of the pairs'
ratios. Rates are per second and belong to the machine; the ratios are what to compare. After the
first pair both stores are looked at: the same rows, the same events, no invariant broken.

A pipeline alone is one at a time, call by call: a start, then a claim and a report for each step,
each a commit of its own. Beside it stands the smallest commit, one row and its event, as often.
"""


@dataclass(frozen=True, kw_only=True)
class Line:
    what: str
    database: str
    pairs: list[Pair]

    @property
    def cells(self) -> tuple[str, ...]:
        ratios = [pair.ratio for pair in self.pairs]
        return (
            self.what,
            self.database,
            f"{median(pair.subject for pair in self.pairs):,.0f}",
            f"{median(pair.reference for pair in self.pairs):,.0f}",
            f"{median(ratios):.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        )


def draw(lines: Sequence[Line]) -> str:
    rows = [_HEADINGS, *(line.cells for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (rows[0], rule, *rows[1:])
    )


def page(lines: Sequence[Line], facts: Mapping[str, str], command: str) -> str:
    machine = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return f"{_INTRODUCTION}\n```\n{command}\n```\n\n{draw(lines)}\n\n## The machine\n\n{machine}\n"
