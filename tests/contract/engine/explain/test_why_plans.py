"""Why of plans, loops and what is in them: where each stands, what holds it up, what to do."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, TaskFailed
from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import fixes_of
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.task_states import break_for_good, create, finish, start, take

PATIENCE = 30
BUILD = Workflow.define(
    "feature",
    (
        Step(
            id="build",
            for_each=Reference.parse("for_each", "input"),
            parallel=2,
            steps=(Step(id="implement"), Step(id="check", needs=("implement",))),
        ),
        Step(id="ship", needs=("build",)),
    ),
)


def told(engine: Engine, task_id: str) -> tuple[str, str, list[Advice]]:
    """The summary, what the first clause that does not hold says, and every fix."""
    explanation = engine.why(task_id)
    first = next(clause for clause in explanation.clauses if not clause.ok)
    return explanation.summary, first.detail, fixes_of(explanation)


def test_an_open_plan_says_to_finalize_it_and_how(engine: Engine) -> None:
    parent, _ = plan(engine)
    summary, _, (fix,) = told(engine, parent)
    assert summary == "feature is planning"
    assert fix == Advice(Action.ADD_CHILD, parent)
    create(engine, "one", parent=parent, enqueue=False)
    _, detail, (fix,) = told(engine, parent)
    assert "1 child waits" in detail
    assert fix == Advice(Action.FINALIZE_PLAN, parent)


def test_a_plan_in_progress_says_how_far_it_is_and_which_child_holds_it_up(
    engine: Engine,
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, one)
    summary, detail, fixes = told(engine, parent)
    assert summary == "feature is in progress 1/3"
    assert detail == f"in progress 1/3, held up by two {two} (ready)"
    assert fixes == [Advice(Action.WHY, two)]
    assert engine.tasks.reset(two).ok
    assert told(engine, parent)[2] == [Advice(Action.ENQUEUE, two)]
    assert told(engine, three)[1] == f"waits for two {two} (idle)"


def test_a_failing_plan_names_what_failed_and_how_to_try_it_again(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    take(engine, two)
    break_for_good(engine, one)
    _, detail, fixes = told(engine, parent)
    assert detail == f"in progress 0/3, held up by one {one} (failed), two {two} (running)"
    assert fixes[0] == Advice(Action.RETRY, one)
    summary, detail, fixes = told(engine, three)
    assert summary == "three is queued, not running (stalled)"
    assert detail == f"its plan is failing: one {one} (failed)"
    assert fixes == [Advice(Action.RETRY, one)]


def test_a_plan_that_has_failed_names_the_children_that_failed_with_their_errors(
    engine: Engine,
) -> None:
    parent, (one, _) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    break_for_good(engine, one)
    summary, detail, fixes = told(engine, parent)
    assert summary == "feature is failed: broken"
    assert detail == f"it has ended failed, because of one {one} (failed: broken)"
    assert fixes == [Advice(Action.RETRY, parent)]


def test_a_plan_that_waits_for_an_open_plan_inside_it_says_to_finalize_that(
    engine: Engine,
) -> None:
    top, (first, inner) = plan(engine, "first", "inner")
    assert engine.tasks.start_planning(inner).ok
    create(engine, "one", parent=inner, enqueue=False)
    assert engine.tasks.finalize_plan(top).ok
    finish(engine, first)
    _, detail, fixes = told(engine, top)
    assert detail == f"in progress 1/2, held up by inner {inner} (planning)"
    assert fixes == [Advice(Action.FINALIZE_PLAN, inner)]


def test_why_of_a_task_below_an_unfinalized_plan_advises_to_finalize_that_plan(
    engine: Engine,
) -> None:
    top, (first, inner) = plan(engine, "first", "inner")
    assert engine.tasks.start_planning(inner).ok
    one = create(engine, "one", parent=inner, enqueue=False)
    assert told(engine, one)[2] == [Advice(Action.FINALIZE_PLAN, inner)]
    assert engine.tasks.finalize_plan(inner).ok
    for each in (first, inner, one):
        assert told(engine, each)[2] == [Advice(Action.FINALIZE_PLAN, top)]


def test_a_plan_of_many_children_tells_of_the_first(engine: Engine) -> None:
    parent, _ = plan(engine, *(f"part {n}" for n in range(9)))
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    assert told(engine, parent)[1].endswith(" and 4 more")


def test_why_calls_tasks_inside_a_loop_by_their_address(engine: Engine) -> None:
    run = start(engine, BUILD, input=["a", "b", "c"])
    tasks = engine.runs
    check = tasks.task(run.id, "build.2.check")
    assert told(engine, check.id)[:2] == (
        "build.2.check is queued, not running (blocked)",
        "waits for build.2.implement (queued)",
    )
    loop = tasks.task(run.id, "build")
    assert loop.state == "in progress 0/3"
    assert told(engine, loop.id)[:2] == (
        "build is queued, not running (in progress 0/3)",
        "no worker runs it: it ends with its items",
    )
    assert told(engine, tasks.task(run.id, "build.2").id)[:2] == (
        "build.2 is queued, not running (in progress 0/2)",
        "no worker runs it: it ends with its children",
    )
    assert told(engine, tasks.task(run.id, "build.3").id)[1:] == (
        "its loop starts it when its turn has come",
        [],
    )
    lines = str(engine.why_run(run.id)).splitlines()
    assert any("build.1.implement is queued, not running (ready)" in line for line in lines)
    take(engine, tasks.task(run.id, "build.1.implement").id)
    break_for_good(engine, tasks.task(run.id, "build.2.implement").id)
    assert told(engine, check.id)[1] == "waits for build.2.implement (failed)"
    failing = [clause for clause in engine.why(check.id).clauses if clause.name == "run"]
    assert failing[0].detail == "its run is failing: build.2.implement (failed)"


def test_a_loop_whose_list_is_none_names_itself(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def plan_it() -> dict[str, int]:
        return {"stories": 7}

    build = flow.loop("build", over="steps.plan_it.stories")

    @build.step
    def implement(item: int) -> int:
        return item

    with hf.worker(), pytest.raises(TaskFailed) as failed:
        flow.start().result(PATIENCE)
    assert "ended failed at step 'build': loop 'build': steps.plan_it.stories is no list" in str(
        failed.value
    )
