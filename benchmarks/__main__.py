"""Measures group commit beside hand-written SQL, on both databases, in one run.

python -m benchmarks [--pairs 5] [--write]
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from statistics import median

from benchmarks import report
from benchmarks.places import DATABASES, Places, durable_settings
from benchmarks.report import Line
from benchmarks.scenarios import (
    COMMITS_OF_A_PIPELINE,
    SLOWER,
    SMALL_LOOP,
    Pair,
    Scenarios,
    Sizes,
)
from benchmarks.waiting import MILLISECONDS, PAUSE, Figure, dispatch, dispatch_across, idle
from tests import servers

SIZES = Sizes(
    tasks=20_000,
    pipelines=5_000,
    alone=40,
    finished=1_000_000,
    claims=2_000,
    batch=400,
    loop=100_000,
    dispatches=300,
    idle=10,
)
Measure = Callable[[str, int], Pair]
ALONE = f"a pipeline alone, beside {COMMITS_OF_A_PIPELINE} bare commits"
SLOWLY = f"{ALONE}, each {SLOWER * MILLISECONDS:g} ms longer"


def main() -> int:
    options = _options()
    sizes = Sizes(**{each.name: getattr(options, each.name) for each in fields(Sizes)})
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        servers.postgres(**durable_settings()) as url,
    ):
        places = Places(folder=Path(folder), postgres=url)
        facts = places.facts()
        for name, value in facts.items():
            print(f"{name}: {value}", flush=True)
        # First, while nothing else has put the server to work.
        waits = _waits(places, sizes)
        scenarios = Scenarios(places, sizes)
        print(f"writing {sizes.finished:,} finished tasks into each database", flush=True)
        with scenarios.filled(DATABASES) as full:
            facts |= {f"{sizes.finished:,} tasks on {name}": size for name, size in full.items()}
            lines = _measure(_named(scenarios, sizes), options.pairs)
        lines += _measure(_grown(scenarios, sizes), 1)
        figures = [_beside_commit(line) for line in lines if line.what == ALONE]
        figures += waits
    print(f"\n{report.draw_lines(lines)}\n\n{report.draw_figures(figures)}")
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        page = report.page(lines, figures, facts, command)
        kept = report.sections_of(options.write)
        options.write.write_text(page + kept, encoding="utf-8")
    return 0


def _measure(measures: Mapping[str, Measure], pairs: int) -> list[Line]:
    """Take every pair of everything in turns, so that a slow minute touches all of them."""
    lines = {
        (measure, database): Line(what=what, database=database, pairs=[])
        for what, measure in measures.items()
        for database in DATABASES
    }
    for number in range(1, pairs + 1):
        print(f"pair {number} of {pairs}", flush=True)
        for (measure, database), line in lines.items():
            pair = measure(database, number)
            line.pairs.append(pair)
            print(f"  {database:<10}  {pair.ratio:5.2f}  {line.what}", flush=True)
    return list(lines.values())


def _named(scenarios: Scenarios, sizes: Sizes) -> dict[str, Measure]:
    among = f"among {sizes.finished:,} finished tasks, beside none"
    return {
        "tasks made and drained, beside the same by hand": scenarios.tasks,
        "waiting tasks drained, beside the same by hand": scenarios.waiting_tasks,
        "five-step pipelines, beside the same by hand": scenarios.pipelines,
        ALONE: scenarios.alone,
        SLOWLY: scenarios.alone_on_a_slow_disk,
        "a pipeline alone, beside the same by hand": scenarios.alone_by_hand,
        f"tasks {among}": scenarios.drained,
        f"claims {among}": scenarios.claims,
        f"completions {among}": scenarios.completions,
    }


def _grown(scenarios: Scenarios, sizes: Sizes) -> dict[str, Measure]:
    return {f"items of a loop of {sizes.loop:,}, beside one of {SMALL_LOOP:,}": scenarios.loops}


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
    figures = [each for name in DATABASES for each in dispatch(places, name, sizes.dispatches)]
    figures += [
        each for name in DATABASES for each in dispatch(places, name, sizes.dispatches, pause=PAUSE)
    ]
    figures += [
        each for name in DATABASES for each in dispatch_across(places, name, sizes.dispatches)
    ]
    return figures + [idle(places, name, sizes.idle) for name in DATABASES]


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
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
