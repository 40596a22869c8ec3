"""Named queries: read from SQL files, written out for one dialect, and the binding of parameters.

The marked clauses of a query can be inserted into other queries, and evaluated for one task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from holdfast.store.sql_text import macros, transitions
from holdfast.store.sql_text.macros import Column, Dialect

DIRECTORY = Path(__file__).parents[1] / "sql"
Entity = Literal["task", "run"]
Rows = Sequence[Sequence[object]]
HEADERS = frozenset(
    {
        "name",
        "purpose",
        "guards",
        "rows",
        "changes",
        "event",
        "data",
        "returning",
    }
    | {"from", "to", "version", "actor", "answers"}
)
TIME_PARAMETER = "holdfast_now"
_TIME_CALL = "(SELECT holdfast_now())"
_ALL_COLUMNS = re.compile(r"(?:\b(?:SELECT|RETURNING)\s+|\w\.)\*")
_HEADER = re.compile(r"-- ([a-z]+):(.*)")
_CONTINUATION = re.compile(r"--\s{2,}(\S.*)")

_CLAUSE = re.compile(r"\s*(?:WHERE|AND)\s+(?P<text>.+?)\s+-- clause: (?P<name>[a-z]+)")
_CLAUSES_MACRO = re.compile(r"\{clauses (?P<query>[a-z_]+)\}")


def compose_clause_query(body: Sequence[str], table: str) -> str | None:
    """A query for one row of `table`, each marked clause a column; None if none is marked."""
    clauses = _find_clauses(body)
    if not clauses:
        return None
    columns = ",\n  ".join(f"({text}) AS {name}" for name, text in clauses.items())
    return f"SELECT\n  {columns}\nFROM {table}\nWHERE id = :task_id"


def insert_clauses(line: str, body_of: Callable[[str], Sequence[str]]) -> str:
    """Write out `{clauses query}`: all the marked clauses of another query."""
    if "{clauses " not in line:
        return line
    return _CLAUSES_MACRO.sub(
        lambda found: "\n  AND ".join(_find_clauses(body_of(found["query"])).values()), line
    )


def _find_clauses(body: Sequence[str]) -> dict[str, str]:
    found = [match for line in body if "-- clause:" in line and (match := _CLAUSE.fullmatch(line))]
    return {clause["name"]: clause["text"] for clause in found}


@dataclass(frozen=True, kw_only=True)
class Query:
    name: str
    purpose: str
    text: str
    guards: str = ""
    columns: tuple[Column, ...] = ()
    # Gives `*`: the columns may change while a process runs.
    returns_all_columns: bool = False
    changes: Entity | None = None
    parameters: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    # Takes the time as a parameter, which the driver adds.
    takes_time: bool = False
    # Inserts new rows, which begin with their ids, and answers only their number.
    answers_count: bool = False
    # The statement that writes the events of inserted rows, where that is a statement of its own.
    event_insert: str = ""


@dataclass(kw_only=True)
class QuerySource:
    """One query as it stands in its file."""

    location: str
    headers: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.headers["name"]


class MalformedQuery(ValueError):
    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")


def load(dialect: Dialect, directory: Path = DIRECTORY) -> Mapping[str, Query]:
    """Read the shared queries, then those of the dialect, which add to them or replace them."""
    return (
        _load_package_queries(dialect)
        if directory == DIRECTORY
        else dict(NamedQueries(dialect, directory))
    )


@cache
def _load_package_queries(dialect: Dialect) -> NamedQueries:
    """The files are read once: those of the package do not change while a program runs."""
    return NamedQueries(dialect, DIRECTORY)


class NamedQueries(Mapping[str, Query]):
    """The queries by name; each is written out when it is first used, since programs use few."""

    def __init__(self, dialect: Dialect, directory: Path) -> None:
        self._dialect: Dialect = dialect
        self.sources: Mapping[str, QuerySource] = _gather_sources(dialect, directory)
        self._written: dict[str, Query] = {}

    def __getitem__(self, name: str) -> Query:
        written = self._written.get(name)
        if written is None:
            written = self._written[name] = _compile_query(self.sources[name], self._dialect)
        return written

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)


def _gather_sources(dialect: Dialect, directory: Path) -> dict[str, QuerySource]:
    sources = {**_read_directory(directory), **_read_directory(directory / dialect)}
    sources |= _make_clause_sources(sources)
    for source in sources.values():
        source.body = [
            insert_clauses(line, lambda name: sources[name].body) for line in source.body
        ]
    return dict(sorted(sources.items()))


def _make_clause_sources(sources: Mapping[str, QuerySource]) -> dict[str, QuerySource]:
    """For each query with marked clauses, one that evaluates them for a single task."""
    found: dict[str, QuerySource] = {}
    for name, source in sources.items():
        if text := compose_clause_query(source.body, "holdfast_task"):
            headers = {
                "name": f"{name}_clauses",
                "purpose": f"Evaluate the clauses of {name} for one task",
            }
            found[headers["name"]] = QuerySource(
                location=source.location, headers=headers, body=text.splitlines()
            )
    return found


def _read_directory(directory: Path) -> dict[str, QuerySource]:
    sources: dict[str, QuerySource] = {}
    for path in sorted(directory.glob("*.sql")):
        for source in _split_file(path):
            if source.name in sources:
                raise MalformedQuery(source.location, f"{source.name} is defined twice")
            sources[source.name] = source
    return sources


def _split_file(path: Path) -> Iterator[QuerySource]:
    source: QuerySource | None = None
    last = ""
    file = f"{path.parent.name}/{path.name}"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text.startswith("--"):
            if text and source is not None:
                source.body.append(line.rstrip())
            continue
        header = _HEADER.fullmatch(text)
        if header and header[1] == "name":
            if source:
                yield source
            source = QuerySource(location=f"{file}:{number}")
        if source is None:
            continue
        if not source.body and header:
            last = _add_header(source, header[1], header[2].strip())
        elif not source.body and last and (more := _CONTINUATION.fullmatch(text)):
            source.headers[last] = f"{source.headers[last]} {more[1]}".strip()
    if source:
        yield source


def _add_header(source: QuerySource, key: str, value: str) -> str:
    if key not in HEADERS:
        raise MalformedQuery(source.location, f"unknown header {key!r}")
    if key in source.headers:
        raise MalformedQuery(source.location, f"header {key!r} stands twice")
    source.headers[key] = value
    return key


def _compile_query(source: QuerySource, dialect: Dialect) -> Query:
    headers = source.headers
    for key in ("name", "purpose"):
        if not headers.get(key):
            raise MalformedQuery(source.location, f"the header {key!r} is missing or empty")
    try:
        columns = macros.parse_columns(headers.get("rows", ""))
        body = "\n".join(source.body).strip().removesuffix(";")
        changes = _read_entity(headers)
        if changes is not None:
            body = transitions.compose(body, headers, changes, dialect)
        expanded = macros.expand(body, dialect, columns)
    except ValueError as error:
        raise MalformedQuery(source.location, f"{source.name}: {error}") from error
    text, takes_time, event_insert = expanded.text, False, ""
    if dialect == "sqlite":
        # A call of holdfast_now would need the interpreter's lock in the middle of a statement.
        text = _bind_time(text)
        takes_time = text != expanded.text
        if changes is not None and transitions.is_counted(headers):
            event_insert = transitions.compose_new_events(headers, changes)
    return Query(
        name=source.name,
        purpose=headers["purpose"],
        text=text,
        takes_time=takes_time,
        guards=headers.get("guards", ""),
        columns=columns,
        returns_all_columns=_ALL_COLUMNS.search(text) is not None,
        changes=changes,
        parameters=expanded.parameters - {transitions.WANTED_PARAMETER},
        lists=expanded.lists,
        answers_count=transitions.is_counted(headers),
        event_insert=event_insert,
    )


def _bind_time(text: str) -> str:
    return text.replace(_TIME_CALL, f":{TIME_PARAMETER}")


def _read_entity(headers: Mapping[str, str]) -> Entity | None:
    changes = headers.get("changes")
    for entity in get_args(Entity):
        if changes == entity:
            if not headers.get("event"):
                raise ValueError("a query that changes rows names its event")
            return "task" if entity == "task" else "run"
    if changes is not None:
        raise ValueError(f"changes: {changes!r} is neither 'task' nor 'run'")
    of_changes = {"event", "data", "returning", "from", "to", "version", "actor"}
    of_changes.add("answers")
    if lone := headers.keys() & of_changes:
        raise ValueError(f"{', '.join(sorted(lone))} without changes")
    return None


encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def bind_parameters(
    query: Query, rows: Rows | None, parameters: dict[str, object]
) -> dict[str, object]:
    if rows is not None:
        parameters["rows"] = encode(rows)
    for name in query.lists & parameters.keys():
        parameters[name] = encode(parameters[name])
    check_parameters(query, parameters.keys())
    return parameters


def check_parameters(query: Query, given: AbstractSet[str]) -> None:
    if given != query.parameters:
        told, wanted = sorted(given), sorted(query.parameters)
        raise TypeError(f"{query.name} takes the parameters {wanted}, not {told}")


def require_transition(query: Query) -> Query:
    if query.changes is None:
        raise TypeError(f"{query.name} is no transition: its headers do not say what it changes")
    if query.answers_count:
        raise TypeError(f"{query.name} tells only how many: run it with insert()")
    return query


def require_counted(query: Query) -> Query:
    if not query.answers_count:
        raise TypeError(f"{query.name} is no insert: its headers do not say that it answers count")
    return query


def require_plain(query: Query) -> Query:
    if query.changes is not None:
        raise TypeError(
            f"{query.name} is a transition: run it with change(), which records its events"
        )
    return query
