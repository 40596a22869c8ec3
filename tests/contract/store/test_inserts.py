"""New rows: counted, each with exactly one event, whatever a key has kept out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from holdfast.engine.core.task_rows import TaskRow, column_values
from holdfast.engine.engine import Engine
from holdfast.engine.input import validation
from holdfast.errors import StoreError
from holdfast.model.task import NewTask
from holdfast.settings import Settings
from holdfast.store.database import Transaction
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.store.sql_text.queries import Rows
from holdfast.store.sql_text.transitions import CommitProof
from tests.contract.raw_store import raw
from tests.contract.task_states import start

COUNT = 75


class Undone(Exception):
    """Raised to leave nothing behind."""


@pytest.fixture
def sample(engine: Engine) -> TaskRow:
    key = NewTask(title="job", key="mine")
    return validation.new_task(
        key, engine.templated_creation.source.ids, max_payload=100, now=engine.now
    )


def written(sample: TaskRow, keys: list[str | None]) -> Rows:
    """Rows with ids that grow, and these keys."""
    tasks = [replace(sample, id=f"{sample.id[:-3]}{n:03}", key=key) for n, key in enumerate(keys)]
    return [(*column_values(vars(task)), False, 0, "me") for task in tasks]


def insert(engine: Engine, rows: Rows, *, some: bool = False) -> None:
    engine.database.transact(lambda tx: tx.insert("insert_tasks", rows=rows, some=some))


def test_each_row_of_an_insert_has_its_event(
    engine: Engine, store_url: str, sample: TaskRow
) -> None:
    rows = written(sample, [None] * COUNT)
    insert(engine, rows)
    with raw(store_url) as look:
        events = look("SELECT entity, version, type FROM holdfast_event ORDER BY seq")
    made = [{"entity": row[0], "version": 1, "type": "task.created"} for row in rows]
    assert events == made
    assert engine.doctor().ok


def test_a_row_that_a_key_keeps_out_has_no_event(
    engine: Engine, store_url: str, sample: TaskRow
) -> None:
    rows = written(sample, [None, "mine", "mine", None])
    insert(engine, rows, some=True)
    insert(engine, written(replace(sample, id="t_" + "7" * 20), ["mine"]), some=True)
    with raw(store_url) as look:
        events = look("SELECT entity FROM holdfast_event ORDER BY seq")
    assert [each["entity"] for each in events] == [rows[0][0], rows[1][0], rows[3][0]]
    assert engine.doctor().ok


def test_an_insert_of_which_a_key_keeps_out_one_row_leaves_nothing_behind(
    store_url: str, sample: TaskRow
) -> None:
    settings = Settings(url=store_url, patience=0.01)
    with closing(Engine(store_url, settings=settings)) as engine, pytest.raises(StoreError):
        insert(engine, written(sample, [None, "mine", "mine", None]))
    with raw(store_url) as look:
        assert look("SELECT id FROM holdfast_task") == []
        assert look("SELECT entity FROM holdfast_event") == []


def test_a_run_that_a_key_keeps_out_is_noticed_by_the_insert(engine: Engine) -> None:
    known = start(engine, key="mine")
    run = engine.runs.get(known.id)
    flow = (run.workflow, run.workflow_version)
    bare = ("body", 0, "null", 0, None, "me", None, None, None, 0, None, None, None, None)

    def insert_both(tx: Transaction) -> None:
        tries.append(tx)
        rows = [("r_" + each * 20, *flow, key, *bare) for each, key in (("7", "mine"), ("8", None))]
        if len(tries) == 1:
            tx.insert("insert_runs", rows=rows)
        else:
            raise Undone

    tries: list[Transaction] = []
    with pytest.raises(Undone):
        engine.database.transact(insert_both)
    assert [run.id for run in engine.runs.list()] == [known.id]


def test_an_insert_leaves_the_mark_by_which_its_commit_is_found(
    engine: Engine, store_url: str, sample: TaskRow
) -> None:
    def work(tx: Transaction) -> Sequence[CommitProof]:
        tx.insert("insert_tasks", rows=written(sample, [None, None]))
        return tx.proofs() if isinstance(tx, PostgresqlTransaction) else vars(tx)["proofs"]

    (proof,) = engine.database.transact(work)
    with raw(store_url) as look:
        found = look("SELECT entity, version FROM holdfast_event")
    assert {"entity": proof.entity, "version": proof.version} in found


def test_statements_that_give_a_count_are_not_run_as_statements_that_give_rows(
    engine: Engine, sample: TaskRow
) -> None:
    rows = written(sample, [None])
    with pytest.raises(TypeError, match="insert"):
        engine.database.transact(lambda tx: tx.change("insert_tasks", rows=rows))
    with pytest.raises(TypeError, match="count"):
        engine.database.transact(lambda tx: tx.insert("insert_needs", rows=[("a", "b", 1)]))
