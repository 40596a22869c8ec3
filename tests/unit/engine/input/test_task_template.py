"""Tasks of one function: each is what it would be alone, and is refused for what it would be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from holdfast.clock import ManualClock, SystemClock
from holdfast.engine.core.task_rows import TaskRow
from holdfast.engine.input import validation
from holdfast.engine.input.task_template import TaskSource, TaskTemplate, TemplatedTask
from holdfast.errors import InvalidInput
from holdfast.ids import Ids
from holdfast.model.hook import HOOK_PREFIX
from holdfast.model.retry import RetryPolicy
from holdfast.model.task import NewTask
from holdfast.model.trace import Trace
from holdfast.model.workflow.graph import Concurrency
from holdfast.randomness import SeededRandomness, SystemRandomness

EDGE = TaskSource(
    ids=Ids(SystemClock(), SystemRandomness()), max_payload=100, now=ManualClock().now
)
NEED = EDGE.ids.task()
RICH = NewTask(
    title="Build it",
    step="build",
    agent="developer",
    needs=(NEED,),
    parent=NEED,
    priority=3,
    position=2,
    tags=("gpu", "big"),
    retry=RetryPolicy(max_attempts=7),
    timeout=4.5,
    concurrency=Concurrency(key="repo", limit=2),
    enqueue=False,
)


def alone(task: NewTask) -> TaskRow:
    return validation.new_task(task, EDGE.ids, max_payload=EDGE.max_payload, now=EDGE.now)


def refusal(make: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as refused:
        make()
    return refused.value.field, refused.value.reason


@pytest.mark.parametrize(
    "task",
    [
        NewTask(title="job"),
        RICH,
        NewTask(title="planned", plan=True),
        NewTask(title="later", scheduled_for="2s"),
    ],
)
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("trace", [None, Trace(trace_id="1" * 32)])
def test_a_prepared_task_is_what_it_would_be_alone(
    task: NewTask, key: str | None, trace: Trace | None
) -> None:
    prepared = TaskTemplate(task)
    for payload in ({"a": 1}, {}, None, [2]):
        row = prepared.make_row(EDGE, TemplatedTask(payload, key), trace)
        same = alone(replace(task, payload=payload, key=key, trace=trace))
        assert row == replace(same, id=row.id)
        assert row.id != same.id
        assert vars(row).keys() == {each.name for each in fields(TaskRow)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": " "},
        {"agent": "no name"},
        {"needs": ("x",)},
        {"parent": "x"},
        {"tags": ("no name",)},
        {"timeout": 0},
        {"scheduled_for": "soon"},
    ],
)
@pytest.mark.parametrize("given", [{"payload": {}}, {"payload": "x" * 200}, {"key": " "}])
def test_a_mistake_in_a_prepared_task_is_told_in_the_same_words_every_time(
    wrong: dict[str, Any], given: dict[str, Any]
) -> None:
    task = replace(NewTask(title="job"), **wrong)
    prepared = TaskTemplate(task)
    for _ in range(2):
        told = refusal(
            lambda: prepared.make_row(EDGE, TemplatedTask(given.get("payload"), given.get("key")))
        )
        assert told == refusal(lambda: alone(replace(task, **given)))


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("payload", "key"),
    [
        ("x" * 200, None),
        (object(), None),
        (ENDLESS, None),
        ({}, " "),
        ({}, HOOK_PREFIX + "x"),
        ({}, 7),
    ],
)
def test_the_payload_and_the_key_of_each_task_are_refused_as_they_would_be_alone(
    payload: object,
    key: Any,  # noqa: ANN401
) -> None:
    prepared = TaskTemplate(RICH)
    task = replace(RICH, payload=payload, key=key)
    assert refusal(lambda: prepared.make_row(EDGE, TemplatedTask(payload, key))) == refusal(
        lambda: alone(task)
    )


def test_ids_come_from_where_it_is_asked_for() -> None:
    made = Ids(ManualClock(), SeededRandomness(1)).draw_task_ids(2)
    edge = replace(EDGE, ids=made)
    prepared = TaskTemplate(NewTask(title="job"))
    first, second = (prepared.make_row(edge, TemplatedTask(None)) for _ in range(2))
    assert first.id < second.id
