"""A dry run as it is read: what would change, each by its place, and what becomes of it."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.budget import Budget
from holdfast.model.task import Task
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract import called_workflows
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.task_states import CHAIN, StartedRun, finish, start

AFTER = Step(id="after", needs=("build",))


def _lines(said: str) -> list[str]:
    """What is said of each task, without its id."""
    return [" ".join(line.split()[1:]) for line in said.splitlines()[1:]]


def test_the_items_of_a_loop_are_told_apart_by_their_addresses(
    engine: Engine, typed: Typed
) -> None:
    run = begin(engine, loop("input", parallel=2), AFTER, given=["a", "b"])
    finish(engine, of(engine, run, "implement")[1].id)
    said = typed.ok("cancel", run, "--dry-run")
    assert said.startswith(f"would cancel {run}: 7 tasks\n")
    assert _lines(said) == [
        "build in progress 0/2 → cancelled",
        "build.1 in progress 0/2 → cancelled",
        "build.1.implement ready → cancelled",
        "build.1.test blocked → cancelled",
        "build.2 in progress 1/2 → cancelled",
        "build.2.test ready → cancelled",
        "after blocked → cancelled",
    ]
    for task in typed.json("cancel", run, "--dry-run")["tasks"]:
        assert typed.json("show", task["address"])["id"] == task["id"]
        assert (task["status"], task["becomes"]) == ("queued", "cancelled")


def test_tasks_that_would_be_made_anew_are_told_apart_from_those_that_would_change(
    engine: Engine, typed: Typed
) -> None:
    run = begin(engine, loop("input", body=(Step(id="do"),)), AFTER, given=["a"])
    finish(engine, of(engine, run, "do")[0].id)
    again = ("retry", run, "--from", "build", "--dry-run")
    said = typed.ok(*again)
    assert said.startswith(
        f"would retry {run} --from build: 1 task, and 3 others change, and 2 new\n"
    )
    assert _lines(said) == [
        "build done → in progress 0/1",
        "build.1 done → superseded",
        "build.1.do done → superseded",
        "after ready → blocked",
        "build.1 in progress 0/1",
        "build.1.do ready",
    ]
    assert [line.split()[0] for line in said.splitlines()[-2:]] == ["new", "new"]
    told = typed.json(*again)
    assert len(told["tasks"]) == 4
    assert [each["address"] for each in told["made"]] == [f"{run}:build.1", f"{run}:build.1.do"]
    assert not any("id" in each for each in told["made"])


def test_tasks_of_a_called_run_are_named_below_the_step_that_called_it(
    engine: Engine, typed: Typed
) -> None:
    run = called_workflows.begin(engine, called_workflows.call(), called_workflows.LAST)
    for given in (run.id, called_workflows.of(run).id):
        said = _lines(typed.ok("cancel", given, "--dry-run"))
        assert "ship.pack ready → cancelled" in said
        assert "ship.send blocked → cancelled" in said
    for task in typed.json("cancel", run.id, "--dry-run")["tasks"]:
        assert typed.json("show", task["address"])["id"] == task["id"]


def test_only_tasks_that_the_verb_is_done_to_are_counted_as_that(
    engine: Engine, typed: Typed
) -> None:
    run = called_workflows.begin(
        engine, called_workflows.call(), Step(id="beside"), called_workflows.LAST
    )
    said = typed.ok("cancel", run.steps["ship"], "--dry-run").splitlines()
    assert [line.endswith("→ cancelled") for line in said[1:]].count(False) == 2
    assert (
        said[0] == f"would cancel {run.steps['ship']}: {len(said) - 3} tasks, and 2 others change"
    )
    typed.ok("cancel", run.steps["ship"])
    states = [
        task.status.value
        for each in (run, called_workflows.of(run))
        for task in _tasks(engine, each)
    ]
    assert states.count("cancelled") == len(said) - 3
    again = typed.ok("retry", run.steps["ship"], "--dry-run").splitlines()
    assert (
        again[0] == f"would retry {run.steps['ship']}: {len(said) - 4} tasks, and 3 others change"
    )


def _tasks(engine: Engine, run: StartedRun) -> list[Task]:
    return list(engine.runs.tasks(run.id))


def test_the_parts_of_a_plan_are_told_below_it_by_their_titles(
    engine: Engine, typed: Typed
) -> None:
    parent, children = plan(engine, "one", "two")
    said = typed.ok("plan", "finalize", parent, "--dry-run")
    assert said.startswith(f"would plan finalize {parent}: 2 tasks\n")
    assert _lines(said) == ["one idle → ready", "two idle → blocked"]
    told = typed.ok("cancel", parent, "--dry-run")
    assert told.startswith(f"would cancel {parent}: 3 tasks\n")
    assert [line.split()[0] for line in told.splitlines()[1:]] == [parent, *children]
    typed.ok("plan", "finalize", parent)
    refused = typed.refused(1, "plan", "finalize", parent, "--graph", f"{children[0]}:")
    assert refused == typed.refused(
        1, "plan", "finalize", parent, "--graph", f"{children[0]}:", "--dry-run"
    )


def test_a_dry_run_of_several_tells_of_each_what_those_before_it_leave(
    engine: Engine, typed: Typed
) -> None:
    run, over = start(engine), start(engine)
    over.finish("plan", "work", "review")
    said = typed("cancel", run.id, over.id, run.steps["work"], "--dry-run")
    assert said.code == 1
    assert [line for line in said.out.splitlines() if line.startswith("would")] == [
        f"would cancel {run.id}: 3 tasks",
        f"would cancel {run.steps['work']}: 0 tasks",
    ]
    assert f"{over.id} is unchanged" in said.err
    assert run.status == "running"


def test_a_dry_run_of_a_greater_budget_tells_what_goes_on_with_it(
    engine: Engine, typed: Typed
) -> None:
    declared = WorkflowDeclarations(budget=Budget(attempts=1))
    run = start(engine, Workflow.define("limited", CHAIN.steps, declared=declared))
    run.finish("plan")
    assert run.holds == ["budget"]
    more = ("resume", run.id, "--add-attempts", "3")
    said = typed(*more, "--dry-run")
    assert _lines(said.out) == ["work held → ready", "review blocked"]
    assert f"Do it: holdfast {' '.join(more)}\n" in said.err
    assert run.holds == ["budget"]
