"""The clauses of a claim, one by one: whoever else asks them has them cut from the claim's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_CLAUSE = re.compile(r"\s*(?:WHERE|AND)\s+(?P<text>.+?)\s+-- clause: (?P<name>[a-z]+)")
_BORROWED = re.compile(r"\{clauses (?P<query>[a-z_]+)\}")


def cut(body: Sequence[str], table: str) -> str | None:
    """A query for one row that gives each marked clause as a column, or None without marks."""
    clauses = _find(body)
    if not clauses:
        return None
    columns = ",\n  ".join(f"({text}) AS {name}" for name, text in clauses.items())
    return f"SELECT\n  {columns}\nFROM {table}\nWHERE id = :task_id"


def borrow(line: str, body_of: Callable[[str], Sequence[str]]) -> str:
    """Write out `{clauses query}`: all the marked clauses of another query."""
    return _BORROWED.sub(
        lambda found: "\n  AND ".join(_find(body_of(found["query"])).values()), line
    )


def _find(body: Sequence[str]) -> dict[str, str]:
    found = [match for line in body if (match := _CLAUSE.fullmatch(line))]
    return {clause["name"]: clause["text"] for clause in found}
