"""Many rows at once: the same rows and events as in small parts, whatever their columns hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.engine.core.task_rows import TaskRow, column_values
from holdfast.engine.engine import Engine
from holdfast.engine.input import validation
from holdfast.model.task import NewTask
from holdfast.store.database import Transaction
from holdfast.store.postgresql.common_values import MANY_ROWS
from holdfast.store.sql_text.queries import Rows
from tests.contract.raw_store import raw

COUNT = MANY_ROWS + 7
TEXTS = ("plain", 'a "quoted" \\ one', "{1,2}", "NULL", "", "žluťoučký\nkůň\t%s")
LOOK = """
  SELECT title, payload, key IS NULL AS keyless, priority, scheduled_for, due, conditional,
    timeout, blocked, bare, tags, agent, changed_by
  FROM holdfast_task WHERE id LIKE '{}%' ORDER BY id"""
EVENTS = "SELECT type, version, data FROM holdfast_event WHERE entity LIKE '{}%' ORDER BY entity"


@pytest.fixture
def sample(engine: Engine) -> TaskRow:
    source = engine.templated_creation.source
    return validation.new_task(NewTask(title="job"), source.ids, max_payload=100, now=engine.now)


def name(prefix: str, number: int) -> str:
    return f"{prefix}{number:019}"


def equal_tasks(sample: TaskRow, prefix: str) -> Rows:
    made = [replace(sample, id=name(prefix, n), payload=f"{n}") for n in range(COUNT)]
    return [(*column_values(vars(task)), False, 0, "me") for task in made]


def different_tasks(sample: TaskRow, prefix: str) -> Rows:
    made = [
        replace(
            sample,
            id=name(prefix, n),
            title=TEXTS[n % len(TEXTS)],
            payload=f'{{"n": "{TEXTS[0]}"}}' if n % 2 else "null",
            key=None if n % 3 else f"{prefix} {TEXTS[1]} {n}",
            priority=n - 100,
            scheduled_for=None if n % 4 else 2**40 + n,
            timeout=n + 1 if n % 5 else None,
            conditional=n % 7 == 0,
        )
        for n in range(COUNT)
    ]
    return [(*column_values(vars(task)), False, 0, f"user-{n % 2}") for n, task in enumerate(made)]


@pytest.mark.parametrize("tasks", [equal_tasks, different_tasks])
def test_many_rows_at_once_are_the_same_as_in_small_parts(
    engine: Engine,
    store_url: str,
    sample: TaskRow,
    tasks: Callable[[TaskRow, str], Rows],
) -> None:
    whole, parts = tasks(sample, "t_0"), tasks(sample, "t_1")

    def insert(tx: Transaction) -> None:
        tx.insert("insert_tasks", rows=whole)
        for place in range(0, COUNT, 50):
            tx.insert("insert_tasks", rows=parts[place : place + 50])

    engine.database.transact(insert)
    with raw(store_url) as look:
        for query in (LOOK, EVENTS):
            found, expected = look(query.format("t_0")), look(query.format("t_1"))
            assert len(found) == COUNT
            assert found == expected


def test_many_rows_of_one_taken_key_leave_that_row_out(
    engine: Engine, store_url: str, sample: TaskRow
) -> None:
    keyed = [replace(sample, id=name("t_0", n), key="same") for n in range(COUNT)]
    rows = [(*column_values(vars(task)), False, 0, "me") for task in keyed]
    engine.database.transact(lambda tx: tx.insert("insert_tasks", rows=rows, some=True))
    with raw(store_url) as look:
        assert len(look("SELECT id FROM holdfast_task")) == 1
        assert len(look("SELECT seq FROM holdfast_event")) == 1
