"""Comparison of this tree with another revision: the same measures, taken of both in turns."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from benchmarks.checkouts import (
    HERE,
    Checkout,
    checked_out,
    describe_commit,
    find_commit,
    measuring,
)
from benchmarks.measures import Rates, Wait, loop_rates, steady_rates, waits
from benchmarks.places import DATABASES, Places, durable_settings, network_settings
from benchmarks.report import draw_table
from benchmarks.scenarios import Sizes
from tests import servers

T = TypeVar("T")
_VALUE = re.compile(r"([\d.,]+)(.*)")
_EXACT = 100
LEGEND = """\
A ratio is the figure of this tree divided by that of the other, taken one right after the other;
the ratio shown is the median of the pairs, its range goes from the least to the greatest. Above 1,
a rate (/s) is better, and a wait or a share of a core is worse."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    what: str
    database: str
    unit: str
    pairs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        mine, other = (self._show(median(side)) for side in zip(*self.pairs, strict=True))
        ratios = [mine / other for mine, other in self.pairs if other]
        if not ratios:
            return (self.what, self.database, mine, other, "none", "none")
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        return (self.what, self.database, mine, other, f"{median(ratios):.2f}", spread)

    def _show(self, value: float) -> str:
        return f"{value:,.0f}{self.unit}" if value >= _EXACT else f"{value:.2f}{self.unit}"


class Comparer:
    """Takes each measure of both checkouts, one right after the other."""

    def __init__(self, this: Checkout, other: Checkout, pairs: int) -> None:
        self._this = this
        self._other = other
        self._pairs = pairs
        self._found: dict[tuple[str, str], Comparison] = {}

    @property
    def comparisons(self) -> list[Comparison]:
        return list(self._found.values())

    def take_waits(self, measures: Sequence[Wait]) -> None:
        chosen = [each for each in measures if self._can_take(each.func.__name__)]
        for number in self._numbers("the waits"):
            for each, database in product(chosen, DATABASES):
                ask = partial(_ask_wait, each.func.__name__, database, each.keywords)
                mine, others = self._take(number, ask)
                for what in filter(others.__contains__, mine):
                    (value, unit), (other, _) = mine[what], others[what]
                    self._keep(what, database, unit, (value, other))

    def take_rates(self, measures: Rates) -> None:
        names = {what: each.__name__ for what, each in measures.items()}
        chosen = [(what, name) for what, name in names.items() if self._can_take(name)]
        for number in self._numbers("the rates"):
            for (what, name), database in product(chosen, DATABASES):
                pair = self._take(number, partial(_ask_rate, name, database, number))
                self._keep(what, database, "/s", pair)

    def fill(self) -> None:
        for each in (self._this, self._other):
            each.ask("fill")

    def _numbers(self, what: str) -> Iterator[int]:
        for number in range(1, self._pairs + 1):
            print(f"pair {number} of {self._pairs} of {what}", flush=True)
            yield number

    def _can_take(self, name: str) -> bool:
        lacking = [each.name for each in (self._this, self._other) if not each.ask("has", name)]
        if lacking:
            print(f"left out: {name}, which {' and '.join(lacking)} cannot measure", flush=True)
        return not lacking

    def _take(self, number: int, ask: Callable[[Checkout], T]) -> tuple[T, T]:
        """Ask both, and in every second pair the other one first."""
        if number % 2:
            mine = ask(self._this)
            return mine, ask(self._other)
        other = ask(self._other)
        return ask(self._this), other

    def _keep(self, what: str, database: str, unit: str, pair: tuple[float, float]) -> None:
        new = Comparison(what=what, database=database, unit=unit)
        self._found.setdefault((what, database), new).pairs.append(pair)
        mine, other = pair
        ratio = f"{mine / other:5.2f}" if other else " none"
        print(f"  {database:<10}  {ratio}  {what}", flush=True)


def _ask_rate(name: str, database: str, number: int, checkout: Checkout) -> float:
    return float(checkout.ask("rate", name, database, number))


def _ask_wait(
    name: str, database: str, options: Mapping[str, Any], checkout: Checkout
) -> dict[str, tuple[float, str]]:
    """The figures that one call gives, each with its unit."""
    figures = checkout.ask("wait", name, database, options)
    return {each["what"]: _parse_value(each["value"]) for each in figures}


def _parse_value(text: str) -> tuple[float, str]:
    found = _VALUE.fullmatch(text)
    assert found is not None, text
    return float(found[1].replace(",", "")), found[2]


def compare(revision: str, sizes: Sizes, pairs: int) -> str:
    """Measure both checkouts on the same PostgreSQL and the same disk; gives a table."""
    commit = find_commit(revision)
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        servers.postgres(**durable_settings(), **network_settings()) as url,
        checked_out(commit) as tree,
    ):
        facts = Places(folder=Path(folder), postgres=url).facts()
        facts |= {"this tree": str(HERE), revision: describe_commit(commit)}
        for name, value in facts.items():
            print(f"{name}: {value}", flush=True)
        arguments = (folder, url, json.dumps(asdict(sizes)))
        with (
            measuring("this tree", HERE, *arguments) as this,
            measuring(revision, tree, *arguments) as other,
        ):
            comparer = Comparer(this, other, pairs)
            # First, while nothing else has put the server to work.
            comparer.take_waits(waits(sizes))
            print(f"writing {sizes.finished:,} finished tasks into each database", flush=True)
            comparer.fill()
            comparer.take_rates({**steady_rates(sizes), **loop_rates(sizes)})
    headings = ("what", "database", "this tree", revision, "ratio", "range of the ratio")
    rows = [each.cells for each in comparer.comparisons]
    return f"{draw_table([headings, *rows])}\n\n{LEGEND}"
