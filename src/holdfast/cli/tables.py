"""Rows under headings, each column as wide as it has to be."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.terminal import columns, cut, paint, say, width_of


def say_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows; empty columns are left out, and the last one is cut at the terminal's edge."""
    kept = [place for place, _ in enumerate(headings) if any(row[place] for row in rows)]
    if not kept:
        return
    widths = {
        place: max(width_of(headings[place]), *(width_of(row[place]) for row in rows))
        for place in kept
    }
    say(_line([(paint(headings[place], "dim"), widths[place]) for place in kept]))
    for row in rows:
        say(_line([(row[place], widths[place]) for place in kept]))


def _line(cells: Sequence[tuple[str, int]]) -> str:
    *first, (last, _) = cells
    begun = "".join(text + " " * (width - width_of(text) + 2) for text, width in first)
    edge = columns()
    # A coloured text cannot be cut in the middle of its colour; those are short.
    if edge is None or "\x1b" in last:
        return (begun + last).rstrip()
    return (begun + cut(last, max(10, edge - width_of(begun)))).rstrip()
