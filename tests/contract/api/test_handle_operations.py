"""Handles: what a task or run stands at, what it gave, and the operations on it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Handle, Holdfast, InvalidInput, RunHandle, TaskFailed
from holdfast.model.task import NewTask

PATIENCE = 30


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url, poll=60) as opened:
        yield opened


def divide(number: int) -> datetime:
    return datetime.fromtimestamp(1 / number, UTC)


def started(hf: Holdfast, kind: str) -> Handle[object]:
    """A handle on a task or on a run of the same function."""
    if kind == "task":
        return hf.task(max_attempts=1)(divide).enqueue(0)
    flow = hf.workflow("flow")
    flow.step(max_attempts=1)(divide)
    return flow.start(number=0)


@pytest.mark.parametrize("kind", ["task", "run"])
def test_a_handle_tells_its_status_and_why_is_cancelled_and_tried_again(
    hf: Holdfast, kind: str
) -> None:
    handle = started(hf, kind)
    assert isinstance(handle, RunHandle) is (kind == "run")
    assert handle.status() == ("running" if kind == "run" else "queued")
    assert handle.output() is None
    assert str(handle.why()) == str(hf.why(handle))
    assert handle.cancel(actor="ada").ok
    assert not handle.cancel().ok
    assert handle.status() == "cancelled"
    assert handle.retry().ok
    with hf.worker(), pytest.raises(TaskFailed):
        handle.result("30s")
    assert (handle.status(), handle.output()) == ("failed", None)


@pytest.mark.parametrize("kind", ["task", "run"])
def test_the_output_of_a_handle_is_what_its_function_gave_once_it_is_done(
    hf: Holdfast, kind: str
) -> None:
    if kind == "task":
        handle: Handle[object] = hf.task(divide).enqueue(1)
    else:
        flow = hf.workflow("flow")
        flow.step(divide)
        handle = flow.start(number=1)
    with hf.worker():
        given = handle.result(timedelta(seconds=PATIENCE))
    assert handle.output() == given == datetime.fromtimestamp(1, UTC)


def test_coroutines_await_each_of_them(hf: Holdfast) -> None:
    handle = started(hf, "task")

    async def use() -> None:
        assert await handle.status.aio() == "queued"
        assert await handle.output.aio() is None
        assert str(await handle.why.aio()) == str(hf.why(handle))
        with hf.transaction() as connection:
            assert (await handle.cancel.aio(connection=connection)).ok
        assert await handle.status.aio() == "cancelled"
        assert (await handle.retry.aio()).ok

    asyncio.run(use())


def test_a_plan_gives_its_list_as_its_output(hf: Holdfast) -> None:
    job = hf.task(divide)
    plan = hf.plan("two")
    plan.add(job.using(key="first"), 1)
    plan.add(job, 2)
    assert plan.finalize().ok
    with hf.worker():
        plan.result(PATIENCE)
    assert plan.output() == [datetime.fromtimestamp(1 / each, UTC) for each in (1, 2)]
    assert [task.key for task in plan.children()] == ["first", None]


def test_times_are_datetimes_with_a_time_zone(hf: Holdfast) -> None:
    due = datetime(2100, 1, 1, 12, tzinfo=UTC)
    job = hf.task(divide)
    handle = job.using(scheduled_for=due, timeout=timedelta(minutes=2)).enqueue(1)
    task = hf.tasks.get(handle)
    assert (task.scheduled_for, task.timeout) == (due, 120)
    assert abs(task.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert abs(hf.tasks.events(handle)[0].at - task.created_at) < timedelta(seconds=1)
    with pytest.raises(
        InvalidInput, match=r"scheduled_for: .*has no time zone; .*duration from now"
    ):
        job.using(scheduled_for=due.replace(tzinfo=None)).enqueue(1)
    with pytest.raises(InvalidInput, match="has no time zone"):
        hf.tasks.edit(handle, {"scheduled_for": due.replace(tzinfo=None)})


def test_a_key_and_a_connection_may_be_said_before_the_call(hf: Holdfast) -> None:
    job = hf.task(divide)
    with hf.transaction() as connection:
        inside = job.using(key="7", connection=connection)
        first = inside.enqueue(1)
        with pytest.raises(InvalidInput, match="key: is of one call"):
            inside.enqueue_many([{"number": 1}])
    again = job.using(key="7").enqueue(1)
    assert (again.id, again.created) == (first.id, False)
    assert job.using(key="7").enqueue(1, key="8").created
    assert job.using(key="9").request(1) == NewTask(
        title="divide", step="divide", payload={"number": 1}, key="9"
    )
