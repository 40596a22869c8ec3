"""The history of a run: the same pages by either way to them, each for what a page costs."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from holdfast.engine.engine import Engine
from holdfast.service.queries import run_history
from holdfast.service.queries.queries import Queries
from holdfast.store.database import Row, Transaction
from tests.contract.called_workflows import LAST, begin, call, of
from tests.contract.query_cost import cost_of
from tests.contract.raw_store import raw
from tests.contract.task_states import create, start

EVENTS = """
INSERT INTO holdfast_event (entity, run_id, version, type, attempt, generation, actor, at)
WITH RECURSIVE s (n) AS (SELECT ? + 0 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_' || n, 'r_1', 1, 'task.created', 0, 1, 'user', 1 FROM s
"""
TASKS = """
INSERT INTO holdfast_task (id, run_id, status, title, body_digest, max_attempts, max_lost, backoff,
  backoff_max, payload, changed_by, changed_at, created_at)
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_' || n, ?, 'idle', 'planted', '', 3, 5, 0, 0, '', '', 1, 1 FROM s
"""
FORGET = "DELETE FROM holdfast_event WHERE run_id = 'r_1'"
FORGET_TASKS = "DELETE FROM holdfast_task WHERE title = 'planted'"
WAYS = {
    "by number": ((0, 1_000),),
    "by task": ((1_000, 1_000),),
    "first one": ((0, 1),),
    "first some, then more, then all": ((0, 3), (0, 9)),
    "first some, then by task": ((0, 3), (1_000, 9)),
}


@pytest.mark.parametrize("walks", WAYS.values(), ids=WAYS)
def test_a_run_tells_what_it_and_what_it_has_called_went_through(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, walks: tuple[tuple[int, int], ...]
) -> None:
    monkeypatch.setattr(run_history, "NEARBY_EVENTS", walks)
    run = begin(engine, call(), LAST)
    other = start(engine)
    of(run).finish("pack")
    create(engine)
    other.finish("plan")
    of(run).finish("send")
    run.finish("tell")
    queries = Queries(engine.database.view, lambda: engine)
    told, after = [], 0
    while page := queries.events(run.id, after=after, limit=2)["items"]:
        assert len(page) <= 2
        told += page
        after = page[-1]["seq"]
    every = [each for each in queries.latest_events(1_000) if each.get("run_id") != other.id]
    assert told == [each for each in every if "run_id" in each]
    assert {each["run_id"] for each in told} == {run.id, of(run).id}
    assert told[-1]["type"] == "run.completed"


def test_a_page_costs_the_same_of_a_run_with_ten_times_the_events(store_url: str) -> None:
    asked = {"runs": '["r_1"]', "after": 0, "last": 20_000, "count": 9}
    with raw(store_url) as run:
        run(EVENTS, 1, 300)
        before = cost_of(store_url, "run_events_near", **asked)
        run(EVENTS, 301, 3_000)
    assert cost_of(store_url, "run_events_near", **asked) <= before


def test_a_short_run_is_told_past_no_events_of_others(engine: Engine, store_url: str) -> None:
    short = start(engine)
    asked = {"runs": json.dumps([short.id]), "after": 0, "count": 9}
    with raw(store_url) as run:
        run(EVENTS, 1, 300)
        before = cost_of(store_url, "run_events_after", **asked)
        run(EVENTS, 301, 3_000)
        after = cost_of(store_url, "run_events_after", **asked)
        run(FORGET)
    assert after <= before


class Asked:
    """The transaction it is given, and what it was asked."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def read(self, name: str, **asked: Any) -> list[Row]:
        self.asked.append((name, asked))
        return self._tx.read(name, **asked)


def test_a_quiet_run_of_many_tasks_is_told_past_few_events_of_others(
    engine: Engine, store_url: str
) -> None:
    quiet = start(engine)

    def cost() -> int:
        """Of the page behind the last event of the run, which is empty."""
        last = engine.runs.events(quiet.id)[-1].seq
        found = engine.database.view(lambda tx: ask(tx, last))
        return sum(cost_of(store_url, name, **plain(asked)) for name, asked in found)

    def ask(tx: Transaction, last: int) -> list[tuple[str, dict[str, Any]]]:
        watched = Asked(tx)
        page = run_history.read_run_events(cast("Transaction", watched), quiet.id, last, 9)
        assert page == []
        return watched.asked

    with raw(store_url) as run:
        run(TASKS, 201, quiet.id)
        run(EVENTS, 1_001, 4_000)
        before = cost()
        run(EVENTS, 4_001, 19_000)
        after = cost()
        run(FORGET)
        run(FORGET_TASKS)
    assert after <= before


def plain(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(v) if isinstance(v, list) else v for name, v in asked.items()}
