"""Which conjuncts of a statement are guards, and what is left when one is taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.guards.predicates import Predicate, find, writes
from tools.guards.removal import remove


def guards(folder: Path, statement: str) -> list[Predicate]:
    (folder / "some.sql").write_text(f"-- name: one\n-- purpose: a test\n{statement}\n")
    return find(folder)


def texts(folder: Path, statement: str) -> list[str]:
    return [guard.text for guard in guards(folder, statement)]


def test_each_conjunct_of_a_where_is_a_guard(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = 1\nWHERE id = :id\n  AND status = 'x'\n  AND NOT blocked"
    assert texts(tmp_path, statement) == ["id = :id", "status = 'x'", "NOT blocked"]


def test_a_query_that_only_reads_has_no_guards(tmp_path: Path) -> None:
    assert texts(tmp_path, "SELECT id FROM t WHERE status = 'x'") == []
    assert not writes("SELECT 1 -- UPDATE t")
    assert not writes("SELECT id FROM t FOR NO KEY UPDATE")
    assert writes("INSERT\n  INTO t VALUES (1)")


def test_the_conjuncts_of_a_subselect_are_guards_after_the_one_they_stand_in(
    tmp_path: Path,
) -> None:
    statement = "DELETE FROM t WHERE id IN (SELECT id FROM s WHERE a = 1 AND b = 2) AND c = 3"
    assert texts(tmp_path, statement) == [
        "id IN (SELECT id FROM s WHERE a = 1 AND b = 2)",
        "a = 1",
        "b = 2",
        "c = 3",
    ]


def test_nested_parentheses_stay_in_one_piece(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = 1 WHERE ((a = 1 AND (b OR c)) OR d) AND f(x, (y)) = 2"
    assert texts(tmp_path, statement) == ["((a = 1 AND (b OR c)) OR d)", "f(x, (y)) = 2"]


def test_a_recursive_table_is_read_up_to_its_union(tmp_path: Path) -> None:
    statement = """
    UPDATE t SET a = 1 WHERE id IN (
      WITH RECURSIVE tree (id) AS (
        SELECT id FROM t WHERE id = :id AND open
        UNION SELECT child.id FROM t AS child JOIN tree ON child.parent = tree.id)
      SELECT id FROM tree)
    """
    assert texts(tmp_path, statement)[1:] == ["id = :id", "open"]


def test_the_and_of_between_joins_no_conjuncts(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = 1 WHERE b BETWEEN 1 AND 2 AND c BETWEEN d AND e AND f"
    assert texts(tmp_path, statement) == ["b BETWEEN 1 AND 2", "c BETWEEN d AND e", "f"]


def test_a_case_is_one_piece_and_its_conditions_are_no_guards(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = 1 WHERE b <> CASE WHEN c AND d THEN 1 ELSE 2 END AND e"
    assert texts(tmp_path, statement) == ["b <> CASE WHEN c AND d THEN 1 ELSE 2 END", "e"]


def test_the_value_that_a_column_is_set_to_is_no_guard(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = (SELECT b FROM s WHERE s.id = t.id AND c) WHERE id = 1"
    assert texts(tmp_path, statement) == ["id = 1"]


def test_a_conflict_names_its_index_and_guards_only_what_it_does(tmp_path: Path) -> None:
    statement = """
    INSERT INTO t (key, a) SELECT r.k, r.a FROM {rows} AS r WHERE true
    ON CONFLICT (key) WHERE key IS NOT NULL DO UPDATE SET a = excluded.a
    WHERE t.a <> excluded.a
    RETURNING key
    """
    assert texts(tmp_path, statement) == [
        "ON CONFLICT (key) WHERE key IS NOT NULL DO UPDATE",
        "t.a <> excluded.a",
    ]


def test_the_conflict_clause_of_an_insert_is_a_guard_that_goes_as_a_whole(
    tmp_path: Path,
) -> None:
    begins = "INSERT INTO t (key, a)\nSELECT r.k, r.a FROM {rows} AS r\nWHERE r.a > 0"
    for does in ("DO NOTHING", "DO UPDATE SET\n  a = excluded.a\nWHERE t.a <> excluded.a"):
        statement = f"{begins}\nON CONFLICT (key) {does}"
        for ends in ("", "\nRETURNING key"):
            found = guards(tmp_path, statement + ends)
            assert [guard.text for guard in found[:2]] == [
                "r.a > 0",
                f"ON CONFLICT (key) {' '.join(does.split()[:2])}",
            ]
            changed = remove(found[1].path.read_text(), found[1])
            assert changed.split()[7:] == (begins + ends).split()


def test_a_guard_ends_where_the_next_clause_begins(tmp_path: Path) -> None:
    statement = (
        "UPDATE t SET a = 1 WHERE id IN (SELECT id FROM t WHERE b ORDER BY c LIMIT 1) RETURNING d"
    )
    assert texts(tmp_path, statement) == [
        "id IN (SELECT id FROM t WHERE b ORDER BY c LIMIT 1)",
        "b",
    ]


def test_words_in_strings_and_comments_are_no_sql(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = 1\nWHERE b = 'x AND (y' -- AND WHERE (\n  AND c = 'it''s'"
    assert texts(tmp_path, statement) == ["b = 'x AND (y'", "c = 'it''s'"]


def test_a_guard_that_stands_twice_is_known_by_its_place(tmp_path: Path) -> None:
    statement = "DELETE FROM t WHERE id IN (SELECT id FROM t WHERE a) AND a"
    names = [guard.name for guard in guards(tmp_path, statement)]
    assert names[1:] == ["one: a", "one: a (place 2)"]


@pytest.mark.parametrize(
    ("statement", "place", "left"),
    [
        ("DELETE FROM t WHERE a = :a AND b", 0, "DELETE FROM t WHERE (a = :a OR true) AND b"),
        ("DELETE FROM t WHERE a = :a AND b", 1, "DELETE FROM t WHERE a = :a AND (b OR true)"),
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM s WHERE a)",
            1,
            "DELETE FROM t WHERE id IN (SELECT id FROM s WHERE (a OR true))",
        ),
    ],
)
def test_a_guard_taken_out_is_true_for_every_row(
    tmp_path: Path, statement: str, place: int, left: str
) -> None:
    chosen = guards(tmp_path, statement)[place]
    changed = remove(chosen.path.read_text(), chosen)
    assert " ".join(changed.splitlines()[2].split()) == left


def test_a_clause_taken_out_keeps_its_text_for_the_explanation(tmp_path: Path) -> None:
    statement = "UPDATE t SET a = 1\nWHERE due -- clause: due\n  AND b"
    chosen = guards(tmp_path, statement)[0]
    lines = remove(chosen.path.read_text(), chosen).splitlines()
    assert lines[3:7] == ["WHERE (due OR true)", "/*", "WHERE due -- clause: due", "*/"]
