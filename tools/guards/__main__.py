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
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import servers
from tools.guards import record
from tools.guards.predicates import Predicate, find
from tools.guards.record import Redundant, Results
from tools.guards.search import Search, choose_sample, judge
from tools.guards.suite import BUDGET, SOURCE, Suite

SAMPLE = 16


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
    known = record.read_table() | record.read_results()
    chosen = _choose(predicates, known, redundant, options)
    with tempfile.TemporaryDirectory(prefix="holdfast-guards-") as home, servers.postgres() as url:
        suite = Suite(url, Path(home), budget=options.budget)
        search = Search(suite, Path(home), jobs=options.jobs)
        if options.sample:
            mistakes = _sample(search, chosen, known)
        else:
            mistakes = _pass(search, chosen, known, redundant)
            mistakes += _confirm(suite)
            record.write_table(predicates, known, redundant)
    print(f"{len(chosen)} guards taken out, {mistakes} not as they should be")
    return int(bool(gone) or mistakes > 0)


def _choose(
    predicates: Sequence[Predicate],
    known: Results,
    redundant: Mapping[str, Redundant],
    options: argparse.Namespace,
) -> Sequence[Predicate]:
    if options.only:
        predicates = [predicate for predicate in predicates if predicate.query in options.only]
    if options.sample:
        return choose_sample(predicates, known, redundant, options.sample, seed=options.seed)
    if not options.resume:
        record.forget_results(predicate.name for predicate in predicates)
    done = record.read_results()
    return [predicate for predicate in predicates if predicate.name not in done]


def _sample(search: Search, chosen: Sequence[Predicate], known: Results) -> int:
    mistakes = 0
    for predicate, caught in search.sample(chosen, known):
        verdict, good = judge(caught, None)
        mistakes += not good
        print(f"{predicate.name}\n    {verdict}", flush=True)
        if not good:
            print(f"    look with: python -m tools.guards --only {predicate.query}")
    return mistakes


def _pass(
    search: Search,
    chosen: Sequence[Predicate],
    known: Results,
    redundant: Mapping[str, Redundant],
) -> int:
    """Take out every one of them, and keep what was found, each as it is found."""
    mistakes = 0
    for done, (predicate, caught) in enumerate(search.all(chosen, dict(known)), start=1):
        verdict, good = judge(caught, redundant.get(predicate.name))
        mistakes += not good
        print(f"[{done:3}/{len(chosen)}] {predicate.name}\n          {verdict}", flush=True)
        known[predicate.name] = caught
        record.keep_result(predicate.name, caught)
    return mistakes


def _confirm(suite: Suite) -> int:
    """What fails with every guard in place has noticed nothing."""
    noticed = (test for caught in record.read_results().values() for test in caught.values())
    tests = {test for test in noticed if record.exists(test)}
    broken = suite.broken(sorted(tests)) if tests else []
    for test in broken:
        print(f"FAILS WITH EVERY GUARD IN PLACE: {test}")
    return len(broken)


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
