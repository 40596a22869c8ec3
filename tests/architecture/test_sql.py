"""How guards are written, so that each can be taken out alone, and that taking one out is fair."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.store import migrations
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.queries import NamedQueries, Query
from tools.guards import record
from tools.guards.predicates import find, writes
from tools.guards.removal import remove

GUARDS = find(queries.DIRECTORY)
DIALECTS: tuple[Dialect, Dialect] = ("sqlite", "postgresql")

LOADED = {dialect: NamedQueries(dialect, queries.DIRECTORY) for dialect in DIALECTS}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_says_what_it_is_for_and_one_that_writes_what_guards_it(
    dialect: Dialect,
) -> None:
    silent = [
        query.name
        for query in LOADED[dialect].values()
        if not query.purpose or (writes(query.text) and not query.guards)
    ]
    assert silent == []


def test_the_schema_can_be_read_by_the_sqlite_that_python_itself_carries() -> None:
    with closing(sqlite3.connect(":memory:")) as other:
        for migration in migrations.load("sqlite"):
            other.executescript(migration.text)
        assert other.execute("SELECT count(*) FROM holdfast_task").fetchone() == (0,)


def test_the_message_of_a_trigger_is_one_literal_which_every_sqlite_can_read() -> None:
    text = "".join(migration.text for migration in migrations.load("sqlite"))
    said = re.findall(r"RAISE\s*\(\s*\w+,(.*?)\);", text, re.DOTALL)
    assert said
    assert [each for each in said if not re.fullmatch(r"\s*'(?:[^']|'')*'\s*", each)] == []


def test_each_conjunct_of_a_guard_stands_on_a_line_of_its_own() -> None:
    crowded = [
        guard.name for guard in GUARDS if not (guard.leads_line or guard.on_one_line or guard.alone)
    ]
    assert crowded == [], "\n".join(crowded)


def test_every_status_that_a_worker_reports_on_is_guarded_by_its_fence() -> None:
    reports = ("complete_tasks", "fail_tasks", "release_tasks", "renew_leases", "lose_tasks")
    for query in reports:
        texts = {guard.text for guard in GUARDS if guard.query == query}
        assert {"status = 'running'", "attempt = r.fence"} <= texts


def test_the_conflict_clause_of_every_insert_can_be_taken_out() -> None:
    every = [query for queries in LOADED.values() for query in queries.values()]
    about = {query.name for query in every if "ON CONFLICT" in query.text}
    assert about == {guard.query for guard in GUARDS if guard.conflict}


def test_a_guard_taken_out_leaves_all_else_as_it_was(tmp_path: Path) -> None:
    copy = tmp_path / "sql"
    shutil.copytree(queries.DIRECTORY, copy)
    unfair = []
    for guard in GUARDS:
        place = copy / guard.path.relative_to(queries.DIRECTORY)
        text = place.read_text()
        place.write_text(remove(text, guard))
        for dialect in DIALECTS:
            before, after = LOADED[dialect], NamedQueries(dialect, copy)
            manners = _manners(before[guard.query]), _manners(after[guard.query])
            if _changed(before, after) != {guard.query} or manners[0] != manners[1]:
                unfair.append(f"{guard.name} ({dialect})")
        place.write_text(text)
    assert unfair == [], "\n".join(unfair)


def _changed(before: NamedQueries, after: NamedQueries) -> set[str]:
    """Of the queries that are written in other words, those that come out as others."""
    assert before.sources.keys() == after.sources.keys()
    written = [
        name
        for name, source in before.sources.items()
        if (source.headers, source.body) != (after.sources[name].headers, after.sources[name].body)
    ]
    return {name for name in written if before[name] != after[name]}


def test_every_guard_listed_as_redundant_is_there() -> None:
    assert record.read_redundant().keys() <= {guard.name for guard in GUARDS}


def test_the_docs_tell_of_every_guard_and_of_no_other() -> None:
    told = record.read_table()
    assert told.keys() == {guard.name for guard in GUARDS}, "run `python -m tools.guards`"


def test_the_docs_know_for_every_guard_a_test_or_a_reason_on_each_database() -> None:
    told = record.read_table()
    reasons = {name: set(each.databases) for name, each in record.read_redundant().items()}
    silent = [
        name
        for name, caught in told.items()
        if caught.keys() | reasons.get(name, set()) != set(DIALECTS)
    ]
    assert silent == []
    noticed = {test for caught in told.values() for test in caught.values()}
    assert {test for test in noticed if not record.exists(test)} == set()


def _manners(query: Query) -> object:
    return query.parameters, query.lists, query.columns, query.changes
