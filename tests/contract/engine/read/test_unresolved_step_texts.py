"""A step that cannot begin, because something of it cannot be told, has failed as others do."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.engine.engine import Engine
from holdfast.model.status import Hold, Status
from holdfast.model.task import Task
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.guards.test_loops import blocked, cancelled, ripe
from tests.contract.engine.state.loops.test_loops import begin, of
from tests.contract.engine.state.verdicts.test_verifiers import do
from tests.contract.single_statements import write
from tests.contract.task_states import finish

SKIP, ASK = OnFailure(action="skip"), OnFailure(action="ask")
BACK = OnFailure(action="goto", step="plan", max_rounds=1)
LEADS_NOWHERE = "step 'build': there is no steps.plan.large; there is small"


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def started(engine: Engine, plan: OnFailure) -> str:
    """A run whose second step is to look at something that the first has not given."""
    build = Step(
        id="build",
        needs=("plan",),
        when=Reference.parse("when", "steps.plan.large"),
        on_failure=plan,
    )
    run = begin(engine, Step(id="plan"), build, Step(id="last", needs=("build",)))
    gives(engine, run, {"small": 1})
    return run


def gives(engine: Engine, run: str, output: object) -> None:
    finish(engine, of(engine, run, "plan")[0].id, output)


def build(engine: Engine, run: str) -> Task:
    return of(engine, run, "build")[0]


def test_a_step_with_a_skip_on_failure_is_skipped_when_its_condition_cannot_be_told(
    engine: Engine,
) -> None:
    run = started(engine, SKIP)
    task = build(engine, run)
    assert (task.status, task.skipped, task.error) == (Status.DONE, True, LEADS_NOWHERE)
    do(engine, run, "last")
    assert engine.runs.get(run).status == "completed"


def test_a_step_whose_condition_cannot_be_told_asks_once_and_begins_when_it_can(
    engine: Engine,
) -> None:
    run = started(engine, ASK)
    task = build(engine, run)
    assert (task.status, task.holds, task.error) == (Status.QUEUED, Hold.APPROVAL, LEADS_NOWHERE)
    engine.runs.advance(run)
    assert build(engine, run).version == task.version
    assert engine.tasks.approve(task.id).ok
    assert build(engine, run).holds == Hold.APPROVAL
    assert engine.tasks.unhold(task.id, "approval").ok
    assert build(engine, run).holds == Hold.APPROVAL
    assert engine.runs.retry(run, step="plan").ok
    gives(engine, run, {"large": True})
    do(engine, run, "build", "last")
    assert engine.runs.get(run).status == "completed"


def test_a_step_whose_condition_cannot_be_told_fails_when_a_person_rejects_it(
    engine: Engine,
) -> None:
    run = started(engine, ASK)
    assert engine.tasks.reject(build(engine, run).id).ok
    assert (build(engine, run).error, engine.runs.get(run).status) == (LEADS_NOWHERE, "failed")


def test_a_step_whose_condition_cannot_be_told_goes_back_until_its_rounds_are_used_up(
    engine: Engine,
) -> None:
    run = started(engine, BACK)
    assert (build(engine, run).state, of(engine, run, "plan")[0].state) == ("blocked", "ready")
    assert of(engine, run, "plan")[0].feedback == LEADS_NOWHERE
    gives(engine, run, {"small": 2})
    assert build(engine, run).status is Status.FAILED
    assert engine.runs.get(run).status == "failed"


def test_only_a_step_that_waits_for_its_condition_and_has_rounds_left_goes_back(
    engine: Engine,
) -> None:
    named, other, waits, gone, spent = (
        *(ripe(engine), ripe(engine), blocked(engine)),
        *(cancelled(engine), ripe(engine)),
    )
    runs = (named, waits, gone, spent)
    rows = [(run.steps["deploy"], '"none"', int(run is not spent)) for run in runs]
    assert write(engine, "turn_back_unresolved", rows=rows) == {named.steps["deploy"]}
    for run in (*runs, other):
        engine.runs.advance(run.id)


@pytest.mark.parametrize(
    "step",
    [
        "run: [echo, '{{ steps.plan.large }}']",
        "workflow: inner, input: {number: '{{ steps.plan.small }}'}",
    ],
)
def test_a_step_of_a_file_whose_text_or_call_cannot_be_told_is_skipped(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    path = tmp_path / "flow.yaml"
    inner = "{name: inner, input: {number: int}, steps: [{id: one, run: [echo]}]}"
    (tmp_path / "inner.yaml").write_text(inner)
    path.write_text(f"""
name: flow
steps:
  - {{id: plan, run: [echo, '{{"small": "no number"}}']}}
  - {{id: build, {step}, on_failure: skip}}
  - {{id: last, run: [echo, '{{"end": 1}}']}}
""")
    with Holdfast(store_url) as hf, hf.worker():
        run = hf.workflow_file(path).start()
        assert run.result(30) == {"end": 1}
        assert hf.tasks.get(run.task("build").id).skipped
