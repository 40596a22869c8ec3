"""Measures group commit beside hand-written SQL, on both databases, in one run.

python -m benchmarks [--pairs 5] [--write]
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks import report
from benchmarks.places import DATABASES, Places, durable_settings
from benchmarks.report import Line
from benchmarks.scenarios import COMMITS_OF_A_PIPELINE, Pair, Scenarios, Sizes
from tests import servers


def main() -> int:
    options = _options()
    sizes = Sizes(
        tasks=options.tasks,
        pipelines=options.pipelines,
        finished=options.finished,
        batch=options.batch,
    )
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        servers.postgres(**durable_settings()) as url,
    ):
        places = Places(folder=Path(folder), postgres=url)
        facts = places.facts()
        for name, value in facts.items():
            print(f"{name}: {value}")
        scenarios = Scenarios(places, sizes)
        measured = {database: _Measured() for database in options.databases}
        for number in _measure(scenarios, measured, options.pairs):
            print(f"pair {number} of {options.pairs} taken", flush=True)
    lines = _lines(measured, sizes)
    print(f"\n{report.draw(lines)}")
    if options.write:
        command = ["python", "-m", "benchmarks", *(each for each in sys.argv[1:])]
        report.write(lines, facts, shlex.join(command))
    return 0


class _Measured:
    def __init__(self) -> None:
        self.tasks: list[Pair] = []
        self.pipelines: list[Pair] = []
        self.alone: list[Pair] = []
        self.flat: list[Pair] = []


def _measure(scenarios: Scenarios, measured: dict[str, _Measured], pairs: int) -> Iterator[int]:
    with ExitStack() as stack:
        flat = {each: stack.enter_context(scenarios.filled(each)) for each in measured}
        for number in range(1, pairs + 1):
            turned, check = number % 2 == 0, number == 1
            for database, into in measured.items():
                into.tasks.append(scenarios.tasks(database, turned=turned, check=check))
                into.pipelines.append(scenarios.pipelines(database, turned=turned, check=check))
                into.alone.append(scenarios.alone(database))
                into.flat.append(flat[database]())
            yield number


def _lines(measured: dict[str, _Measured], sizes: Sizes) -> list[Line]:
    lines: list[Line] = []
    for what, attribute in (
        ("tasks, beside the same by hand", "tasks"),
        ("five-step pipelines, beside the same by hand", "pipelines"),
        (f"a pipeline alone, beside {COMMITS_OF_A_PIPELINE} bare commits", "alone"),
        (f"claims among {sizes.finished:,} finished tasks, beside none", "flat"),
    ):
        lines += [
            Line(what=what, database=database, pairs=getattr(found, attribute))
            for database, found in measured.items()
        ]
    return lines


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=4_000)
    parser.add_argument("--pipelines", type=int, default=800)
    parser.add_argument("--finished", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=400, help="rows in one claim")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
