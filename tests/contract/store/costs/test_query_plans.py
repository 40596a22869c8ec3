"""What is asked at every step reads what is open of a run or a loop, never all that is done."""

from __future__ import annotations

import re
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.store.database import is_postgresql
from holdfast.store.sql_text.queries import TIME_PARAMETER
from tests.contract.engine.read.test_pages import plan_of
from tests.contract.task_states import MISSING_RUN, MISSING_TASK, create

OPEN_CHILD, UNFINISHED = "holdfast_task_open_child", "holdfast_task_unfinished"
HOT: dict[str, tuple[str, int]] = {
    "loops_with_room": (OPEN_CHILD, 2),
    "start_items": (OPEN_CHILD, 1),
    "first_open_item": (OPEN_CHILD, 2),
    "settle_groups": (OPEN_CHILD, 1),
    "settle_plans": (OPEN_CHILD, 1),
    "settle_runs": (UNFINISHED, 2),
    "mark_failing": (UNFINISHED, 1),
    "lift_failing": (UNFINISHED, 1),
    "copy_run_holds": (UNFINISHED, 1),
    "fail_groups": (UNFINISHED, 1),
    "ripe_in_run": (UNFINISHED, 1),
    "open_groups": (UNFINISHED, 1),
    "unblock_run": (UNFINISHED, 1),
    "odd_statuses": (UNFINISHED, 1),
}


ASKED: dict[str, Any] = {
    "ids": f'["{MISSING_TASK}"]',
    "run_id": MISSING_RUN,
    "loop_id": MISSING_TASK,
    "first": 0,
    "count": 1,
    "actor": "user",
    "output": None,
    "error": None,
    TIME_PARAMETER: 1.0,
}


@pytest.mark.parametrize("query", HOT)
def test_a_hot_statement_looks_only_at_what_is_open(
    engine: Engine, store_url: str, query: str
) -> None:
    create(engine)
    plan = plan_of(store_url, query, ASKED)
    index, times = HOT[query]
    if is_postgresql(store_url):
        assert "Seq Scan on holdfast_task" not in plan, plan
    else:
        found = re.findall(rf"{index} \(\w+=\? AND status[=>]\?( AND position>\?)?\)", plan)
        assert len(found) >= times, plan


def test_tasks_that_wait_for_a_signal_among_several_are_found_by_index(
    engine: Engine, store_url: str
) -> None:
    create(engine)
    plan = plan_of(store_url, "several_awaited", ASKED | {"targets": f'["{MISSING_TASK}"]'})
    assert "holdfast_task_waiting" in plan, plan
    assert ("Index Cond" if is_postgresql(store_url) else "waits_for>? AND waits_for<?") in plan


def test_a_claim_looks_up_what_it_takes_and_what_that_needs(engine: Engine, store_url: str) -> None:
    create(engine)
    asked = {
        "agent": "default",
        "line": "[]",
        "tags": "[]",
        "keys": "[]",
        "passed": "[]",
        "count": 1,
        "peeked": False,
        "bare": False,
        "worker": "worker",
        "lease": 1,
        TIME_PARAMETER: 1.0,
    }
    plan = plan_of(store_url, "claim_tasks", asked)
    if is_postgresql(store_url):
        assert len(re.findall(r"Index Cond: \(id = ANY ", plan)) == 1, plan
        assert len(re.findall(r"Index Cond: \(task_id = holdfast_task", plan)) == 1, plan
        assert "using holdfast_task_special on holdfast_task special" in plan, plan
    else:
        assert len(re.findall(r"SEARCH holdfast_task .*\(id=\?\)", plan)) == 1, plan
        assert len(re.findall(r"SEARCH holdfast_need .*\(task_id=\?\)", plan)) == 1, plan
        assert "INDEX holdfast_task_ready (agent=? AND tags=? AND bare=?)" in plan, plan
        assert "SEARCH special USING INDEX holdfast_task_special (agent=?)" in plan, plan


def test_tasks_that_wait_for_a_signal_are_found_by_the_target(
    engine: Engine, store_url: str
) -> None:
    create(engine)
    asked = {"target": MISSING_RUN, "name": "go", "count": 1}
    plan = plan_of(store_url, "signals_awaited", asked)
    assert plan.count("holdfast_task_waiting") == 2, plan
    assert "Seq Scan" not in plan, plan
