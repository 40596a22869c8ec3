"""What is known of guards: the page in the docs is read back as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.guards.predicates import Predicate, find
from tools.guards.record import Caught, Redundant, read_table, write_table

GUARD = "a = 1 || 'x'"
NAME = f"one: {GUARD}"
BECAUSE = Redundant(query="one", predicate=GUARD, because="CHECK (a IN (1, 2) || 'y')")
BOTH = {"sqlite": "tests/a.py::test_a[sqlite]", "postgresql": "tests/a.py::test_a[postgresql]"}


def guards(folder: Path) -> list[Predicate]:
    (folder / "some.sql").write_text(f"-- name: one\nDELETE FROM t\nWHERE {GUARD}\n  AND b\n")
    return find(folder)


@pytest.mark.parametrize(
    ("caught", "written", "read"),
    [
        (BOTH, "`a.py::test_a`", dict.fromkeys(BOTH, "tests/a.py::test_a")),
        (
            {name: f"tests/a.py::test_a[x-{name}-2]" for name in BOTH},
            "`a.py::test_a[x-*-2]`",
            {name: f"tests/a.py::test_a[x-{name}-2]" for name in BOTH},
        ),
        (
            {"sqlite": "tests/a.py::test_a[sqlite]", "postgresql": "tests/b.py::test_b"},
            "`a.py::test_a[sqlite]` (sqlite); `b.py::test_b` (postgresql)",
            {"sqlite": "tests/a.py::test_a[sqlite]", "postgresql": "tests/b.py::test_b"},
        ),
        (
            {"postgresql": "tests/b.py::test_b"},
            "`b.py::test_b` (postgresql)",
            {"postgresql": "tests/b.py::test_b"},
        ),
        ({}, "**nothing**", {}),
    ],
)
def test_the_page_says_which_test_noticed(
    tmp_path: Path, caught: Caught, written: str, read: Caught
) -> None:
    page = tmp_path / "guards.md"
    write_table(guards(tmp_path), {NAME: caught}, {}, page)
    assert f"| {written} |" in page.read_text()
    assert read_table(page) == {NAME: read, "one: b": {}}


def test_the_page_says_why_a_guard_is_redundant(tmp_path: Path) -> None:
    page = tmp_path / "guards.md"
    write_table(guards(tmp_path), {}, {NAME: BECAUSE}, page)
    assert "redundant: CHECK (a IN (1, 2) \\|\\| 'y')" in page.read_text()
    assert read_table(page)[NAME] == {}
