"""The clauses of a claim, one by one: what `why` asks is cut from the claim's own text."""

from __future__ import annotations

import re

_CLAUSE = re.compile(r"\s*(?:WHERE|AND)\s+(?P<text>.+?)\s+-- clause: (?P<name>[a-z]+)")


def cut(body: list[str], table: str) -> str | None:
    """A query for one row that gives each marked clause as a column, or None without marks."""
    clauses = [match for line in body if (match := _CLAUSE.fullmatch(line))]
    if not clauses:
        return None
    columns = ",\n  ".join(f"({clause['text']}) AS {clause['name']}" for clause in clauses)
    return f"SELECT\n  {columns}\nFROM {table}\nWHERE id = :task_id"
