"""When a guard is as it should be, and which of them a sample takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.guards.predicates import find
from tools.guards.record import Caught, Redundant
from tools.guards.search import choose_sample, judge
from tools.guards.suite import DATABASES, ROOT

BOTH = dict.fromkeys(DATABASES, "tests/a.py::test_a")
ANYWHERE = Redundant(query="one", predicate="a", because="a constraint")
ON_SQLITE = Redundant(query="one", predicate="a", because="turns", databases=("sqlite",))


@pytest.mark.parametrize(
    ("caught", "redundant", "good"),
    [
        (BOTH, None, True),
        ({"sqlite": BOTH["sqlite"]}, None, False),
        ({}, ANYWHERE, True),
        (BOTH, ANYWHERE, False),
        ({"postgresql": BOTH["postgresql"]}, ON_SQLITE, True),
        ({"sqlite": BOTH["sqlite"]}, ON_SQLITE, False),
    ],
)
def test_a_guard_is_noticed_exactly_where_it_is_not_listed(
    caught: Caught, redundant: Redundant | None, *, good: bool
) -> None:
    assert judge(caught, redundant)[1] is good


def test_a_sample_is_of_guards_that_tests_notice_and_is_another_for_each_seed(
    tmp_path: Path,
) -> None:
    (tmp_path / "some.sql").write_text("-- name: one\nDELETE FROM t\nWHERE a\n  AND b\n")
    guards = find(tmp_path)
    this = test_a_sample_is_of_guards_that_tests_notice_and_is_another_for_each_seed.__name__
    noticed = dict.fromkeys(DATABASES, f"{Path(__file__).relative_to(ROOT)}::{this}")
    known = {guard.name: noticed for guard in guards}
    samples = [choose_sample(guards, known, {}, 1, seed=seed) for seed in range(20)]
    assert {guard.text for sample in samples for guard in sample} == {"a", "b"}
    assert choose_sample(guards, known, {"one: a": ANYWHERE}, 5, seed=1) == guards[1:]
    assert choose_sample(guards, {}, {}, 5, seed=1) == []
