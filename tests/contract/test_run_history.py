"""The history of a run: the same pages by either way to them, each for what a page costs."""

from __future__ import annotations

import json

import pytest

from holdfast.engine.engine import Engine
from holdfast.service import run_history
from holdfast.service.queries import Queries
from tests.contract.called import LAST, begin, call, of
from tests.contract.raw import raw
from tests.contract.stages import create, start
from tests.contract.walking import cost_of

EVENTS = """
INSERT INTO holdfast_event (entity, run_id, version, type, attempt, generation, actor, at)
WITH RECURSIVE s (n) AS (SELECT ? + 0 UNION ALL SELECT n + 1 FROM s WHERE n < ? + 0)
SELECT 't_' || n, 'r_1', 1, 'task.created', 0, 1, 'user', 1 FROM s
"""
FORGET = "DELETE FROM holdfast_event WHERE run_id = 'r_1'"
BY_NUMBER, BY_TASK, FIRST_ONE = (0, 1_000), (1_000, 1_000), (0, 1)


@pytest.mark.parametrize(
    ("few", "near"), [BY_NUMBER, BY_TASK, FIRST_ONE], ids=["by number", "by task", "first one"]
)
def test_a_run_tells_what_it_and_what_it_has_called_went_through(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, few: int, near: int
) -> None:
    monkeypatch.setattr(run_history, "FEW", few)
    monkeypatch.setattr(run_history, "NEAR", near)
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
    asked = {"runs": '["r_1"]', "after": 0, "last": run_history.NEAR, "count": 9}
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
