"""The benchmarks, as `make bench` runs them, in small."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks import by_hand_postgresql, by_hand_sqlite
from benchmarks.by_hand import LEASE, WORKER
from benchmarks.growth import MORE, MUCH, tell
from holdfast.engine.engine import Engine
from tests.contract.raw_store import raw

ROOT = Path(__file__).parents[2]
SMALL = (
    "--pairs 1 --tasks 60 --pipelines 12 --alone 2 --finished 200 --claims 40 --batch 25 "
    "--loop 40 --dispatches 5 --idle 1"
)
ROW = re.compile(r"^\| (.+?) +\| (sqlite|postgresql) +\| .*\d.* \|$", re.MULTILINE)


def measured(module: str, *options: str | Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_benchmarks_print_a_table_of_both_databases_and_write_their_page(
    tmp_path: Path,
) -> None:
    page = tmp_path / "benchmarks.md"
    shown = measured("benchmarks", *SMALL.split(), "--write", page)
    assert "pair 1 of 1" in shown
    rows = ROW.findall(shown)
    assert len({what for what, _ in rows}) == 20
    assert Counter(database for _, database in rows) == {"sqlite": 20, "postgresql": 20}
    written = page.read_text(encoding="utf-8")
    assert ROW.findall(written) == rows
    assert SMALL in written
    assert all(f"- {fact}: " in written for fact in ("cores", "Python", "SQLite", "PostgreSQL"))


def test_the_claim_by_hand_finds_who_is_first_in_line_by_the_index_of_the_line(
    engine: Engine, store_url: str
) -> None:
    """A comparison with SQL that walks through the table would flatter whoever does not."""
    asked = {"now": 1, "worker": WORKER, "lease": LEASE, "count": 1}
    assert engine.doctor().ok
    plan: list[Any]
    if store_url.startswith("sqlite"):
        with raw(store_url) as read:
            text = re.sub(r":(\w+)", lambda found: repr(asked[found[1]]), by_hand_sqlite.CLAIM)
            plan = read(f"EXPLAIN QUERY PLAN {text}")
    else:
        with psycopg.connect(store_url, options=by_hand_postgresql.INDEXED) as connection:
            plan = connection.execute(
                f"EXPLAIN {by_hand_postgresql.CLAIM}".encode(), asked
            ).fetchall()
    assert "holdfast_task_ready" in str(plan)
    assert "SCAN holdfast_task" not in str(plan)


def test_the_server_is_measured_over_http_and_its_section_written_beside_the_rest(
    tmp_path: Path,
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("# Benchmarks\n\n<!-- section http -->\n42 before\n<!-- end of http -->\n")
    small = "--tasks 500 --alone 20 --workers 30 --readers 3 --seconds 0.2 --databases sqlite"
    measured("benchmarks.http", *small.split(), "--write", page)
    written = page.read_text(encoding="utf-8")
    assert len(ROW.findall(written)) == 4
    assert written.startswith("# Benchmarks\n\n<!-- section http -->")
    assert (small in written, "42 before" in written) == (True, False)


def test_a_limit_costs_no_more_beside_more_that_waits() -> None:
    holding = "release_of_an_agent_at_its_limit"
    shown = measured("benchmarks.growth", "--only", holding, "--database", "sqlite")
    assert re.fullmatch(r"sqlite: \d+ statements looked at\n", shown)


def test_a_statement_that_grows_with_what_it_does_not_touch_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    costs = {MUCH: 1_000, MORE: 9_000}
    assert tell("sqlite", {("walk", "plan"): costs, ("look", "plan"): {MUCH: 9, MORE: 90}})
    assert "walk                   1,000 →   9,000  plan" in capsys.readouterr().out
