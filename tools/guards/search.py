"""Takes guards out, a few at a time, and looks for the tests that miss them."""

from __future__ import annotations

import queue
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.guards import record
from tools.guards.predicates import Predicate
from tools.guards.record import RESULTS, Caught, Redundant, Results
from tools.guards.removal import PackageCopy
from tools.guards.suite import DATABASES, SOURCE, Suite, Test

Choices = Sequence[Sequence[str]]
Found = Iterator[tuple[Predicate, Caught]]


class Search:
    def __init__(self, suite: Suite, home: Path, *, jobs: int) -> None:
        self._suite = suite
        self._jobs = jobs
        self._copies: queue.SimpleQueue[PackageCopy] = queue.SimpleQueue()
        for number in range(jobs):
            self._copies.put(PackageCopy(SOURCE, home / f"copy-{number}"))

    def all(self, predicates: Sequence[Predicate], known: Results) -> Found:
        """Try every test that runs the guarded query, the last one to miss it first."""
        tests = self._trace()
        return self._try_each(predicates, lambda each: _order(each, tests, _hints(each, known)))

    def sample(self, predicates: Sequence[Predicate], known: Results) -> Found:
        """Try only the tests that are known to miss each guard."""
        tests = sorted({test for each in predicates for test in _hints(each, known)})
        if tests and (broken := self._suite.broken(tests)):
            raise SystemExit(f"these fail with every guard in place: {broken}")
        return self._try_each(predicates, lambda each: (_hints(each, known),))

    def _try_each(
        self, predicates: Sequence[Predicate], choose: Callable[[Predicate], Choices]
    ) -> Found:
        with ThreadPoolExecutor(self._jobs) as pool:
            caught = pool.map(lambda each: self._try(each, choose(each)), predicates)
            yield from zip(predicates, caught, strict=True)

    def _trace(self) -> list[Test]:
        tests = self._suite.trace(RESULTS.with_name("trace.json"), jobs=self._jobs)
        for test in tests:
            if not test.passed:
                print(f"left out, for it fails with every guard in place: {test.id}")
        return [test for test in tests if test.passed]

    def _try(self, predicate: Predicate, choices: Choices) -> Caught:
        """Go through the choices until each database has noticed."""
        caught: Caught = {}
        copy = self._copies.get()
        try:
            with copy.without(predicate):
                for choice in choices:
                    left = [test for test in choice if not _is_about(test, caught)]
                    if left and len(caught) < len(DATABASES):
                        caught = self._suite.run(copy.path, left).caught | caught
        finally:
            self._copies.put(copy)
        return caught


def choose_sample(
    predicates: Sequence[Predicate],
    known: Results,
    redundant: Mapping[str, Redundant],
    count: int,
    *,
    seed: int,
) -> list[Predicate]:
    """A few of those that tests are known to miss: another few for each seed."""
    noticed = [each for each in predicates if each.name not in redundant and _hints(each, known)]
    # Not a secret: the same day takes the same sample everywhere.
    return random.Random(seed).sample(noticed, min(len(noticed), count))  # noqa: S311


def _hints(predicate: Predicate, known: Results) -> list[str]:
    tests = dict.fromkeys(known.get(predicate.name, {}).values())
    return [test for test in tests if record.exists(test)]


def _order(predicate: Predicate, tests: Sequence[Test], hints: Sequence[str]) -> Choices:
    """The last tests to miss it, then all that run the query: the most about it first."""
    runs = Counter(query for test in tests for query in test.list_names)
    first = [test.id for test in tests if {test.id, test.id.partition("[")[0]} & set(hints)]
    found = [test for test in tests if predicate.query in test.list_names and test.id not in first]
    found.sort(key=lambda test: _cost(test, predicate.query, runs))
    return first, [test.id for test in found]


def _cost(test: Test, query: str, runs: Mapping[str, int]) -> float:
    """Its seconds, for as much of it as is about a query: common ones count for less."""
    about = 1 / runs[query] / sum(1 / runs[name] for name in test.list_names)
    return test.seconds / about


def _is_about(test: str, databases: Iterable[str]) -> bool:
    parameters = test.partition("[")[2]
    return any(database in parameters for database in databases)


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
