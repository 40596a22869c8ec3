"""What a group inserts of a run: the same, whether its tasks were drawn before or only then."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.task_rows import TaskInserts, TemplatedTasks, measure_tasks
from holdfast.engine.input.blueprint import (
    KEPT_ROW_TEMPLATES,
    TaskContainer,
    make_run_rows,
    make_task_rows,
)
from holdfast.ids import Ids
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Concurrency, Step
from holdfast.model.workflow.reference import Reference
from holdfast.randomness import SeededRandomness

CHAIN = (Step(id="plan"), Step(id="build", needs=("plan",)), Step(id="ship", needs=("build",)))
RICH = (
    Step(id="first", priority=4, tags=("gpu",), retry=RetryPolicy(max_attempts=9), timeout=3.5),
    Step(id="asked", when=Reference.parse("when", "input.wanted")),
    Step(id="each", for_each=Reference.parse("for_each", "input.all"), steps=CHAIN),
    Step(id="join", needs=("first", "asked", "each"), concurrency=Concurrency(key="k", limit=3)),
    Step(id="last", needs=("join",), concurrency=Concurrency(key="k", limit=3)),
)
VERIFIED = (Step(id="make"), Step(id="check", needs=("make",), verifies="make"))
TOLD = (Step(id="write", title="On {{ input.topic }}", work=StepWork(command=("echo",))),)


def ids() -> Ids:
    return Ids(ManualClock(), SeededRandomness(3))


def place(priority: int) -> TaskContainer:
    return TaskContainer(
        run_id="r_1", priority=priority, variables=lambda: {"input": {"topic": "cats"}}
    )


@pytest.mark.parametrize("steps", [CHAIN, RICH, VERIFIED, TOLD], ids=lambda steps: steps[-1].id)
@pytest.mark.parametrize("priority", [0, 7])
def test_a_run_is_inserted_alike_however_early_it_is_drawn(
    steps: tuple[Step, ...], priority: int
) -> None:
    early, late = (
        make_task_rows(steps, place(priority), ids()),
        make_run_rows(steps, place(priority), ids()),
    )
    assert list(late) == list(early)
    assert list(late[1:]) == list(early[1:])
    assert measure_tasks(late) == measure_tasks(early)
    sheets = [TaskInserts(), TaskInserts()]
    for sheet, tasks in zip(sheets, (early, late), strict=True):
        sheet.add_run(tasks, "me", 64)
        sheet.add_run(tasks, "you", 0)
    assert sheets[0] == sheets[1]


def test_only_a_run_whose_tasks_tell_nothing_of_it_is_drawn_late() -> None:
    drawn = [type(make_run_rows(steps, place(0), ids())) for steps in (CHAIN, RICH, VERIFIED, TOLD)]
    assert drawn == [TemplatedTasks, TemplatedTasks, tuple, tuple]


def test_runs_of_many_priorities_are_drawn_each_in_its_own() -> None:
    for priority in range(2 * KEPT_ROW_TEMPLATES):
        assert make_run_rows(CHAIN, place(priority), ids())[0].priority == priority


def test_a_task_is_ripe_that_needs_nothing_and_no_claim() -> None:
    sheet = TaskInserts()
    sheet.add_run(make_run_rows(RICH, place(0), ids()), "me", 0)
    first, asked, each = (row[0] for row in sheet.rows[:3])
    assert sheet.ready == [first, asked, each]
    assert sheet.to_evaluate == [asked, each]
    assert sheet.slots == {"task:k": 3}
    assert sheet.wakes
