"""Measures group commit beside hand-written SQL, on both databases, in one run.

python -m benchmarks [--pairs 5] [--write]
python -m benchmarks --beside REV [--pairs 5]

With `--beside`, the same is measured of a second checkout too, one measure right after the other:
before and after are one run. REV is whatever git resolves, for example HEAD or a tag; the tree at
hand is measured as it is, changes that are not committed included.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from statistics import median

from benchmarks import report
from benchmarks.checkouts import CheckoutError
from benchmarks.comparison import compare
from benchmarks.measures import ALONE, SIZES, Rates, loop_rates, steady_rates, waits
from benchmarks.places import DATABASES, Places, durable_settings, network_settings
from benchmarks.report import Line
from benchmarks.scenarios import COMMITS_OF_A_PIPELINE, Scenarios, Sizes
from benchmarks.waiting import MILLISECONDS, Figure
from tests import servers


def main() -> int:
    options = _options()
    sizes = Sizes(**{each.name: getattr(options, each.name) for each in fields(Sizes)})
    if options.beside is None:
        _measure_this(options, sizes)
        return 0
    try:
        print(f"\n{compare(options.beside, sizes, options.pairs)}")
    except CheckoutError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _measure_this(options: argparse.Namespace, sizes: Sizes) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        servers.postgres(**durable_settings(), **network_settings()) as url,
    ):
        places = Places(folder=Path(folder), postgres=url)
        facts = places.facts()
        for name, value in facts.items():
            print(f"{name}: {value}", flush=True)
        # First, while nothing else has put the server to work.
        waited = _waits(places, sizes)
        scenarios = Scenarios(places, sizes)
        print(f"writing {sizes.finished:,} finished tasks into each database", flush=True)
        with scenarios.filled(DATABASES) as full:
            facts |= {f"{sizes.finished:,} tasks on {name}": size for name, size in full.items()}
            lines = _measure(scenarios, steady_rates(sizes), options.pairs)
        lines += _measure(scenarios, loop_rates(sizes), 1)
        figures = [_beside_commit(line) for line in lines if line.what == ALONE]
        figures += waited
    print(f"\n{report.draw_lines(lines)}\n\n{report.draw_figures(figures)}")
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        page = report.page(lines, figures, facts, command)
        kept = report.sections_of(options.write)
        options.write.write_text(page + kept, encoding="utf-8")


def _measure(scenarios: Scenarios, measures: Rates, pairs: int) -> list[Line]:
    """Take every pair of everything in turns, so that a slow minute touches all of them."""
    lines = {
        (measure, database): Line(what=what, database=database, pairs=[])
        for what, measure in measures.items()
        for database in DATABASES
    }
    for number in range(1, pairs + 1):
        print(f"pair {number} of {pairs}", flush=True)
        for (measure, database), line in lines.items():
            pair = measure(scenarios, database, number)
            line.pairs.append(pair)
            print(f"  {database:<10}  {pair.ratio:5.2f}  {line.what}", flush=True)
    return list(lines.values())


def _beside_commit(line: Line) -> Figure:
    """What each commit of a pipeline alone takes beyond a bare one."""
    more = median(
        (1 / pair.subject - 1 / pair.reference) / COMMITS_OF_A_PIPELINE for pair in line.pairs
    )
    bare = median(1 / pair.reference / COMMITS_OF_A_PIPELINE for pair in line.pairs)
    return Figure(
        what="a commit of a pipeline alone, beyond a bare one",
        database=line.database,
        value=f"{more * MILLISECONDS:.2f} ms",
        beside=f"{bare * MILLISECONDS:.2f} ms of a bare one",
    )


def _waits(places: Places, sizes: Sizes) -> list[Figure]:
    print("measuring how long a task waits for an idle worker, and what that one costs", flush=True)
    return [
        figure
        for wait in waits(sizes)
        for database in DATABASES
        for figure in wait(places, database)
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=5, help="how often each pair is taken")
    for each in fields(Sizes):
        default = getattr(SIZES, each.name)
        parser.add_argument(f"--{each.name}", type=int, default=default, help=f"{default:,}")
    parser.add_argument(
        "--write", type=Path, nargs="?", const=report.PAGE, help="write docs/benchmarks.md"
    )
    parser.add_argument(
        "--beside", metavar="REV", help="measure a checkout of this revision too, in turns"
    )
    options = parser.parse_args()
    if options.beside is not None and options.write:
        parser.error("--write keeps what is measured of this tree alone: leave --beside out")
    return options


if __name__ == "__main__":
    sys.exit(main())
