"""A pytest plugin: notes which queries each test runs, and stops once each database has failed."""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sqlite.transaction import SqliteTransaction

REPORT = "HOLDFAST_GUARDS_REPORT"
BUDGET = "HOLDFAST_GUARDS_BUDGET"
_DRIVERS: dict[str, type[Any]] = {"sqlite": SqliteTransaction, "postgresql": PostgresqlTransaction}


class Notes:
    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.queries: set[str] = set()
        self.caught: set[str] = set()
        self.spent: Counter[str] = Counter()

    def spy(self, driver: type[Any], dialect: str, method: str) -> None:
        original: Callable[..., Any] = getattr(driver, method)

        @functools.wraps(original)
        def noting(transaction: object, query: str, /, **parameters: object) -> object:
            self.queries.add(f"{dialect}/{query}")
            return original(transaction, query, **parameters)

        setattr(driver, method, noting)

    def begin(self, test: str, databases: Iterable[str]) -> None:
        self.queries = set()
        self.tests[test] = {
            "databases": sorted(databases),
            "queries": [],
            "seconds": 0.0,
            "passed": True,
        }

    def add(self, report: pytest.TestReport) -> None:
        note = self.tests[report.nodeid]
        note["seconds"] += report.duration
        note["queries"] = sorted(self.queries)
        used = {query.partition("/")[0] for query in self.queries}
        databases = set(note["databases"]) or used
        self.spent.update(dict.fromkeys(databases, report.duration))
        if report.failed:
            note["passed"] = False
            self.caught |= databases


_notes = Notes()


def pytest_configure() -> None:
    for dialect, driver in _DRIVERS.items():
        for method in ("read", "change", "write", "run"):
            _notes.spy(driver, dialect, method)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Go on until a test has failed on each database, or each has had its time."""
    if BUDGET not in os.environ or session.testsfailed:
        return None
    budget = float(os.environ[BUDGET])
    waiting = {item.nodeid: item for item in session.items}
    while waiting:
        item = waiting.pop(next(iter(waiting)))
        databases = _databases(item) or _DRIVERS.keys()
        open_ones = {each for each in databases - _notes.caught if _notes.spent[each] < budget}
        if not open_ones:
            continue
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if not _notes.tests[item.nodeid]["passed"]:
            # What one database noticed, the other most likely will.
            twins = [twin for twin in _twins(item) if twin in waiting]
            waiting = {twin: waiting[twin] for twin in twins} | waiting
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    _notes.begin(item.nodeid, _databases(item))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.nodeid in _notes.tests:
        _notes.add(report)


def pytest_sessionfinish() -> None:
    # Each process of a run in parallel writes a file of its own.
    place = Path(f"{os.environ[REPORT]}.{os.getpid()}")
    package = str(Path(holdfast.__file__).parent)
    place.write_text(json.dumps({"package": package, "tests": _notes.tests}))


def _twins(item: pytest.Item) -> list[str]:
    path, bracket, parameters = item.nodeid.partition("[")
    return [
        path + bracket + parameters.replace(one, other)
        for one in _DRIVERS
        for other in _DRIVERS
        if one != other and one in parameters
    ]


def _databases(item: pytest.Item) -> set[str]:
    fixtures = {"sqlite_url": "sqlite", "postgres_url": "postgresql"}
    found = {fixtures[name] for name in getattr(item, "fixturenames", ()) if name in fixtures}
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params.values() if callspec else ()
    words = {word for value in parameters if isinstance(value, str) for word in value.split()}
    return found | (words & _DRIVERS.keys())
