"""Rates as a table: medians, and how far the pairs lie apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.scenarios import Pair
from benchmarks.waiting import Figure

_SECTION = re.compile(r"<!-- section (\w+) -->.*?<!-- end of \1 -->", re.DOTALL)
PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"
_FIGURES = ("what", "database", "measured", "beside it")
_HEADINGS = ("what", "database", "Holdfast", "beside it", "ratio", "spread of the ratio")
_INTRODUCTION = """\
<!-- Made by `python -m benchmarks --write`; run it again, do not edit this page. -->

# Benchmarks

What Holdfast costs beside hand-written SQL that writes the same rows, in the same batches, with the
same durability, into the same schema: the task row, each status with its version and fence, one
event for each transition, the run. On Holdfast's side it is a program as a user writes it, with
functions that do nothing, run by a worker of the same process; by hand there are no functions, no
arguments and no results to carry. The two of a pair are taken one right after the other, in either
order by turns, and the ratio is the median of the pairs' ratios. Rates are per second and belong to
the machine; the ratios are what to compare. Both sides have the same settings of their connections,
and neither pays for a collection of what was in memory before it began. After the first pair both
stores are looked at: the same rows, the same events, no invariant broken.

A pipeline alone has nothing to share a commit with: it needs one for its start and one for the
report of each step, and each of them starts the next step too. Beside it stands the smallest
commit, one row and its event, as often; the same on a disk that takes longer for each commit, of
both sides; and then the same pipeline by hand, in as many commits.

A task waits from before `enqueue` is called to the first line of its function. In one process that
takes one commit, from another process two. One comes as soon as the one before has ended, or after
a pause in which the machine's cores go to sleep: then each thread and server that has to be woken
costs several times as much, and so does a bare commit. Tasks and bare commits take five turns each,
before anything else is measured: the worker is idle, and so is the server.
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


def draw_lines(lines: Sequence[Line]) -> str:
    return draw_table([_HEADINGS, *(line.cells for line in lines)])


def draw_figures(figures: Sequence[Figure]) -> str:
    cells = [(each.what, each.database, each.value, each.beside) for each in figures]
    return draw_table([_FIGURES, *cells])


def draw_table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (rows[0], rule, *rows[1:])
    )


def put_section(page: Path, name: str, text: str) -> None:
    """Have a page hold a section that is made apart from the rest of it, in place of the last."""
    begin, end = f"<!-- section {name} -->", f"<!-- end of {name} -->"
    known = page.read_text(encoding="utf-8") if page.exists() else ""
    before, _, rest = known.partition(begin)
    after = rest.partition(end)[2].lstrip("\n")
    parts = [before.rstrip("\n"), f"{begin}\n\n{text}\n{end}", after]
    page.write_text("\n\n".join(filter(None, parts)).rstrip("\n") + "\n", encoding="utf-8")


def sections_of(page: Path) -> str:
    """The sections of a page that are made apart, to stay when the rest is made again."""
    known = page.read_text(encoding="utf-8") if page.exists() else ""
    found = _SECTION.finditer(known)
    return "".join(f"\n{each[0]}\n" for each in found)


def page(
    lines: Sequence[Line], figures: Sequence[Figure], facts: Mapping[str, str], command: str
) -> str:
    machine = "\n".join(f"- {name}: {value}" for name, value in facts.items())
    return (
        f"{_INTRODUCTION}\n```\n{command}\n```\n\n{draw_lines(lines)}\n\n"
        f"{draw_figures(figures)}\n\n## The machine\n\n{machine}\n"
    )
