"""What a group inserts of a run: the same, whether its tasks were drawn before or only then."""

from __future__ import annotations

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.task_rows import Drawn, Sheet, measure
from holdfast.engine.input.blueprint import KEPT_STENCILS, Place, draw, draw_run
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


def place(priority: int) -> Place:
    return Place(run_id="r_1", priority=priority, scope=lambda: {"input": {"topic": "cats"}})


@pytest.mark.parametrize("steps", [CHAIN, RICH, VERIFIED, TOLD], ids=lambda steps: steps[-1].id)
@pytest.mark.parametrize("priority", [0, 7])
def test_a_run_is_inserted_alike_however_early_it_is_drawn(
    steps: tuple[Step, ...], priority: int
) -> None:
    early, late = draw(steps, place(priority), ids()), draw_run(steps, place(priority), ids())
    assert list(late) == list(early)
    assert list(late[1:]) == list(early[1:])
    assert measure(late) == measure(early)
    sheets = [Sheet(), Sheet()]
    for sheet, tasks in zip(sheets, (early, late), strict=True):
        sheet.add_run(tasks, "me", 64)
        sheet.add_run(tasks, "you", 0)
    assert sheets[0] == sheets[1]


def test_only_a_run_whose_tasks_tell_nothing_of_it_is_drawn_late() -> None:
    drawn = [type(draw_run(steps, place(0), ids())) for steps in (CHAIN, RICH, VERIFIED, TOLD)]
    assert drawn == [Drawn, Drawn, tuple, tuple]


def test_runs_of_many_priorities_are_drawn_each_in_its_own() -> None:
    for priority in range(2 * KEPT_STENCILS):
        assert draw_run(CHAIN, place(priority), ids())[0].priority == priority


def test_a_task_is_ripe_that_needs_nothing_and_no_claim() -> None:
    sheet = Sheet()
    sheet.add_run(draw_run(RICH, place(0), ids()), "me", 0)
    first, asked, each = (row[0] for row in sheet.rows[:3])
    assert sheet.ready == [first, asked, each]
    assert sheet.to_evaluate == [asked, each]
    assert sheet.slots == {"task:k": 3}
    assert sheet.wakes
