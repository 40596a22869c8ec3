"""Macros of SQL files: differences of the dialects, and conditions that statements share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Dialect = Literal["sqlite", "postgresql"]
ColumnType = Literal["text", "integer", "boolean", "real"]

# A billion dollars, in millionths: a counter holds the sum of thousands of such attempts.
LARGEST_COST = 10**15

_POSTGRESQL_TYPES: dict[ColumnType, str] = {
    "text": "text",
    "integer": "bigint",
    "boolean": "boolean",
    "real": "double precision",
}
_LOCKS = {
    "lock": "FOR NO KEY UPDATE",
    # Not FOR UPDATE: a claim must not skip a row because of a foreign key check on it.
    "skip_locked": "FOR NO KEY UPDATE",
    "share": "FOR SHARE",
}
# A task that a step has made while it ran; a loop makes items, and those their steps.
_MADE_WHILE_RUNNING = (
    "({task}.kind = 'work' AND {task}.parent_epoch IS NOT NULL AND {task}.item IS NULL)"
)
_NEEDED = "EXISTS (SELECT 1 FROM holdfast_need AS waiting WHERE waiting.need_id = {task}.id)"
# The task is in a plan that is being made: nothing in a plan begins before it is finalized.
_PLANNED = """EXISTS (
    WITH RECURSIVE around (parent_id, planning_phase) AS (
      SELECT plan.parent_id, plan.planning_phase FROM holdfast_task AS plan
      WHERE plan.id = {task}.parent_id AND plan.planning_phase <> 'none'
      UNION SELECT plan.parent_id, plan.planning_phase
      FROM holdfast_task AS plan JOIN around ON plan.id = around.parent_id
      WHERE plan.planning_phase <> 'none')
    SELECT 1 FROM around WHERE around.planning_phase = 'active')"""
_BEGUN = """EXISTS (
    SELECT 1 FROM holdfast_task AS child
    WHERE child.parent_id = {task}.id AND NOT child.superseded)"""
_WAITING = """EXISTS (
    SELECT 1 FROM holdfast_need AS need JOIN holdfast_task AS needed ON needed.id = need.need_id
    WHERE need.task_id = {task}.id AND needed.status <> 'done')"""
_CONDITIONS = {
    # An item gets its steps when it begins, and keeps them when the loop comes back to it.
    "begun": _BEGUN,
    "made": _MADE_WHILE_RUNNING,
    "planned": _PLANNED,
    # A need of the task is not done now, even if it was done when the task started.
    "waiting": _WAITING,
    # The task's failure is left to the step that made it, unless another task needs the task.
    "spared": f"({_MADE_WHILE_RUNNING} AND NOT {_NEEDED})",
}
# The filters of lists, counts and changes of many; a parameter that is null filters nothing.
_MATCHING_RUN = """(CAST(:status AS text) IS NULL OR {run}.status = :status)
  AND (CAST(:workflow AS text) IS NULL OR {run}.workflow = :workflow)
  AND (CAST(:key AS text) IS NULL OR {run}.key = :key)
  AND (CAST(:held AS bigint) IS NULL OR ({run}.holds & :held) <> 0)
  AND (CAST(:called AS boolean) OR {run}.parent_id IS NULL)
  AND (CAST(:since AS bigint) IS NULL OR {run}.created_at >= :since)
  AND (CAST(:until AS bigint) IS NULL OR {run}.created_at < :until)
  AND (CAST(:labels AS text) IS NULL OR {labelled {run}})
  AND (CAST(:name AS text) IS NULL OR lower({run}.workflow) LIKE lower(:name) ESCAPE '!'
    OR lower({run}.key) LIKE lower(:name) ESCAPE '!')
  AND ((CAST(:step AS text) IS NULL AND CAST(:agent AS text) IS NULL) OR EXISTS (
    SELECT 1 FROM holdfast_task AS part
    WHERE part.run_id = {run}.id AND NOT part.superseded
      AND (CAST(:step AS text) IS NULL OR part.step = :step)
      AND (CAST(:agent AS text) IS NULL OR part.agent = :agent)))
  AND (CAST(:error AS text) IS NULL OR lower({run}.error) LIKE lower(:error) ESCAPE '!' OR EXISTS (
    SELECT 1 FROM holdfast_task AS part
    WHERE part.run_id = {run}.id AND part.status <> 'done' AND NOT part.superseded
      AND lower(part.error) LIKE lower(:error) ESCAPE '!'))"""
_MATCHING_TASK = """(CAST(:status AS text) IS NULL OR {task}.status = :status)
  AND (CAST(:agent AS text) IS NULL OR {task}.agent = :agent)
  AND (CAST(:step AS text) IS NULL OR {task}.step = :step)
  AND (CAST(:since AS bigint) IS NULL OR {task}.created_at >= :since)
  AND (CAST(:until AS bigint) IS NULL OR {task}.created_at < :until)
  AND (CAST(:error AS text) IS NULL OR lower({task}.error) LIKE lower(:error) ESCAPE '!')
  AND (CAST(:name AS text) IS NULL OR lower({task}.title) LIKE lower(:name) ESCAPE '!'
    OR lower({task}.step) LIKE lower(:name) ESCAPE '!'
    OR lower({task}.key) LIKE lower(:name) ESCAPE '!')
  AND (CAST(:labels AS text) IS NULL OR {labelled {task}} OR EXISTS (
    SELECT 1 FROM holdfast_run AS whole WHERE whole.id = {task}.run_id AND {labelled whole}))"""
_FILTERS = {
    "matching_run": ("{run}", _MATCHING_RUN),
    "matching_task": ("{task}", _MATCHING_TASK),
}
_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'                                        # a string
    | "(?:[^"]|"")*"                                        # a quoted name
    | (?P<comment>--[^\n]*)
    | ::
    | :(?P<parameter>[a-z_][a-z0-9_]*)
    | \{(?P<macro>[a-z_]+)(?:[ ]+(?P<argument>[a-z_]+))?\}
    | (?P<brace>[{}])
    | (?P<lookup>\b(?:WHERE|AND)\s+[\w.]+\s+)IN\s+\(\s*(?=SELECT\b|WITH\b)
    | (?P<open>\()
    | (?P<close>\))
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, kw_only=True)
class Column:
    name: str
    type: ColumnType


@dataclass(frozen=True, kw_only=True)
class ExpandedText:
    text: str
    parameters: frozenset[str]
    lists: frozenset[str]


def parse_columns(header: str) -> tuple[Column, ...]:
    columns: list[Column] = []
    for declaration in filter(None, (part.strip() for part in header.split(","))):
        name, _, kind = declaration.partition(" ")
        known = [each for each in get_args(ColumnType) if each == kind.strip()]
        if not known:
            raise ValueError(
                f"rows: {declaration!r} is not a name and one of {', '.join(get_args(ColumnType))}"
            )
        columns.append(Column(name=name, type=known[0]))
    return tuple(columns)


def expand(body: str, dialect: Dialect, columns: tuple[Column, ...]) -> ExpandedText:
    expansion = _Expansion(dialect, columns)
    text = expansion.write(body)
    return ExpandedText(
        text="\n".join(line.rstrip() for line in text.splitlines() if line.strip()),
        parameters=frozenset(expansion.parameters),
        lists=frozenset(expansion.lists),
    )


class _Expansion:
    """Writes one query out for one dialect, and collects its parameters."""

    def __init__(self, dialect: Dialect, columns: tuple[Column, ...]) -> None:
        self._dialect: Dialect = dialect
        self._columns = columns
        self._closing: list[str] = []
        self.parameters: set[str] = set()
        self.lists: set[str] = set()

    def write(self, body: str) -> str:
        pieces: list[str] = []
        end = 0
        for match in _TOKEN.finditer(body):
            pieces += [_escape(body[end : match.start()], self._dialect), self._replace(match)]
            end = match.end()
        return "".join([*pieces, _escape(body[end:], self._dialect)])

    def _replace(self, match: re.Match[str]) -> str:
        if match["comment"] is not None:
            return ""
        if match["brace"] is not None:
            raise ValueError(f"a stray {match['brace']!r}")
        if match["macro"] is not None:
            return self._macro(match["macro"], match["argument"])
        if match["parameter"] is not None:
            self.parameters.add(match["parameter"])
            return _placeholder(match["parameter"], self._dialect)
        if match["lookup"] is not None and self._dialect == "postgresql":
            # As an array, which is looked up in an index. A join may begin with the whole table,
            # and mostly does if the table was empty when the join was planned.
            self._closing.append("))")
            return f"{match['lookup']}= ANY (ARRAY("
        if match["open"] is not None or match["lookup"] is not None:
            self._closing.append(")")
        elif match["close"] is not None:
            return self._closing.pop() if self._closing else ")"
        return _escape(match[0], self._dialect)

    def _macro(self, macro: str, argument: str | None) -> str:
        if macro == "rows" and argument is None:
            self.parameters.add("rows")
            return write_rows(self._dialect, self._columns)
        if macro == "each" and argument is not None:
            self.parameters.add(argument)
            self.lists.add(argument)
            return _each(self._dialect, argument)
        if macro in _FILTERS and argument is not None:
            place, text = _FILTERS[macro]
            return self.write(text.replace(place, argument))
        if macro in _WRITERS and argument is not None:
            return self.write(_WRITERS[macro](self._dialect, argument))
        if macro in _CONDITIONS and argument is not None:
            return _CONDITIONS[macro].format(task=argument)
        return _lock(self._dialect, macro, argument)


def _escape(text: str, dialect: Dialect) -> str:
    return text.replace("%", "%%") if dialect == "postgresql" else text


def _placeholder(parameter: str, dialect: Dialect) -> str:
    return f"%({parameter})s" if dialect == "postgresql" else f":{parameter}"


def write_rows(dialect: Dialect, columns: tuple[Column, ...]) -> str:
    if not columns:
        raise ValueError("{rows} without a header that declares its columns")
    if dialect == "sqlite":
        picked = ", ".join(f"value->>{n} AS {column.name}" for n, column in enumerate(columns))
        return f"(SELECT {picked} FROM json_each(:rows))"  # noqa: S608
    picked = ", ".join(
        f"CAST(value->>{n} AS {_POSTGRESQL_TYPES[column.type]}) AS {column.name}"
        for n, column in enumerate(columns)
    )
    # jsonb, because each ->> on json parses the whole row again; twice as fast for wide rows.
    elements = "jsonb_array_elements(CAST(%(rows)s AS jsonb)) AS x(value)"
    # Each element is an array. The condition makes the planner expect one row, not a hundred, so
    # that it looks rows up in a table that was still empty, and does not scan the table.
    return f"(SELECT {picked} FROM {elements} WHERE jsonb_typeof(value) = 'array')"  # noqa: S608


def write_rows_by_column(columns: tuple[Column, ...], own: Sequence[int]) -> str:
    """Rows for PostgreSQL, with the columns at `own` sent as lists, and the others as one value."""
    picked = ", ".join(
        f"CAST({f'own.column_{n}' if n in own else f'%(column_{n})s'}"
        f" AS {_POSTGRESQL_TYPES[column.type]}) AS {column.name}"
        for n, column in enumerate(columns)
    )
    lists = ", ".join(f"jsonb_array_elements_text(CAST(%(column_{n})s AS jsonb))" for n in own)
    names = ", ".join(f"column_{n}" for n in own)
    return f"(SELECT {picked} FROM ROWS FROM ({lists}) AS own ({names}))"  # noqa: S608


def _each(dialect: Dialect, parameter: str) -> str:
    if dialect == "sqlite":
        return f"(SELECT value FROM json_each(:{parameter}))"  # noqa: S608
    function = f"jsonb_array_elements_text(CAST(%({parameter})s AS jsonb))"
    return f"(SELECT value FROM {function} AS x(value))"  # noqa: S608


def _data(dialect: Dialect, key: str) -> str:
    data = "event.data" if dialect == "sqlite" else "CAST(event.data AS jsonb)"
    return f"CAST({data}->>'{key}' AS text)"


def _labelled(dialect: Dialect, table: str) -> str:
    """Whether a row has all of some labels."""
    if dialect == "postgresql":
        return f"CAST({table}.labels AS jsonb) @> CAST(:labels AS jsonb)"
    missing = f"({table}.labels->>asked.key) IS NOT asked.value"
    return f"NOT EXISTS (SELECT 1 FROM json_each(:labels) AS asked WHERE {missing})"  # noqa: S608


def _cost(dialect: Dialect, table: str) -> str:
    """The cost in the usage of a row, in millionths of a dollar; 0 where it has none."""
    if dialect == "sqlite":
        usage = f"{table}.usage"
        number = f"json_type({usage}, '$.usd') IN ('integer', 'real')"
        cost = f"min(max(round(({usage}->>'usd') * 1000000), 0), {LARGEST_COST})"
    else:
        usage = f"CAST({table}.usage AS jsonb)"
        number = f"jsonb_typeof({usage}->'usd') = 'number'"
        dollars = f"CAST({usage}->>'usd' AS numeric)"
        cost = f"LEAST(GREATEST(round({dollars} * 1000000), 0), {LARGEST_COST})"
    return f"CASE WHEN {number} THEN CAST({cost} AS bigint) ELSE 0 END"


_WRITERS: dict[str, Callable[[Dialect, str], str]] = {
    "cost": _cost,
    "data": _data,
    "labelled": _labelled,
}


def _lock(dialect: Dialect, macro: str, table: str | None) -> str:
    if macro not in _LOCKS:
        raise ValueError(f"unknown macro {{{macro}{' ' + table if table else ''}}}")
    if dialect == "sqlite":
        return ""
    of = f" OF {table}" if table else ""
    skip = " SKIP LOCKED" if macro == "skip_locked" else ""
    return f"{_LOCKS[macro]}{of}{skip}"
