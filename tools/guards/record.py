"""What is known of each guard: the last results, the table in the docs, the redundant ones."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.guards.predicates import Predicate
from tools.guards.suite import DATABASES, ROOT

RESULTS = ROOT / "build/guards/results.json"
TABLE = ROOT / "docs/guards.md"
REDUNDANT = Path(__file__).parent / "redundant.toml"

_HEADING = re.compile(r"## `(?P<query>\w+)`")
_ROW = re.compile(r"\| `(?P<text>.+)` \| (?P<tests>[^|]*) \|")
_TEST = re.compile(r"`(?P<test>[^`]+::[^`]+)`")
_ANY = "*"
_INTRODUCTION = """\
# Guards

Written by `python -m tools.guards`; do not edit. Each predicate that decides which rows a statement
may change was taken out of the SQL, alone, and the tests were run: this is the first test that
noticed, on each database. What no test can notice is redundant, and says which constraint or lock
makes it so.
"""

Caught = dict[str, str]
Results = dict[str, Caught]


@dataclass(frozen=True, kw_only=True)
class Redundant:
    query: str
    predicate: str
    because: str
    databases: tuple[str, ...] = DATABASES

    @property
    def name(self) -> str:
        return f"{self.query}: {self.predicate}"


def read_results() -> Results:
    if RESULTS.exists():
        results: Results = json.loads(RESULTS.read_text())
        return results
    return {}


def write_results(results: Results) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True))


def read_hints(predicates: Iterable[Predicate]) -> dict[str, list[str]]:
    """The tests that last missed each guard: from the results here, else from the docs."""
    results = read_results()
    table = read_table()
    hints: dict[str, list[str]] = {}
    for predicate in predicates:
        found = list(results.get(predicate.name, {}).values()) or table.get(predicate.name, [])
        hints[predicate.name] = [test for test in dict.fromkeys(found) if exists(test)]
    return hints


def read_redundant() -> dict[str, Redundant]:
    entries = tomllib.loads(REDUNDANT.read_text(encoding="utf-8")).get("redundant", [])
    found = [
        Redundant(**(entry | {"databases": tuple(entry.get("databases", DATABASES))}))
        for entry in entries
    ]
    return {entry.name: entry for entry in found}


def write_table(
    predicates: Sequence[Predicate], results: Results, redundant: Mapping[str, Redundant]
) -> None:
    lines = [_INTRODUCTION.rstrip()]
    query = ""
    for predicate in predicates:
        if predicate.query != query:
            query = predicate.query
            lines += ["", f"## `{query}`", "", "| taken out | noticed by |", "|---|---|"]
        caught = results.get(predicate.name, {})
        notice = _notice(caught, redundant.get(predicate.name))
        text = predicate.name.removeprefix(f"{query}: ")
        lines.append(f"| `{_escape(text)}` | {notice} |")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _notice(caught: Caught, redundant: Redundant | None) -> str:
    named = [_short(caught[database], database) for database in DATABASES if database in caught]
    plain = [_short(caught[database]) for database in DATABASES if database in caught]
    one = len(named) == len(DATABASES) and len(set(named)) == 1
    parts = [f"`{test}`" for test in dict.fromkeys(named if one else plain)]
    if redundant is not None:
        all_of_them = len(redundant.databases) == len(DATABASES)
        where = "" if all_of_them else f" on {redundant.databases[0]}"
        parts.append(f"redundant{where}: {_escape(redundant.because)}")
    return "; ".join(parts) or "**nothing**"


def read_table() -> dict[str, list[str]]:
    """The guards that the docs tell of, each with the tests that missed it."""
    found: dict[str, list[str]] = {}
    query = ""
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    for line in lines:
        if heading := _HEADING.fullmatch(line):
            query = heading["query"]
        elif row := _ROW.fullmatch(line):
            text = row["text"].replace("\\|", "|")
            tests = [match["test"] for match in _TEST.finditer(row["tests"])]
            found[f"{query}: {text}"] = [full for test in tests for full in _expand(test)]
    return found


def _short(test: str, database: str = "") -> str:
    """A test's name in the docs; where it is the same on every database, `*` stands for that."""
    short = test.removeprefix("tests/")
    name, bracket, parameters = short.partition("[")
    if not database or database not in parameters:
        return short
    parameters = parameters.replace(database, _ANY, 1)
    return name if parameters == f"{_ANY}]" else name + bracket + parameters


def _expand(short: str) -> list[str]:
    name, bracket, parameters = f"tests/{short}".partition("[")
    if _ANY not in parameters:
        return [name + bracket + parameters]
    return [name + bracket + parameters.replace(_ANY, database, 1) for database in DATABASES]


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def exists(test: str) -> bool:
    """Whether a test of that name is still where it was."""
    path, separator, name = test.partition("::")
    place = ROOT / path
    plain = name.partition("[")[0].rpartition("::")[2]
    return bool(separator) and place.exists() and f"def {plain}(" in place.read_text()
