"""Loops: a list becomes items, each item a group of its steps, in turn or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.task_states import break_for_good, finish, take

BODY = (Step(id="implement"), Step(id="test", needs=("implement",)))


def loop(over: str = "steps.plan.stories", *, body: tuple[Step, ...] = BODY, **more: Any) -> Step:
    return Step(id="build", for_each=Reference.parse("for_each", over), steps=body, **more)


def begin(engine: Engine, *steps: Step, given: object = None) -> str:
    return engine.runs.start(NewRun(workflow=Workflow.define("w", steps), input=given)).id


def planned(engine: Engine, *steps: Step, stories: Sequence[object]) -> str:
    """A run whose first step has given a list."""
    run = begin(engine, Step(id="plan"), *steps)
    finish(engine, of(engine, run, "plan")[0].id, {"stories": list(stories)})
    return run


def of(engine: Engine, run: str, step: str) -> list[Task]:
    """The tasks of a step that count, those of a loop's items in their order."""
    tasks = [task for task in engine.runs.tasks(run) if task.step == step and not task.superseded]
    return sorted(tasks, key=lambda task: (task.item is not None, task.item or 0, task.id))


def ready(engine: Engine, run: str) -> list[str]:
    return [
        f"{task.step} {task.item}"
        for task in engine.runs.tasks(run)
        if task.state == "ready" and task.kind == "work"
    ]


def work_off(engine: Engine, run: str) -> list[str]:
    """Do everything of a run, in the order it is handed out."""
    order = []
    while taken := engine.work.claim("worker", count=1):
        (assignment,) = taken
        task = assignment.task
        order.append(f"{task.step} {task.item}" if task.item is not None else str(task.step))
        made = f"{task.step} {assignment.item}"
        assert engine.work.complete(task.id, assignment.token, made).ok
    assert engine.runs.get(run).status == "completed"
    return order


def test_a_loop_does_its_items_in_turn_and_gives_the_list_of_their_outputs(engine: Engine) -> None:
    after = Step(id="after", needs=("build",))
    run = planned(engine, loop(needs=("plan",)), after, stories=["a", "b", "c"])
    assert ready(engine, run) == ["implement 0"]
    order = [f"{step} {item}" for item in range(3) for step in ("implement", "test")]
    assert work_off(engine, run) == [*order, "after"]
    built = of(engine, run, "build")
    assert built[0].output == ["test a", "test b", "test c"]
    assert [item.output for item in built[1:]] == built[0].output


def test_a_parallel_loop_has_as_many_items_under_way_as_it_may(engine: Engine) -> None:
    run = planned(engine, loop(needs=("plan",), parallel=2), stories=["a", "b", "c"])
    assert ready(engine, run) == ["implement 0", "implement 1"]
    finish(engine, of(engine, run, "implement")[1].id)
    finish(engine, of(engine, run, "test")[1].id)
    assert ready(engine, run) == ["implement 0", "implement 2"]
    work_off(engine, run)


def test_an_empty_list_is_done_at_once(engine: Engine) -> None:
    run = planned(engine, loop(needs=("plan",)), stories=[])
    assert engine.runs.get(run).status == "completed"
    assert of(engine, run, "build")[0].output == []


def test_a_loop_over_the_input_begins_with_the_run(engine: Engine) -> None:
    run = begin(engine, loop("input.stories"), given={"stories": ["a"]})
    assert work_off(engine, run) == ["implement 0", "test 0"]


def test_a_loop_goes_over_the_list_that_a_person_gave_with_an_approval(engine: Engine) -> None:
    run = begin(engine, Step(id="gate", approval="Which?"), loop("steps.gate", needs=("gate",)))
    assert engine.tasks.approve(of(engine, run, "gate")[0].id, ["a", "b"]).ok
    assert work_off(engine, run) == ["implement 0", "test 0", "implement 1", "test 1"]


def test_a_loop_inside_a_loop_sees_the_item_around_it(engine: Engine) -> None:
    inner = Step(
        id="inner",
        for_each=Reference.parse("for_each", "item.files"),
        parallel=9,
        steps=(Step(id="edit"),),
    )
    outer = loop("input.stories", body=(inner, Step(id="test", needs=("inner",))))
    run = begin(engine, outer, given={"stories": [{"files": ["x", "y"]}, {"files": []}]})
    assert work_off(engine, run) == ["edit 0", "edit 1", "test 0", "test 1"]
    inners = of(engine, run, "inner")
    assert [task.output for task in inners if task.total is not None] == [["edit x", "edit y"], []]


def test_the_title_of_a_loop_names_each_item(engine: Engine) -> None:
    named = loop(needs=("plan",), title="{{ item.name }}")
    run = planned(engine, named, stories=[{"name": "a"}, {"name": "b"}])
    assert [each.title for each in of(engine, run, "build")] == ["build", "a", "b"]
    work_off(engine, run)


def test_the_output_of_an_item_is_the_output_of_its_last_steps(engine: Engine) -> None:
    run = begin(engine, loop("input", body=(Step(id="left"), Step(id="right"))), given=["a"])
    work_off(engine, run)
    assert of(engine, run, "build")[0].output == [{"left": "left a", "right": "right a"}]


def test_a_failed_item_fails_every_group_around_it_and_starts_no_other(engine: Engine) -> None:
    run = begin(engine, loop("input", parallel=1), given=["a", "b"])
    break_for_good(engine, of(engine, run, "implement")[0].id)
    assert engine.runs.get(run).status == "failed"
    statuses = [task.status for task in of(engine, run, "build")]
    assert statuses == [Status.FAILED, Status.FAILED, Status.IDLE]


def test_a_retry_goes_on_with_the_failed_item(engine: Engine) -> None:
    run = begin(engine, loop("input"), given=["a", "b"])
    break_for_good(engine, of(engine, run, "implement")[0].id)
    assert engine.runs.retry(run).ok
    assert work_off(engine, run) == [
        f"{step} {item}" for item in range(2) for step in ("implement", "test")
    ]


def test_a_loop_begun_again_makes_other_items_and_the_old_ones_count_no_more(
    engine: Engine,
) -> None:
    run = planned(engine, loop(needs=("plan",)), stories=["a", "b"])
    running = take(engine, of(engine, run, "implement")[0].id)
    assert engine.runs.retry(run, step="plan").ok
    assert engine.work.complete(running.task.id, running.token).reason == "already_terminal"
    finish(engine, of(engine, run, "plan")[0].id, {"stories": ["c"]})
    assert work_off(engine, run) == ["implement 0", "test 0"]
    assert of(engine, run, "build")[0].output == ["test c"]


@pytest.mark.parametrize(
    ("over", "given", "told"),
    [
        ("input.stories", {}, "there is no input.stories"),
        ("input.stories", {"stories": 3}, "input.stories is no list, but int"),
        ("input.stories.title", {"stories": [1]}, "leads into list"),
    ],
)
def test_a_loop_without_a_list_fails_and_says_why(
    engine: Engine, over: str, given: object, told: str
) -> None:
    run = begin(engine, loop(over), given=given)
    assert engine.runs.get(run).status == "failed"
    assert told in of(engine, run, "build")[0].error


def test_a_step_whose_condition_does_not_hold_is_skipped_and_satisfies_needs(
    engine: Engine,
) -> None:
    when = Reference.parse("when", "{{ steps.plan.deploy }}")
    deploy = Step(id="deploy", needs=("plan",), when=when)
    last = Step(id="last", needs=("deploy",))
    for wanted, order in ((False, ["last"]), (True, ["deploy", "last"])):
        run = begin(engine, Step(id="plan"), deploy, last)
        finish(engine, of(engine, run, "plan")[0].id, {"deploy": wanted})
        assert work_off(engine, run) == order
        task = of(engine, run, "deploy")[0]
        assert (task.status, task.skipped) == (Status.DONE, not wanted)


def test_a_loop_may_have_a_condition_too(engine: Engine) -> None:
    when = Reference.parse("when", "input.wanted")
    run = begin(engine, loop("input.list", when=when), given={"wanted": 0, "list": [1]})
    assert engine.runs.get(run).status == "completed"
    run = begin(engine, loop("input.list", when=when), given={"wanted": 1, "list": [1]})
    assert work_off(engine, run) == ["implement 0", "test 0"]


def test_advance_heals_a_loop_as_often_as_anyone_likes(engine: Engine) -> None:
    run = planned(engine, loop(needs=("plan",)), stories=["a"])
    before = engine.runs.events(run)
    for _ in range(3):
        engine.runs.advance(run)
    assert engine.runs.events(run) == before


def test_a_loop_of_thousands_makes_its_items_a_part_at_a_time(engine: Engine) -> None:
    run = begin(
        engine, loop("input", body=(Step(id="one"),), parallel=50), given=list(range(2_500))
    )
    assert len(of(engine, run, "build")) == 1 + 2_000
    done = 0
    while taken := engine.work.claim("worker", count=50):
        for each in taken:
            engine.work.complete.submit(each.task.id, each.token, each.item)
        done += len(taken)
    assert done == 2_500
    assert engine.runs.get(run).status == "completed"
    assert of(engine, run, "build")[0].output == list(range(2_500))
