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
_ROW = re.compile(r"\| `(?P<text>.+?)` \| (?P<notice>.*) \|")
_TEST = re.compile(r"`(?P<test>[^`]+::[^`]+)`(?: \((?P<database>\w+)\))?")
_ANY = "*"
_INTRODUCTION = """\
# Guards

Written by `python -m tools.guards`; do not edit. Each predicate that decides which rows a statement
may change, and what each insert does about a row that is there, was taken out of the SQL, alone,
and the tests were run: this is the first test that noticed, on each database. What no test can
notice is redundant, and says which constraint or lock makes it so.
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


def keep_result(name: str, caught: Caught) -> None:
    _write_results(read_results() | {name: caught})


def forget_results(names: Iterable[str]) -> None:
    gone = set(names)
    _write_results({name: each for name, each in read_results().items() if name not in gone})


def _write_results(results: Results) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True))


def read_redundant() -> dict[str, Redundant]:
    entries = tomllib.loads(REDUNDANT.read_text(encoding="utf-8")).get("redundant", [])
    found = [
        Redundant(**(entry | {"databases": tuple(entry.get("databases", DATABASES))}))
        for entry in entries
    ]
    return {entry.name: entry for entry in found}


def write_table(
    predicates: Sequence[Predicate],
    results: Results,
    redundant: Mapping[str, Redundant],
    place: Path = TABLE,
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
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _notice(caught: Caught, redundant: Redundant | None) -> str:
    everywhere = {_short(test, database) for database, test in caught.items()}
    if len(caught) == len(DATABASES) and len(everywhere) == 1:
        parts = [f"`{test}`" for test in everywhere]
    else:
        here = [(database, caught[database]) for database in DATABASES if database in caught]
        parts = [f"`{test.removeprefix('tests/')}` ({database})" for database, test in here]
    if redundant is not None:
        all_of_them = len(redundant.databases) == len(DATABASES)
        where = "" if all_of_them else f" on {redundant.databases[0]}"
        parts.append(f"redundant{where}: {_escape(redundant.because)}")
    return "; ".join(parts) or "**nothing**"


def read_table(place: Path = TABLE) -> Results:
    """The guards that the docs tell of, each with the tests that missed it."""
    found: Results = {}
    query = ""
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    for line in lines:
        if heading := _HEADING.fullmatch(line):
            query = heading["query"]
        elif row := _ROW.fullmatch(line):
            text = row["text"].replace("\\|", "|")
            found[f"{query}: {text}"] = {
                database: _in_full(match["test"], database)
                for match in _TEST.finditer(row["notice"])
                for database in ([match["database"]] if match["database"] else DATABASES)
            }
    return found


def _in_full(test: str, database: str) -> str:
    name, bracket, parameters = test.partition("[")
    return f"tests/{name}{bracket}{parameters.replace(_ANY, database, 1)}"


def _short(test: str, database: str) -> str:
    """A test's name in the docs, with `*` where its parameters name the database."""
    name, bracket, parameters = test.removeprefix("tests/").partition("[")
    parameters = parameters.replace(database, _ANY, 1)
    return name if parameters == f"{_ANY}]" else name + bracket + parameters


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def exists(test: str) -> bool:
    """Whether a test of that name is still where it was."""
    path, separator, name = test.partition("::")
    place = ROOT / path
    plain = name.partition("[")[0].rpartition("::")[2]
    return bool(separator) and place.exists() and f"def {plain}(" in place.read_text()
