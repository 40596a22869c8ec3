"""Measures group commit beside hand-written SQL, on both databases, in one run.

python -m benchmarks [--pairs 5] [--write]
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from benchmarks import report
from benchmarks.places import DATABASES, Places, durable_settings
from benchmarks.report import Line
from benchmarks.scenarios import COMMITS_OF_A_PIPELINE, Pair, Scenarios, Sizes
from tests import servers

SIZES = Sizes(tasks=3_000, pipelines=600, alone=20, finished=50_000, claims=2_000, batch=400)


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
        lines = _measure(Scenarios(places, sizes), sizes, options.pairs)
    print(f"\n{report.draw(lines)}")
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        options.write.write_text(report.page(lines, facts, command), encoding="utf-8")
    return 0


def _measure(scenarios: Scenarios, sizes: Sizes, pairs: int) -> list[Line]:
    """Take every pair of everything in turns, so that a slow minute touches all of them."""
    lines = {
        (measure, database): Line(what=what, database=database, pairs=[])
        for what, measure in _named(scenarios, sizes).items()
        for database in DATABASES
    }
    print(f"writing {sizes.finished:,} finished tasks into each database", flush=True)
    with scenarios.filled(DATABASES):
        for number in range(1, pairs + 1):
            print(f"pair {number} of {pairs}", flush=True)
            for (measure, database), line in lines.items():
                pair = measure(database, number)
                line.pairs.append(pair)
                print(f"  {database:<10}  {pair.ratio:5.2f}  {line.what}", flush=True)
    return list(lines.values())


def _named(scenarios: Scenarios, sizes: Sizes) -> dict[str, Callable[[str, int], Pair]]:
    return {
        "tasks, beside the same by hand": scenarios.tasks,
        "five-step pipelines, beside the same by hand": scenarios.pipelines,
        f"a pipeline alone, beside {COMMITS_OF_A_PIPELINE} bare commits": scenarios.alone,
        f"claims among {sizes.finished:,} finished tasks, beside none": scenarios.claims,
        f"completions among {sizes.finished:,} finished tasks, beside none": scenarios.completions,
    }


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
