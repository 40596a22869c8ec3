"""Runs that wait for a full key, and keys that nobody waits for, cost nothing, however many."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.contract.query_cost import cost_of
from tests.contract.raw_store import raw
from tests.contract.task_states import StartedRun, start

MANY = 5_000
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
IDLE = " INSERT INTO holdfast_slot (key, capacity, highest) SELECT 'run:u' || i, 1, 1 FROM n"
COPY = """
INSERT INTO holdfast_run (id, workflow, workflow_version, body_digest, status, holds, input,
  concurrency_key, changed_by, changed_at, created_at)
SELECT id || i, workflow, workflow_version, body_digest, status, holds, input,
  concurrency_key, changed_by, changed_at, created_at
FROM holdfast_run, n WHERE id = ?
"""


def limited(engine: Engine, key: str) -> StartedRun:
    flow = Workflow.define(key, (Step(id="only"),), concurrency=Concurrency(key=key, limit=1))
    return start(engine, flow)


@pytest.mark.parametrize("query", ["next_wake", "keys_with_room"])
def test_runs_that_wait_for_a_full_key_and_idle_keys_are_not_walked_through(
    engine: Engine, store_url: str, query: str
) -> None:
    limited(engine, "full")
    waiting = limited(engine, "full")
    before = cost_of(store_url, query)
    with raw(store_url) as run:
        run(COUNT + IDLE)
        run(COUNT + COPY, waiting.id)
        (row,) = run("SELECT count(*) AS waiting FROM holdfast_run WHERE holds = 32")
        after = cost_of(store_url, query)
        run("DELETE FROM holdfast_run WHERE length(id) > length(?)", waiting.id)
    assert row["waiting"] == MANY + 1
    assert after < before + 100


def test_keys_that_have_room_and_a_waiting_run_are_found_among_many(
    engine: Engine, store_url: str
) -> None:
    def found() -> tuple[bool, dict[str, int]]:
        (wake,) = engine.database.view(lambda tx: tx.read("next_wake"))
        rows = engine.database.view(lambda tx: tx.read("keys_with_room"))
        return bool(wake["waiting"]), {row["key"]: row["room"] for row in rows}

    first = {key: limited(engine, key) for key in ("a", "b", "c", "d", "idle")}
    second = {key: limited(engine, key) for key in ("a", "b", "c", "d")}
    first["idle"].finish("only")
    assert found() == (False, {})
    with raw(store_url) as run:
        run("UPDATE holdfast_slot SET capacity = 2, highest = 2 WHERE key = 'run:b'")
        assert found() == (True, {"run:b": 1})
        run("UPDATE holdfast_slot SET capacity = 4, highest = 4 WHERE key = 'run:d'")
    assert found() == (True, {"run:b": 1, "run:d": 3})
    engine.recovery.step()
    assert [key for key, run in second.items() if run.holds == []] == ["b", "d"]
    assert found() == (False, {})
