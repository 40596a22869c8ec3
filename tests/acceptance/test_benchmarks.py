"""The benchmarks, as `make bench` runs them, in small."""

from __future__ import annotations

import os
import re
import shutil
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
    "--pairs 1 --tasks 60 --pipelines 12 --alone 2 --finished 200 --drained 100 --claims 40 "
    "--batch 25 --loop 40 --short 8 --dispatches 5 --idle 1 --starts 1 --durable 40 --files 20"
)
IN_NO_TIME = (
    "--pairs 1 --tasks 20 --pipelines 2 --alone 1 --finished 50 --drained 20 --claims 20 "
    "--batch 25 --loop 10 --short 4 --dispatches 5 --idle 0 --starts 1 --durable 40 --files 20"
)
# All measures of two checkouts on both databases, beside other tests.
PATIENCE = 220
ROW = re.compile(r"^\| (.+?) +\| (sqlite|postgresql) +\| .*\d.* \|$", re.MULTILINE)


def measured(module: str, *options: str | Path) -> str:
    ended = run(ROOT, module, *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def run(folder: Path, module: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=Eve", "-c", "user.email=e@example.org")
    command = ["git", "-C", str(folder), *named, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def plain_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is measured and what measures it, in a folder of which git knows nothing."""
    copy = tmp_path_factory.mktemp("copy") / "tree"
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in ("benchmarks", "src", "tests/servers.py"):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, target)
    return copy


@pytest.fixture(scope="module")
def git_copy(plain_copy: Path) -> Path:
    """The same in a checkout: HEAD lacks two measures, and the commit before HEAD has nothing."""
    copy = plain_copy.parent / "checkout"
    shutil.copytree(plain_copy, copy)
    # Nobody reads these figures, so nothing waits for a disk, and each wait is measured once.
    replace(copy / "benchmarks/places.py", '"on"', '"off"')
    replace(copy / "benchmarks/waiting.py", "TURNS = 5", "TURNS = 1")
    git(copy, "init", "--quiet")
    git(copy, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    replace(copy / "benchmarks/waiting.py", "def dispatch_across", "def dispatch_of_old")
    replace(copy / "benchmarks/scenarios.py", "def completions", "def completions_of_old")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "--message", "Measure")
    replace(copy / "benchmarks/waiting.py", "def dispatch_of_old", "def dispatch_across")
    replace(copy / "benchmarks/scenarios.py", "def completions_of_old", "def completions")
    return copy


@pytest.mark.timeout(PATIENCE + 20)
def test_the_benchmarks_print_a_table_of_both_databases_and_write_their_page(
    tmp_path: Path,
) -> None:
    page = tmp_path / "benchmarks.md"
    shown = measured("benchmarks", *SMALL.split(), "--write", page)
    assert "pair 1 of 1" in shown
    rows = ROW.findall(shown)
    assert len({what for what, _ in rows}) == 49
    assert Counter(database for _, database in rows) == {"sqlite": 45, "postgresql": 48}
    written = page.read_text(encoding="utf-8")
    assert ROW.findall(written) == rows
    assert SMALL in written
    assert all(f"- {fact}: " in written for fact in ("cores", "Python", "SQLite", "PostgreSQL"))


@pytest.mark.timeout(PATIENCE + 20)
def test_a_second_checkout_is_measured_in_turns_with_this_one(git_copy: Path) -> None:
    ended = run(git_copy, "benchmarks", *IN_NO_TIME.split(), "--beside", "HEAD")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    shown = ended.stdout
    rows = ROW.findall(shown)
    assert Counter(database for _, database in rows) == {"sqlite": 37, "postgresql": 41}
    assert "| this tree " in shown
    assert "| HEAD " in shown
    for lacking in ("dispatch_across", "completions"):
        assert f"left out: {lacking}, which HEAD cannot measure" in shown
    assert "pair 1 of 1 of the rates" in shown
    assert len(git(git_copy, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        ("v0.0", "git finds no commit that 'v0.0' names"),
        ("HEAD~1", "HEAD~1 has no benchmarks/scenarios.py, so it cannot be measured"),
    ],
)
def test_a_revision_that_cannot_be_measured_is_refused_at_once(
    git_copy: Path, revision: str, reason: str
) -> None:
    ended = run(git_copy, "benchmarks", "--beside", revision)
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (1, "", reason)


def test_a_second_checkout_is_refused_where_there_is_no_first(plain_copy: Path) -> None:
    ended = run(plain_copy, "benchmarks", "--beside", "HEAD")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"a second checkout needs a git checkout, and {plain_copy} is none" in ended.stderr


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
