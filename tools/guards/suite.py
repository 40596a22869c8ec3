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
SUITES = ("contract", "race", "simulation", "chaos")
DATABASES = ("sqlite", "postgresql")
# One guard less can make a loop endless: what does not end has been noticed too.
PATIENCE = 300.0
TEST_PATIENCE = 30


@dataclass(frozen=True, kw_only=True)
class Test:
    id: str
    seconds: float
    passed: bool
    queries: tuple[str, ...]
    databases: tuple[str, ...]

    def runs(self, query: str, database: str) -> bool:
        return f"{database}/{query}" in self.queries

    @property
    def elsewhere(self) -> bool:
        """Whether it has a database of which this process saw no query: its children work."""
        return bool(self.databases) and not self.queries


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The first failing test on each database; one that is not there was not missed."""

    caught: dict[str, str]
    ran: int


class Suite:
    """The tests that can miss a guard, run against one PostgreSQL that all of them share."""

    def __init__(self, postgres: str, home: Path) -> None:
        self._postgres = postgres
        self._home = home

    def trace(self, cache: Path, *, jobs: int) -> list[Test]:
        """Run every suite on the code as it is, or remember the last time that was done."""
        mark = fingerprint()
        if cache.exists():
            known = json.loads(cache.read_text())
            if known["fingerprint"] == mark:
                return [_test(each) for each in known["tests"]]
        paths = [str(TESTS / suite) for suite in SUITES if (TESTS / suite).is_dir()]
        parallel = ["-n", str(jobs), "--dist=worksteal"]
        tests = self._pytest(SOURCE.parent, [*parallel, *paths], patience=1800.0)
        if tests is None:
            raise SystemExit("the tests did not end; run them by themselves first: make test")
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(
            json.dumps({"fingerprint": mark, "tests": [asdict(each) for each in tests]})
        )
        return tests

    def run(self, package: Path, ids: Sequence[str], *, stop: bool = True) -> Outcome:
        tests = self._pytest(package, ["-p", "no:xdist", *ids], stop=stop)
        if tests is None:
            return Outcome(caught=dict.fromkeys(DATABASES, "(the tests did not end)"), ran=0)
        caught: dict[str, str] = {}
        for test in tests:
            if not test.passed:
                used = {query.partition("/")[0] for query in test.queries}
                for database in test.databases or sorted(used):
                    caught.setdefault(database, test.id)
        return Outcome(caught=caught, ran=len(tests))

    def _pytest(
        self,
        package: Path,
        arguments: Sequence[str],
        *,
        stop: bool = False,
        patience: float = PATIENCE,
    ) -> list[Test] | None:
        with tempfile.TemporaryDirectory(dir=self._home) as home:
            report = Path(home, "report")
            command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "tools.guards.plugin"]
            command += ["-p", "no:cacheprovider", "-o", f"timeout={TEST_PATIENCE}"]
            command += [f"--basetemp={home}/tests", *arguments]
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment(package, report, Path(home), stop=stop),
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
        self, package: Path, report: Path, home: Path, *, stop: bool
    ) -> dict[str, str]:
        environment = os.environ | {
            "PYTHONPATH": str(package),
            "HOLDFAST_TEST_POSTGRES": self._postgres,
            # What Hypothesis learns from broken code is of no use to the code itself.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
            plugin.REPORT: str(report),
        }
        return environment | ({plugin.STOP: "1"} if stop else {})


def fingerprint() -> str:
    """What the answer depends on: all of the source and all of the tests."""
    found = hashlib.sha256()
    for folder in (SOURCE, TESTS):
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".py", ".sql"}:
                found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()


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
