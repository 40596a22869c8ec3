"""Runs tests on a copy of the package, and knows which test runs which query."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.guards import plugin

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/holdfast"
TESTS = ROOT / "tests"
# Not the long ones: on a busy machine they fail for want of time, and have noticed nothing.
SUITES = ("contract", "race")
DATABASES = ("sqlite", "postgresql")
# How long the tests of one guard may take on each database.
BUDGET = 60.0
# One guard less can make a loop endless: what does not end has been noticed too.
TEST_PATIENCE = 60
TRACE_PATIENCE = 1800.0


@dataclass(frozen=True, kw_only=True)
class Test:
    id: str
    seconds: float
    passed: bool
    queries: tuple[str, ...]
    databases: tuple[str, ...]

    @property
    def list_names(self) -> set[str]:
        """The queries it runs, on whichever database."""
        return {query.partition("/")[2] for query in self.queries}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The first failing test on each database; one that is not there was not missed."""

    caught: dict[str, str]
    ran: int


class Suite:
    """The tests that can miss a guard, run against one PostgreSQL that all of them share."""

    def __init__(self, postgres: str, home: Path, *, budget: float = BUDGET) -> None:
        self._postgres = postgres
        self._home = home
        self._budget = budget

    def trace(self, cache: Path, *, jobs: int) -> list[Test]:
        """Run every suite on the code as it is; files that are as they were are remembered."""
        marks = {file: _fingerprint(ROOT / file) for file in _test_files()}
        known = json.loads(cache.read_text()) if cache.exists() else {"marks": {}, "tests": []}
        failed = {_file(note["id"]) for note in known["tests"] if not note["passed"]}
        same = {file for file, mark in marks.items() if known["marks"].get(file) == mark} - failed
        tests = [_test(note) for note in known["tests"] if _file(note["id"]) in same]
        if changed := sorted(marks.keys() - same):
            parallel = ["-n", str(jobs), "--dist=worksteal"]
            run = self._pytest(SOURCE.parent, [*parallel, *changed], patience=TRACE_PATIENCE)
            if run is None:
                raise SystemExit("the tests did not end; run them by themselves first: make test")
            tests += run
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(json.dumps({"marks": marks, "tests": [asdict(each) for each in tests]}))
        return tests

    def run(self, package: Path, ids: Sequence[str]) -> Outcome:
        """Run tests until each database has failed one of them, or has had its time."""
        # Far more than they may take together: each by itself has its end.
        patience = 10 * self._budget + 2 * TEST_PATIENCE
        tests = self._pytest(
            package, ["-p", "no:xdist", *ids], budget=self._budget, patience=patience
        )
        if tests is None:
            return Outcome(caught=dict.fromkeys(DATABASES, "(the tests did not end)"), ran=0)
        caught: dict[str, str] = {}
        for test in tests:
            if not test.passed:
                used = {query.partition("/")[0] for query in test.queries}
                for database in test.databases or sorted(used):
                    caught.setdefault(database, test.id)
        return Outcome(caught=caught, ran=len(tests))

    def broken(self, ids: Sequence[str]) -> list[str]:
        """Those of some tests that fail on the code as it is."""
        tests = self._pytest(SOURCE.parent, ["-p", "no:xdist", *ids], patience=TRACE_PATIENCE)
        return list(ids) if tests is None else [test.id for test in tests if not test.passed]

    def _pytest(
        self,
        package: Path,
        arguments: Sequence[str],
        *,
        patience: float,
        budget: float | None = None,
    ) -> list[Test] | None:
        with tempfile.TemporaryDirectory(dir=self._home) as home:
            report = Path(home, "report")
            command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "tools.guards.plugin"]
            command += ["-p", "no:cacheprovider", "-o", f"timeout={TEST_PATIENCE}"]
            command += [f"--basetemp={home}/tests", *arguments]
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment(package, report, Path(home), budget=budget),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            try:
                output, _ = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None
            reports = sorted(Path(home).glob("report.*"))
            if process.returncode not in {0, 1} or not reports:
                raise SystemExit(f"pytest could not run:\n{output}")
            return _read_reports(reports, package)

    def _environment(
        self, package: Path, report: Path, home: Path, *, budget: float | None
    ) -> dict[str, str]:
        environment = os.environ | {
            "PYTHONPATH": str(package),
            "HOLDFAST_TEST_POSTGRES": self._postgres,
            # What Hypothesis learns from broken code is of no use to the code itself.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
            plugin.REPORT: str(report),
        }
        return environment | ({} if budget is None else {plugin.BUDGET: str(budget)})


def _test_files() -> list[str]:
    found = [path for suite in SUITES for path in sorted((TESTS / suite).rglob("test_*.py"))]
    return [str(path.relative_to(ROOT)) for path in found]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_reports(reports: Sequence[Path], package: Path) -> list[Test]:
    tests: list[Test] = []
    for report in reports:
        written = json.loads(report.read_text())
        if Path(written["package"]).parent != package:
            raise SystemExit(f"the tests ran {written['package']}, not the copy in {package}")
        tests += [_test({"id": name, **note}) for name, note in written["tests"].items()]
    return tests


def _test(note: dict[str, object]) -> Test:
    queries, databases = note["queries"], note["databases"]
    assert isinstance(queries, list)
    assert isinstance(databases, list)
    return Test(
        id=str(note["id"]),
        seconds=float(str(note["seconds"])),
        passed=bool(note["passed"]),
        queries=tuple(queries),
        databases=tuple(databases),
    )
