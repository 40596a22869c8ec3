"""A pytest plugin: notes which queries each test runs, and stops once each database has failed."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sqlite.transaction import SqliteTransaction

REPORT = "HOLDFAST_GUARDS_REPORT"
STOP = "HOLDFAST_GUARDS_STOP"
_DRIVERS: dict[str, type[Any]] = {"sqlite": SqliteTransaction, "postgresql": PostgresqlTransaction}


class Notes:
    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.queries: set[str] = set()
        self.caught: set[str] = set()

    def spy(self, driver: type[Any], dialect: str, method: str) -> None:
        original: Callable[..., Any] = getattr(driver, method)

        @functools.wraps(original)
        def noting(transaction: object, query: str, /, **parameters: object) -> object:
            self.queries.add(f"{dialect}/{query}")
            return original(transaction, query, **parameters)

        setattr(driver, method, noting)


_notes = Notes()


def pytest_configure() -> None:
    for dialect, driver in _DRIVERS.items():
        for method in ("read", "change", "write", "run"):
            _notes.spy(driver, dialect, method)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    databases = _databases(item)
    if STOP in os.environ and (databases or _DRIVERS.keys()) <= _notes.caught:
        return True
    _notes.queries = set()
    _notes.tests[item.nodeid] = {
        "databases": sorted(databases),
        "queries": [],
        "seconds": 0.0,
        "passed": True,
    }
    return None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    note = _notes.tests.get(report.nodeid)
    if note is None:
        return
    note["seconds"] += report.duration
    note["queries"] = sorted(_notes.queries)
    if report.failed:
        note["passed"] = False
        used = {query.partition("/")[0] for query in _notes.queries}
        _notes.caught |= set(note["databases"]) or used


def pytest_sessionfinish() -> None:
    # Each process of a run in parallel writes a file of its own.
    place = Path(f"{os.environ[REPORT]}.{os.getpid()}")
    package = str(Path(holdfast.__file__).parent)
    place.write_text(json.dumps({"package": package, "tests": _notes.tests}))


def _databases(item: pytest.Item) -> set[str]:
    fixtures = {"sqlite_url": "sqlite", "postgres_url": "postgresql"}
    found = {fixtures[name] for name in getattr(item, "fixturenames", ()) if name in fixtures}
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params.values() if callspec else ()
    return found | {value for value in parameters if isinstance(value, str) and value in _DRIVERS}
