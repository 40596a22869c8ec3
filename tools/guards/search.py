"""Takes guards out, a few at a time, and looks for the tests that miss them."""

from __future__ import annotations

import queue
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tools.guards.predicates import Predicate
from tools.guards.record import RESULTS, Caught, Redundant
from tools.guards.removal import PackageCopy
from tools.guards.suite import DATABASES, SOURCE, Suite, Test

Hints = Mapping[str, Sequence[str]]
Found = Iterator[tuple[Predicate, Caught]]


class Search:
    def __init__(self, suite: Suite, home: Path, *, jobs: int) -> None:
        self._suite = suite
        self._home = home
        self._jobs = jobs
        self._copies: queue.SimpleQueue[PackageCopy] = queue.SimpleQueue()
        for number in range(jobs):
            self._copies.put(PackageCopy(SOURCE, home / f"copy-{number}"))

    def all(self, predicates: Sequence[Predicate], hints: Hints) -> Found:
        """Try every test that runs the guarded query, the last one to miss it first."""
        tests = self._trace()
        with ThreadPoolExecutor(self._jobs) as pool:
            caught = pool.map(
                lambda each: self._try(each, _order(each, tests, hints[each.name])), predicates
            )
            yield from zip(predicates, caught, strict=True)

    def sample(self, predicates: Sequence[Predicate], hints: Hints) -> Found:
        """Try the tests that are known to miss each guard; all of them only if they do not."""
        known = sorted({test for each in predicates for test in hints[each.name]})
        if known and (broken := self._suite.broken(known)):
            raise SystemExit(f"these fail with every guard in place: {broken}")
        with ThreadPoolExecutor(self._jobs) as pool:
            quick = partial(self._try_quickly, hints=hints)
            for predicate, caught in zip(predicates, pool.map(quick, predicates), strict=True):
                if len(caught) < len(DATABASES):
                    tests = self._trace()
                    yield predicate, self._try(predicate, _order(predicate, tests, ()))
                else:
                    yield predicate, caught

    def _trace(self) -> list[Test]:
        tests = self._suite.trace(RESULTS.with_name("trace.json"), jobs=self._jobs)
        for test in tests:
            if not test.passed:
                print(f"left out, for it fails with every guard in place: {test.id}")
        return [test for test in tests if test.passed]

    def _try_quickly(self, predicate: Predicate, hints: Hints) -> Caught:
        return self._try(predicate, hints[predicate.name])

    def _try(self, predicate: Predicate, ids: Sequence[str]) -> Caught:
        if not ids:
            return {}
        copy = self._copies.get()
        try:
            with copy.without(predicate):
                return self._suite.run(copy.path, ids).caught
        finally:
            self._copies.put(copy)


def choose_sample(
    predicates: Sequence[Predicate],
    hints: Hints,
    redundant: Mapping[str, Redundant],
    *,
    count: int,
    seed: int,
) -> list[Predicate]:
    """Those of which nothing is known yet, then a few others: another few for each seed."""
    known = [each for each in predicates if each.name not in redundant]
    new = [each for each in known if not hints[each.name]]
    old = [each for each in known if hints[each.name]]
    # Not a secret: the same day takes the same sample everywhere.
    rest = random.Random(seed).sample(old, min(len(old), max(0, count - len(new))))  # noqa: S311
    return new + rest


def _order(predicate: Predicate, tests: Sequence[Test], hints: Sequence[str]) -> list[str]:
    runs = [
        test
        for test in sorted(tests, key=lambda test: test.seconds)
        if any(test.runs(predicate.query, database) for database in DATABASES)
    ]
    first = [test.id for test in tests if {test.id, test.id.partition("[")[0]} & set(hints)]
    return list(dict.fromkeys([*first, *(test.id for test in runs)]))


def judge(caught: Caught, redundant: Redundant | None) -> tuple[str, bool]:
    """What to say of a guard, and whether all is as it should be."""
    survived = {database for database in DATABASES if database not in caught}
    wanted = set(redundant.databases) if redundant else set()
    noticed = ", ".join(f"{database}: {test}" for database, test in sorted(caught.items()))
    if survived == wanted:
        return noticed or "redundant, as listed", True
    if wanted - survived:
        return f"LISTED AS REDUNDANT, yet noticed by {noticed}", False
    where = " and ".join(sorted(survived - wanted))
    return f"SURVIVED on {where}" + (f"; {noticed}" if noticed else ""), False
