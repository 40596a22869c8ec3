"""Transitions: statements that change rows, with the events of the rows woven in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from holdfast.store.sql_text.macros import Dialect

EVENT_COLUMNS = (
    "entity",
    "run_id",
    "version",
    "from_status",
    "to_status",
    "attempt",
    "generation",
    "actor",
    "at",
    "type",
    "data",
)
# What a transition returns, in the order of EVENT_COLUMNS.
RETURNED_COLUMNS = (
    "entity",
    "run_id",
    "version",
    "previous",
    "status",
    "attempt",
    "generation",
    "changed_by",
    "changed_at",
    "type",
    "data",
)
_INTO_EVENTS = f"INSERT INTO holdfast_event ({', '.join(EVENT_COLUMNS)})"
INSERT_EVENTS = f"{_INTO_EVENTS} VALUES "
# Checked by the server, so that the COMMIT is sent before anybody knows the number of rows.
WANTED_PARAMETER = "holdfast_wanted"
_REQUIRE_ALL = (
    f"CASE WHEN :{WANTED_PARAMETER} >= 0 AND count(*) <> :{WANTED_PARAMETER}"
    " THEN holdfast_contend('a key was taken by another process') END"
)
_CHANGED = "changed.*, CAST(pg_current_xact_id_if_assigned() AS text) AS xid"
_TOKEN = re.compile(r"'(?:[^']|'')*'|\b(\w+)\.")
_SCAN = re.compile(
    r"""
      '(?:[^']|'')*' | --[^\n]*
    | (?P<open>\()
    | (?P<close>\))
    | \b(?:UPDATE|INSERT(?:\s+OR\s+\w+)?\s+INTO|DELETE\s+FROM)
      \s+(?P<table>\w+)(?:\s+AS\s+(?P<alias>\w+))?
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class CommitProof:
    """One event of a transaction: the store has the event exactly if the commit succeeded.

    Of a new row only the entity and the version are known before the commit is answered.
    """

    entity: str
    version: int
    at: int | None = None
    type: str | None = None

    @classmethod
    def of_new_row(cls, entity: str) -> CommitProof:
        """The proof by a row that the transaction has made: nothing else uses its new id."""
        return cls(entity=entity, version=1)

    @classmethod
    def of(cls, changed: Mapping[str, Any]) -> CommitProof:
        return cls(
            entity=changed["entity"],
            version=changed["version"],
            at=changed["changed_at"],
            type=changed["type"],
        )

    def as_parameters(self) -> dict[str, Any]:
        return asdict(self)


def compose(body: str, headers: Mapping[str, str], entity: str, dialect: Dialect) -> str:
    start, table = _main_statement(body, f"holdfast_{entity}")
    common, main = body[:start].strip(), body[start:].strip()
    if dialect == "sqlite" and is_counted(headers):
        return "\n".join(filter(None, (common, main)))
    returning = f"RETURNING {_returning(headers, entity, table)}"
    if dialect == "sqlite":
        # In RETURNING, SQLite knows the table by its name only, PostgreSQL by its alias only.
        returning = _replace_alias(returning, table, f"holdfast_{entity}")
        return "\n".join(filter(None, (common, main, returning)))
    # PostgreSQL allows writing statements only in the outermost WITH, so the body's own common
    # table expressions move up to it.
    leading = f"{common}," if common else "WITH"
    return (
        f"{leading} changed AS (\n{main}\n{returning}\n), recorded AS (\n"
        f"{_INTO_EVENTS}\nSELECT {', '.join(RETURNED_COLUMNS)} FROM changed\n)\n"
        f"SELECT {_REQUIRE_ALL if is_counted(headers) else _CHANGED} FROM changed"
    )


def is_counted(headers: Mapping[str, str]) -> bool:
    """Whether a query inserts rows, of which only the number matters."""
    answers = headers.get("answers")
    if answers not in {None, "count"}:
        raise ValueError(f"answers: {answers!r} is not 'count'")
    if answers and "returning" in headers:
        raise ValueError("returning of a query that answers only a count")
    return answers is not None


def compose_new_events(headers: Mapping[str, str], entity: str) -> str:
    """The statement for SQLite that writes the events of new rows, given their ids.

    RETURNING would hand over the interpreter's lock for each row. The given ids are new, so the
    rows that have them are those that were inserted.
    """
    table = f"holdfast_{entity}"
    new = "(SELECT value AS new_id FROM json_each(:ids))"
    chosen = f"SELECT {_returning(headers, entity, table)}"
    return f"{_INTO_EVENTS}\n{chosen}\nFROM {new} CROSS JOIN {table} ON {table}.id = new_id"


def _main_statement(body: str, table: str) -> tuple[int, str]:
    depth = 0
    for match in _SCAN.finditer(body):
        depth += (match["open"] is not None) - (match["close"] is not None)
        if depth == 0 and match["table"] is not None:
            if match["table"] != table:
                raise ValueError(f"it changes {match['table']}, not {table}")
            return match.start(), match["alias"] or table
    raise ValueError(f"no statement that changes {table}")


def _returning(headers: Mapping[str, str], entity: str, table: str) -> str:
    run = f"{table}.run_id" if entity == "task" else f"{table}.id"
    attempt = f"{table}.attempt" if entity == "task" else "0"
    expressions = {
        "entity": f"{table}.id",
        "run_id": run,
        "version": headers.get("version") or f"{table}.version",
        "previous": headers.get("from") or f"{table}.previous",
        "status": headers.get("to") or f"{table}.status",
        "attempt": attempt,
        "generation": f"{table}.generation",
        "changed_by": headers.get("actor") or f"{table}.changed_by",
        "changed_at": f"{table}.changed_at",
        "type": f"({headers['event']})",
        "data": f"({headers.get('data') or 'NULL'})",
    }
    picked = [f"{expressions[name]} AS {name}" for name in RETURNED_COLUMNS]
    return ", ".join(filter(None, [*picked, headers.get("returning", "")]))


def _replace_alias(expressions: str, alias: str, table: str) -> str:
    return _TOKEN.sub(lambda found: f"{table}." if found[1] == alias else found[0], expressions)
