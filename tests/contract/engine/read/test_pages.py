"""Finding runs and tasks again: pages by id, newest first, at a cost that does not grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import psycopg
import pytest

from holdfast import Holdfast, TaskFailed
from holdfast.clock import SystemClock
from holdfast.engine.engine import Engine
from holdfast.engine.read.pages import choose_runs_query, choose_tasks_query
from holdfast.errors import InvalidInput, NotFound
from holdfast.model.status import Status
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.store.sql_text import queries
from holdfast.store.sqlite.connection import connect
from tests.contract.engine.input.bad_values import BAD_COUNTS
from tests.contract.task_states import (
    CHAIN,
    FORK,
    MISSING_RUN,
    MISSING_TASK,
    break_for_good,
    bring,
    create,
    finish,
    start,
)

PATIENCE = 30
LABELS = {"customer": "7"}
RUNS: dict[str, Any] = {"limit": 9, "after": None}
TASKS: dict[str, Any] = {"limit": 9, "after": None}


def test_tasks_are_listed_page_by_page_newest_first(engine: Engine) -> None:
    made = [create(engine) for _ in range(5)][::-1]
    pages, after = [], None
    while page := [task.id for task in engine.tasks.list(limit=2, after=after)]:
        pages.append(page)
        after = page[-1]
        create(engine)
    assert pages == [made[:2], made[2:4], made[4:]]


@pytest.mark.parametrize("status", Status)
def test_tasks_of_one_status_are_listed(engine: Engine, status: Status) -> None:
    stages = {each: bring(engine, each).task_id for each in Status}
    newer = bring(engine, status, agent="other").task_id
    found = [task.id for task in engine.tasks.list(status=status)]
    assert found == [newer, stages[status]]
    assert [each.id for each in engine.tasks.list(status=status, agent="other")] == [newer]
    assert [each.id for each in engine.tasks.list(status=status, after=newer)] == [stages[status]]


def test_tasks_are_listed_by_run_and_agent(engine: Engine) -> None:
    run, other = start(engine), create(engine, agent="other")
    run.finish("plan")
    steps = [str(task.step) for task in engine.tasks.list(run=run.id)]
    assert steps == ["review", "work", "plan"]
    assert [task.step for task in engine.tasks.list(run=run.id, status="done")] == ["plan"]
    assert [task.id for task in engine.tasks.list(agent="other")] == [other]
    assert engine.tasks.list(run=run.id, agent="other") == []


def test_runs_are_listed_by_status_and_workflow(engine: Engine) -> None:
    chain, fork, done = start(engine), start(engine, FORK), start(engine)
    done.finish("plan", "work", "review")
    runs = engine.runs
    assert [run.id for run in runs.list()] == [done.id, fork.id, chain.id]
    assert [run.id for run in runs.list(limit=1, after=fork.id)] == [chain.id]
    assert [run.id for run in runs.list(status="running")] == [fork.id, chain.id]
    assert [run.id for run in runs.list(status="running", workflow="chain")] == [chain.id]
    assert [run.id for run in runs.list(workflow="chain")] == [done.id, chain.id]
    assert [run.id for run in runs.list(status="completed", after=done.id)] == []


def test_bad_limits_and_filters_of_a_listing_are_refused_by_field(engine: Engine) -> None:
    for bad in BAD_COUNTS:
        for desk in (engine.runs, engine.tasks):
            with pytest.raises(InvalidInput, match=r"^limit: "):
                desk.list(limit=bad)
    of_tasks = {"after": MISSING_RUN, "status": "completed", "agent": " ", "run": MISSING_TASK}
    of_runs = {"after": MISSING_TASK, "status": "done", "workflow": " "}
    asked: list[tuple[Callable[..., object], dict[str, str]]] = [
        (engine.tasks.list, of_tasks),
        (engine.runs.list, of_runs),
    ]
    for look, wrong in asked:
        for field, given in wrong.items():
            with pytest.raises(InvalidInput, match=f"^{field}: "):
                look(**{field: given})


def _now() -> int:
    return 1_800_000_000_000_000


def _runs(**filters: Any) -> tuple[str, dict[str, Any]]:
    return choose_runs_query(_now, **RUNS, **filters)


def _tasks(**filters: Any) -> tuple[str, dict[str, Any]]:
    return choose_tasks_query(_now, **TASKS, **filters)


def plan_of(url: str, query: str, asked: dict[str, Any]) -> str:
    """How the database would go about it, with no statistics that could lead it astray."""
    if is_postgresql(url):
        text = queries.load("postgresql")[query].text
        with psycopg.connect(url) as server:
            server.execute("SET enable_seqscan = off")
            server.execute("SET enable_sort = off")
            server.execute("SET enable_bitmapscan = off")
            rows = server.execute(f"EXPLAIN {text}".encode(), asked).fetchall()
        return "\n".join(row[0] for row in rows)
    file: apsw.Connection = connect(sqlite_path(url), SystemClock(), read_only=True)
    text = queries.load("sqlite")[query].text
    try:
        found = file.execute(f"EXPLAIN QUERY PLAN {text}", asked).fetchall()
    finally:
        file.close()
    return "\n".join(str(row[3]) for row in found)


def test_a_list_reads_no_more_of_an_index_than_its_page(engine: Engine, store_url: str) -> None:
    create(engine)
    wanted = {
        "": [_runs(), _runs(name="a", since="24h", error="no"), _tasks(), _tasks(labels=LABELS)],
        "holdfast_run_status": [_runs(status="failed"), _runs(status="failed", agent="a")],
        "holdfast_run_workflow": [_runs(workflow="flow"), _runs(workflow="flow", step="do")],
        "label": [_runs(labels=LABELS), _runs(labels=LABELS, status="failed")],
        "holdfast_task_status": [_tasks(status=each) for each in ("queued", "failed", "idle")],
        "holdfast_task_running": [_tasks(status="running")],
        "holdfast_task_run": [_tasks(run=MISSING_RUN)],
        "holdfast_task_child": [
            _tasks(parent=MISSING_TASK),
            _tasks(parent=MISSING_TASK, status="done", error="no"),
        ],
    }
    for index, pages in wanted.items():
        for query, asked in pages:
            plan = plan_of(store_url, query, asked)
            known = index or ("pkey" if is_postgresql(store_url) else "autoindex")
            assert known in plan, plan
            assert "sort" not in plan.lower(), plan
            assert "temp b-tree" not in plan.lower(), plan


def test_a_handle_is_found_again_by_its_id(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def begin() -> str:
        return "begun"

    @flow.step
    def left() -> str:
        return "left"

    @flow.step(needs=begin)
    def right() -> int:
        return 7

    @hf.task(max_attempts=1)
    def job(*, good: bool) -> list[str]:
        if good:
            return ["made"]
        raise ValueError("no luck")

    run, good, bad = flow.start(), job.enqueue(good=True), job.enqueue(good=False)
    with hf.worker():
        assert hf.handle(run.id).result(PATIENCE) == {"left": "left", "right": 7}
        assert hf.handle(good.id).result(PATIENCE) == ["made"]
        with pytest.raises(TaskFailed, match="no luck"):
            hf.handle(bad.id).result(PATIENCE)
    for missing in (MISSING_RUN, MISSING_TASK):
        with pytest.raises(NotFound, match=missing):
            hf.handle(missing)


def test_the_outputs_of_a_run_are_those_of_the_steps_that_no_other_needs(engine: Engine) -> None:
    run = start(engine, CHAIN)
    assert engine.runs.outputs(run.id) == {"review": None}
    run.finish("plan", "work")
    finish(engine, run.steps["review"], {"verdict": "accept"})
    assert engine.runs.outputs(run.id) == {"review": {"verdict": "accept"}}
    lone = create(engine)
    break_for_good(engine, lone)
    with pytest.raises(NotFound):
        engine.runs.outputs(MISSING_RUN)
