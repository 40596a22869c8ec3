"""Every operation says about how much it sends, so that a group can end in time."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from holdfast.engine.core import operation
from holdfast.engine.core.operation import Complete, CreateTasks, EditTask, Fail, Operation, Renew
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.surroundings.schedules import FireTicks, PutSchedule

LONG = "x" * 100_000
REPORT: dict[str, Any] = {"task_id": "t", "fence": 1}
SCHEDULE = PutSchedule(
    name="s",
    cron="",
    zone="",
    missed="one",
    template="",
    input="",
    run_id=None,
    body_digest="",
    next_at=1,
)
ROW = TaskRow(
    id="t",
    title="t",
    agent="a",
    status="queued",
    max_attempts=1,
    max_lost=1,
    backoff=1,
    backoff_max=1,
    payload=LONG,
)


@pytest.mark.parametrize(
    "operation",
    [
        Complete(**REPORT, output=LONG, digest=""),
        Complete(**REPORT, output="", digest="", usage=LONG),
        Fail(**REPORT, error=LONG, digest="", retryable=True, jitter=1.0),
        Fail(**REPORT, error="", digest="", retryable=True, jitter=1.0, usage=LONG),
        Renew(**REPORT, lease=1, progress=LONG),
        Renew(**REPORT, lease=1, usage=LONG),
        EditTask(task_id="t", actor="me", changes={"payload": LONG, "priority": 1}),
        CreateTasks(tasks=(ROW,), actor="me"),
        replace(SCHEDULE, input=LONG),
        replace(SCHEDULE, template=LONG),
        replace(SCHEDULE, definition=LONG),
        FireTicks(name="s", version=1, ticks=(1,), next_at=2, input_size=len(LONG)),
    ],
)
def test_a_long_text_counts(operation: Operation) -> None:
    assert len(LONG) < operation.size < 2 * len(LONG)


def test_a_new_run_counts_its_input_its_definition_and_its_tasks() -> None:
    given: dict[str, Any] = {each.name: "" for each in fields(operation.StartRun)}
    given |= {"input": LONG, "definition": LONG, "tasks": (ROW, ROW)}
    start = operation.StartRun(**given)
    assert start.size > 4 * len(LONG)


def test_an_operation_without_texts_is_small_but_not_nothing() -> None:
    assert 0 < operation.Sweep().size < 1_000
