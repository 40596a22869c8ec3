"""A process that goes on while another brings the store to a newer schema."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from tests.contract.raw_store import raw
from tests.contract.task_states import create, finish, start


@pytest.mark.parametrize("table", ["holdfast_task", "holdfast_run", "holdfast_event"])
def test_columns_that_come_to_a_table_are_no_matter_to_who_reads_its_rows(
    engine: Engine, store_url: str, table: str
) -> None:
    first, second = (create(engine, title) for title in ("first", "second"))
    run = start(engine)
    assert finish(engine, first).task.title == "first"
    assert engine.runs.get(run.id).id == run.id
    told = len(engine.runs.events(run.id))
    with raw(store_url) as change:
        change(f"ALTER TABLE {table} ADD COLUMN later integer")
    assert finish(engine, second).task.title == "second"
    assert engine.tasks.get(second).output == "output"
    assert engine.runs.get(run.id).id == run.id
    assert len(engine.runs.events(run.id)) == told
    assert len(engine.work.claim("worker", count=20)) == 1
