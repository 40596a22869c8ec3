"""Takes each guard out of the SQL in turn, and reports which test notices.

python -m tools.guards                   every guard, then docs/guards.md
python -m tools.guards --only QUERY …    those of some queries
python -m tools.guards --sample [N]      a few, others every day; part of make check
python -m tools.guards --resume          go on where a full pass was broken off
python -m tools.guards --list            say what they are
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
from pathlib import Path

from tests import servers
from tools.guards import record
from tools.guards.predicates import Predicate, find
from tools.guards.search import Search, choose_sample, judge
from tools.guards.suite import BUDGET, SOURCE, Suite

SAMPLE = 8


def main() -> int:
    options = _options()
    predicates = find(SOURCE / "store/sql")
    redundant = record.read_redundant()
    gone = sorted(redundant.keys() - {predicate.name for predicate in predicates})
    for name in gone:
        print(f"redundant.toml lists a guard that is not there: {name}")
    if options.list:
        for predicate in predicates:
            mark = "redundant " if predicate.name in redundant else ""
            print(f"{predicate.path.name}: {mark}{predicate.name}")
        return int(bool(gone))
    failed = _search(predicates, redundant, options)
    return int(bool(gone) or failed)


def _search(
    predicates: list[Predicate],
    redundant: dict[str, record.Redundant],
    options: argparse.Namespace,
) -> bool:
    hints = record.read_hints(predicates)
    chosen = predicates
    if options.only:
        chosen = [predicate for predicate in predicates if predicate.query in options.only]
    if options.sample:
        chosen = choose_sample(chosen, hints, redundant, count=options.sample, seed=options.seed)
    results = record.read_results()
    if options.resume:
        chosen = [predicate for predicate in chosen if predicate.name not in results]
    with tempfile.TemporaryDirectory(prefix="holdfast-guards-") as home, servers.postgres() as url:
        suite = Suite(url, Path(home), budget=options.budget)
        search = Search(suite, Path(home), jobs=options.jobs)
        found = search.sample(chosen, hints) if options.sample else search.all(chosen, hints)
        mistakes = 0
        for done, (predicate, caught) in enumerate(found, start=1):
            verdict, good = judge(caught, redundant.get(predicate.name))
            mistakes += not good
            print(f"[{done:3}/{len(chosen)}] {predicate.name}\n          {verdict}", flush=True)
            results[predicate.name] = caught
            if not options.sample:
                record.write_results(results)
    if not options.sample:
        known = {
            predicate.name: results[predicate.name]
            for predicate in predicates
            if predicate.name in results
        }
        record.write_results(known)
        if known.keys() == {predicate.name for predicate in predicates}:
            record.write_table(predicates, known, redundant)
    print(f"{len(chosen)} guards taken out, {mistakes} not as they should be")
    return mistakes > 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.guards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="QUERY", default=[])
    parser.add_argument("--sample", nargs="?", type=int, const=SAMPLE, metavar="N")
    today = dt.datetime.now(tz=dt.UTC).toordinal()
    parser.add_argument("--seed", type=int, default=today, help="today, unless given")
    parser.add_argument("--resume", action="store_true")
    seconds = "for the tests of one guard, on each database"
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS", help=seconds)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
