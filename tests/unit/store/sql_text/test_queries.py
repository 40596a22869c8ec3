"""Named SQL: its headers, its macros, and the events woven into transitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from holdfast.store.sql_text.queries import MalformedQuery, Query

DIALECTS: tuple[Dialect, Dialect] = ("sqlite", "postgresql")


def load(directory: Path, text: str, dialect: Dialect = "sqlite") -> dict[str, Query]:
    (directory / "some.sql").write_text(text)
    return dict(queries.load(dialect, directory))


def one(directory: Path, body: str, dialect: Dialect, *headers: str) -> Query:
    text = "\n".join(["-- name: one", "-- purpose: a test", *headers, body])
    return load(directory, text, dialect)["one"]


def test_both_dialects_define_the_same_names() -> None:
    assert queries.load("sqlite").keys() == queries.load("postgresql").keys()


def test_both_dialects_take_the_same_parameters() -> None:
    sqlite, postgresql = (queries.load(dialect) for dialect in DIALECTS)
    assert {name: query.parameters for name, query in sqlite.items()} == {
        name: query.parameters for name, query in postgresql.items()
    }


def test_a_header_goes_on_over_indented_comment_lines(tmp_path: Path) -> None:
    query = one(tmp_path, "SELECT 1", "sqlite", "-- guards: the status", "--   and the fence")
    assert query.guards == "the status and the fence"


def test_comments_in_a_body_are_dropped(tmp_path: Path) -> None:
    query = one(tmp_path, "SELECT 1 -- :one\n-- {two}\n, '--' AS three;", "sqlite")
    assert query.text == "SELECT 1\n, '--' AS three"
    assert query.parameters == frozenset()


def test_a_dialect_adds_queries_and_stands_in_for_shared_ones(tmp_path: Path) -> None:
    (tmp_path / "sqlite").mkdir()
    (tmp_path / "sqlite/own.sql").write_text(
        "-- name: one\n-- purpose: p\nSELECT 2\n-- name: two\n-- purpose: p\nSELECT 3\n"
    )
    found = load(tmp_path, "-- name: one\n-- purpose: p\nSELECT 1\n")
    assert [found[name].text for name in ("one", "two")] == ["SELECT 2", "SELECT 3"]


NEW = "-- name: a\n-- purpose: p\n-- changes: task\n-- event: 'x'"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-- name: a\nSELECT 1", "purpose"),
        ("-- name: a\n-- purpose:\nSELECT 1", "purpose"),
        ("-- name: a\n-- purpose: p\n-- guard: g\nSELECT 1", "guard"),
        ("-- name: a\n-- purpose: p\n-- purpose: q\nSELECT 1", "twice"),
        ("-- name: a\n-- purpose: p\nSELECT 1\n-- name: a\n-- purpose: p\nSELECT 2", "twice"),
        ("-- name: a\n-- purpose: p\nSELECT {lcok}", "lcok"),
        ("-- name: a\n-- purpose: p\nSELECT {", "stray"),
        ("-- name: a\n-- purpose: p\nSELECT * FROM {rows}", "columns"),
        ("-- name: a\n-- purpose: p\n-- rows: id varchar\nSELECT * FROM {rows}", "varchar"),
        ("-- name: a\n-- purpose: p\n-- changes: tusk\nSELECT 1", "tusk"),
        ("-- name: a\n-- purpose: p\n-- event: 'x'\nSELECT 1", "event without changes"),
        ("-- name: a\n-- purpose: p\n-- changes: task\nUPDATE holdfast_task", "event"),
        (
            "-- name: a\n-- purpose: p\n-- changes: task\n-- event: 'x'\nUPDATE holdfast_run SET",
            "holdfast_run",
        ),
        ("-- name: a\n-- purpose: p\n-- changes: task\n-- event: 'x'\nSELECT 1", "no statement"),
        ("-- name: a\n-- purpose: p\n-- answers: count\nSELECT 1", "answers without changes"),
        (f"{NEW}\n-- answers: number\nINSERT INTO holdfast_task SELECT 1", "number"),
        (f"{NEW}\n-- answers: count\n-- returning: x\nINSERT INTO holdfast_task", "returning"),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(MalformedQuery, match=reason) as refusal:
        load(tmp_path, text)
    assert "some.sql:" in str(refusal.value)


def test_parameters_keep_their_names_where_strings_and_casts_are_left_alone(tmp_path: Path) -> None:
    body = "SELECT ':no', \":no\", 1::bigint, :yes, a LIKE '5%'"
    sqlite = one(tmp_path, body, "sqlite")
    postgresql = one(tmp_path, body, "postgresql")
    assert sqlite.text == body
    assert postgresql.text == "SELECT ':no', \":no\", 1::bigint, %(yes)s, a LIKE '5%%'"
    assert sqlite.parameters == postgresql.parameters == {"yes"}


def test_locks_are_written_for_postgresql_alone(tmp_path: Path) -> None:
    body = "SELECT 1 {lock} {lock task} {skip_locked} {skip_locked task} {share} {share run}"
    assert one(tmp_path, body, "sqlite").text == "SELECT 1"
    assert one(tmp_path, body, "postgresql").text == (
        "SELECT 1 FOR NO KEY UPDATE FOR NO KEY UPDATE OF task FOR NO KEY UPDATE SKIP LOCKED "
        "FOR NO KEY UPDATE OF task SKIP LOCKED FOR SHARE FOR SHARE OF run"
    )


def test_lists_are_known_by_their_macro(tmp_path: Path) -> None:
    for dialect in DIALECTS:
        query = one(tmp_path, "SELECT * FROM {each ids} AS one WHERE x = :x", dialect)
        assert query.parameters == {"ids", "x"}
        assert query.lists == {"ids"}


def test_on_postgresql_a_set_that_a_row_must_be_in_is_an_array(tmp_path: Path) -> None:
    body = "SELECT a FROM b WHERE a IN (SELECT c FROM d WHERE (e) AND f IN (SELECT 1)) AND (g)"
    assert one(tmp_path, body, "sqlite").text == body
    assert one(tmp_path, body, "postgresql").text == (
        "SELECT a FROM b WHERE a = ANY (ARRAY(SELECT c FROM d WHERE (e) "
        "AND f = ANY (ARRAY(SELECT 1)))) AND (g)"
    )
    for left in ("a NOT IN (SELECT 1)", "(b OR a IN (SELECT 1))", "a IN ('x', 'y')"):
        assert one(tmp_path, f"VALUES (1) WHERE {left}", "postgresql").text.endswith(left)


def test_a_macro_inside_a_string_is_only_a_string(tmp_path: Path) -> None:
    assert one(tmp_path, "SELECT '{\"a\": {rows}}'", "sqlite").text == "SELECT '{\"a\": {rows}}'"


CHANGES = ("-- changes: task", "-- event: 'task.' || task.status", "-- returning: task.agent")


def test_a_transition_returns_what_its_event_needs(tmp_path: Path) -> None:
    query = one(tmp_path, "UPDATE holdfast_task AS task SET x = 1", "sqlite", *CHANGES)
    assert query.changes == "task"
    assert "RETURNING holdfast_task.id AS entity" in query.text
    # The alias is not known in RETURNING, and what looks like one inside a string stays.
    assert query.text.endswith("(NULL) AS data, holdfast_task.agent")
    assert "('task.' || holdfast_task.status) AS type" in query.text


def test_on_postgresql_a_transition_and_its_events_are_one_statement(tmp_path: Path) -> None:
    body = "WITH a AS (UPDATE b SET c = 1 RETURNING d)\nUPDATE holdfast_task AS task SET x = 1"
    text = one(tmp_path, body, "postgresql", *CHANGES).text
    assert text.startswith("WITH a AS (UPDATE b SET c = 1 RETURNING d), changed AS (")
    assert "INSERT INTO holdfast_event" in text
    assert "RETURNING task.id AS entity, task.run_id AS run_id" in text


def test_a_statement_that_answers_a_count_is_counted_on_sqlite_and_counts_on_postgresql(
    tmp_path: Path,
) -> None:
    headers = ("-- changes: task", "-- event: 'task.created'", "-- answers: count")
    body = "INSERT INTO holdfast_task (id) SELECT 1"
    quiet = one(tmp_path, body, "sqlite", *headers)
    assert quiet.answers_count
    assert quiet.text == body
    assert quiet.event_insert.startswith("INSERT INTO holdfast_event")
    assert "('task.created') AS type" in quiet.event_insert
    counting = one(tmp_path, body, "postgresql", *headers)
    assert "count(*) <> %(holdfast_wanted)s" in counting.text
    assert counting.parameters == frozenset()


def test_a_runs_event_belongs_to_the_run_itself(tmp_path: Path) -> None:
    headers = ("-- changes: run", "-- event: 'run.failed'", "-- data: '{}'")
    text = one(tmp_path, "UPDATE holdfast_run SET x = 1", "sqlite", *headers).text
    assert "holdfast_run.id AS entity, holdfast_run.id AS run_id" in text
    assert "0 AS attempt" in text
    assert "('{}') AS data" in text


def test_a_deletion_says_where_it_leads(tmp_path: Path) -> None:
    headers = ("-- to: NULL", "-- version: version + 1", *CHANGES)
    text = one(tmp_path, "DELETE FROM holdfast_task AS task", "sqlite", *headers).text
    assert "version + 1 AS version" in text
    assert "NULL AS status" in text
