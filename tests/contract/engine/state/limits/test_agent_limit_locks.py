"""An agent's usage limit holds who met it, and keeps no other process waiting."""

from __future__ import annotations

from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.task_states import create, start, take
from tests.engines import opened

BEHIND = Workflow.define(
    "behind", (Step(id="first", agent="other"), Step(id="last", agent="limited", needs=("first",)))
)
ALONE = Workflow.define("alone", (Step(id="only", agent="limited"),))
PATIENCE = 10


def test_a_limit_keeps_nobody_waiting_who_frees_a_task_of_its_agent(postgres_url: str) -> None:
    with opened(postgres_url) as engine:
        run, paused = start(engine, BEHIND), start(engine, ALONE)
        assert engine.runs.pause(paused.id).ok
        first, reached = run.take("first"), take(engine, create(engine, agent="limited"))
        with engine.transaction() as connection:
            with engine.join_group(connection) as joined:
                joined.work.reach_limit.submit(reached.task_id, reached.token, "1h")
            # While the limit is not committed yet.
            done = engine.work.complete.submit(first.task_id, first.token)
            assert done.result(PATIENCE).ok
            resumed = engine.runs.resume.submit(paused.id)
            assert resumed.result(PATIENCE).ok
        assert engine.tasks.get(reached.task_id).holds == Hold.LIMIT
        assert engine.work.claim("w", agents=["limited"], count=9) == []


def test_a_task_that_reached_a_limit_is_held_though_its_run_is_too(postgres_url: str) -> None:
    with opened(postgres_url) as engine:
        run = start(engine, ALONE)
        reached = run.take("only")
        assert engine.runs.pause(run.id).ok
        assert engine.work.reach_limit(reached.task_id, reached.token, "1h").ok
        assert engine.tasks.get(reached.task_id).holds == Hold.LIMIT
