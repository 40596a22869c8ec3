"""The plugin for pytest, as a project of a user loads it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PLUGIN = "holdfast.testing.pytest_plugin"
PROGRAM = """
from holdfast import Holdfast

hf = Holdfast("sqlite:///shop.db")


@hf.task
def greet(name: str) -> str:
    return f"hello {name}"


@hf.task
def wake(who: str) -> str:
    return f"good morning {who}"


kept = wake.schedule("mornings", "0 9 * * *", who="ada")
"""
TESTS = """
import os

from shop import greet, hf, kept, wake


def test_a_greeting(harness):
    assert greet.enqueue("ada").result() == "hello ada"
    harness.assert_ran_once(greet)


def test_ticks_come_also_where_the_test_does_nothing_but_let_time_pass(harness):
    harness.advance("2d")
    harness.assert_ran(wake, times=2)


def test_what_the_program_schedules_at_import_is_in_the_store_of_each_test(harness):
    (schedule,) = hf.schedules.list()
    assert (schedule.name, schedule.task, schedule.input) == (kept.name, "wake", {"who": "ada"})
    harness.advance_to(schedule.next_at)
    harness.assert_ran_once(wake)
    assert not os.path.exists("shop.db")


def test_each_test_has_a_store_of_its_own(harness):
    assert hf.tasks.list() == []
    assert not os.path.exists("shop.db")


def test_a_message_says_what_was_there(harness):
    greet.enqueue("ada")
    harness.crash(greet)
    harness.assert_enqueued(greet, name="bob")


def test_a_crash_that_never_comes(harness):
    harness.crash(greet)


def test_without_the_fixture_the_real_store_has_what_was_scheduled_before_and_what_is_now():
    assert not os.path.exists("shop.db")
    wake.schedule("evenings", "0 18 * * *", who="bob")
    assert [each.name for each in hf.schedules.list()] == ["evenings", "mornings"]
    assert os.path.exists("shop.db")
    hf.close()
"""


def test_a_project_has_the_fixture_and_reads_the_messages(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    (tmp_path / "test_shop.py").write_text(TESTS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-W", "error"],
        cwd=tmp_path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 6 passed, 1 error" in ran.stdout, ran.stdout + ran.stderr
    assert "attempt 1 of greet dies before its report: this never happened" in ran.stdout
    assert "greet(name='bob') was not enqueued; enqueued were greet(name='ada')" in ran.stdout


def test_loading_the_plugin_loads_next_to_nothing_of_holdfast() -> None:
    asked = f"import sys, pytest, {PLUGIN}; print(*(m for m in sys.modules if 'holdfast' in m))"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [
        "holdfast",
        "holdfast.testing",
        "holdfast.api",
        "holdfast.api.program_engine",
        PLUGIN,
    ]


def test_the_package_tells_pytest_of_its_plugin_and_needs_no_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"holdfast": PLUGIN}
    assert not any("pytest" in each for each in project["dependencies"])
    asked = "import sys; sys.modules['pytest'] = None; from holdfast.testing import *"
    subprocess.run([sys.executable, "-c", asked], check=True)
