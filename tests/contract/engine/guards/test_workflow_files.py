"""What is written down for steps of workflow files moves the row meant, and no other."""

from __future__ import annotations

import json
import re

from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.store.database import is_postgresql
from tests.contract.engine.read.test_pages import plan_of
from tests.contract.single_statements import write
from tests.contract.task_states import MISSING_TASK, bring, create, start

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
DECLARED = Workflow.define("declared", (Step(id="count", work=StepWork(outputs=NUMBER)),))


def test_nothing_declared_is_done_before_it_was_looked_at(engine: Engine) -> None:
    run = start(engine, DECLARED)
    count = run.steps["count"]
    run.take("count")
    report = (count, 1, '{"n":1}', "digest", None, False)
    assert write(engine, "complete_tasks", rows=[(*report, False)]) == set()
    assert write(engine, "complete_tasks", rows=[(*report, True)]) == {count}
    engine.runs.advance(run.id)


def test_a_title_is_told_of_one_task_and_only_when_it_is_another(engine: Engine) -> None:
    named, other = create(engine, "before"), create(engine, "before")
    assert write(engine, "tell_titles", rows=[(named, "after")]) == {named}
    assert write(engine, "tell_titles", rows=[(named, "after")]) == set()
    assert [engine.tasks.get(each).title for each in (named, other)] == ["after", "before"]


def test_a_title_is_told_of_what_is_queued_with_all_it_needs(engine: Engine) -> None:
    left = [bring(engine, each).task_id for each in (Status.IDLE, Status.RUNNING, Status.DONE)]
    left.append(create(engine, needs=(create(engine),)))
    assert write(engine, "tell_titles", rows=[(task, "after") for task in left]) == set()


def test_outputs_of_steps_are_found_without_a_scan_of_all_tasks(
    engine: Engine, store_url: str
) -> None:
    create(engine)
    plan = plan_of(store_url, "outputs_seen", {"rows": json.dumps([[MISSING_TASK, "plan"]])})
    if is_postgresql(store_url):
        assert "Seq Scan on holdfast_task" not in plan, plan
    else:
        assert not re.search(r"SCAN (task|item|around|found)\b", plan), plan
        assert "holdfast_task_parent (parent_id=?)" in plan
        assert "holdfast_task_step (run_id=? AND step=?)" in plan
