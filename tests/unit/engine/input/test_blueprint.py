"""Tasks as they are to be: whole, however they were made."""

from __future__ import annotations

from dataclasses import fields

from holdfast.clock import SystemClock
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.input import validation
from holdfast.engine.input.blueprint import TaskContainer, make_task_rows
from holdfast.ids import Ids
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step
from holdfast.randomness import SystemRandomness

IDS = Ids(SystemClock(), SystemRandomness())
BODY = (Step(id="implement"), Step(id="verify", needs=("implement",), verifies="implement"))


def remade(row: TaskRow) -> TaskRow:
    """The same by way of its own `__init__`, which takes all its fields and no others."""
    return TaskRow(**{each.name: getattr(row, each.name) for each in fields(TaskRow)})


def test_a_new_task_is_whole() -> None:
    row = validation.new_task(NewTask(title="job"), IDS, max_payload=100, now=lambda: 0)
    assert vars(row).keys() == {each.name for each in fields(TaskRow)}
    assert remade(row) == row


def test_the_tasks_of_a_body_are_whole_and_know_one_another() -> None:
    place = TaskContainer(run_id="r_1", priority=3, parent_id="t_1", parent_epoch=2, item=4)
    first, second = (make_task_rows(BODY, place, IDS) for _ in range(2))
    for row in (*first, *second):
        assert vars(row).keys() == {each.name for each in fields(TaskRow)}
        assert remade(row) == row
        assert (row.run_id, row.parent_id, row.parent_epoch, row.item) == ("r_1", "t_1", 2, 4)
    assert first[1].needs == (first[0].id,)
    assert first[1].verifies == first[0].id
    assert {row.id for row in first}.isdisjoint(row.id for row in second)
