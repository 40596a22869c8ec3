"""Functions that follow ends, as a program writes them and a worker runs them."""

from __future__ import annotations

import logging
import queue
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from holdfast import (
    AsyncContext,
    Context,
    Ended,
    Holdfast,
    InvalidDefinition,
    InvalidInput,
    TaskFailed,
    needs,
)
from holdfast.model.hook import RUN_ENDS
from holdfast.model.status import Status
from holdfast.model.task import Task
from tests.race.racers import eventually

PATIENCE = 30


def follow(event: Ended) -> None: ...


def hook_tasks(hf: Holdfast, name: str) -> list[Task]:
    return [task for task in hf.tasks.list() if task.step == f"hook {name}"]


def settled(hf: Holdfast, name: str, status: Status) -> Task:
    """The one task of a hook, when it has come to a status."""
    assert eventually(lambda: [task.status for task in hook_tasks(hf, name)] == [status])
    (task,) = hook_tasks(hf, name)
    return task


def test_functions_with_and_without_a_context_follow_the_end_of_a_run(hf: Holdfast) -> None:
    heard: queue.Queue[tuple[str, Ended]] = queue.Queue()
    checkout = hf.workflow("checkout")

    @checkout.step
    def pay(order: int) -> int:
        return order

    @hf.on("run.completed", workflow=checkout)
    def plain(event: Ended) -> None:
        heard.put(("plain", event))

    @hf.on("run.completed", "run.failed", workflow="checkout")
    async def with_context(ctx: AsyncContext, event: Ended) -> str:
        await ctx.effect("note", heard.put, ("with_context", event))
        return ctx.task_id

    with hf.worker():
        handle = checkout.start(order=7)
        assert handle.result(PATIENCE) == 7
        calls = dict(heard.get(timeout=PATIENCE) for _ in range(2))
        done = settled(hf, "with_context", Status.DONE)
    assert calls.keys() == {"plain", "with_context"}
    for event in calls.values():
        assert (event.type, event.run_id, event.task_id) == ("run.completed", handle.id, None)
        assert (event.workflow, event.generation, event.target) == ("checkout", 1, "completed")
    assert done.output == done.id
    assert heard.empty()


def told_of_hooks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged of hooks; a worker tells of every function that raised."""
    return [each.getMessage() for each in caplog.records if each.name == "holdfast.hooks"]


def test_a_hook_that_throws_is_tried_again_then_failed_and_keeps_no_other_from_running(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[tuple[int, str | None]] = []
    heard: list[Ended] = []
    others = threading.Barrier(3)

    @hf.task
    def send() -> str:
        return "sent"

    @hf.on("task.done", name="a-first")
    def first(event: Ended) -> None:
        heard.append(event)
        others.wait(PATIENCE)

    @hf.on("task.done", name="b-thrower", max_attempts=2, backoff=0)
    def thrower(ctx: Context, event: Ended) -> None:
        tried.append((ctx.attempt, event.task_id))
        raise ConnectionError("no mail today")

    @hf.on("task.done", name="c-last", task=send)
    def last(event: Ended) -> None:
        heard.append(event)
        others.wait(PATIENCE)

    with caplog.at_level(logging.ERROR, "holdfast.hooks"), hf.worker(concurrency=4):
        handle = send.enqueue()
        assert handle.result(PATIENCE) == "sent"
        others.wait(PATIENCE)
        failed = settled(hf, "b-thrower", Status.FAILED)
        assert eventually(lambda: bool(told_of_hooks(caplog)))
    assert tried == [(1, handle.id), (2, handle.id)]
    assert [event.task_id for event in heard] == [handle.id, handle.id]
    assert hf.tasks.get(handle.id).status is Status.DONE
    assert [each.outcome for each in hf.tasks.attempts(failed.id)] == ["failed", "failed"]
    assert failed.id in [task.id for task in hf.tasks.list(status="failed")]
    (message,) = told_of_hooks(caplog)
    for part in ("b-thrower", handle.id, "no mail today", f'hf.tasks.retry("{failed.id}")'):
        assert part in message


def test_a_task_that_is_no_hooks_fails_without_a_word_of_hooks(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    @hf.task(max_attempts=1)
    def broken() -> None:
        raise ConnectionError

    @hf.on("task.done")
    def after(event: Ended) -> None: ...

    with (
        caplog.at_level(logging.ERROR, "holdfast.hooks"),
        hf.worker(),
        pytest.raises(TaskFailed),
    ):
        broken.enqueue().result(PATIENCE)
    assert told_of_hooks(caplog) == []


def test_a_hook_whose_function_no_worker_has_is_held_and_why_names_it(
    hf: Holdfast, store_url: str
) -> None:
    heard: queue.Queue[Ended] = queue.Queue()

    @hf.on("task.done")
    def only_here(event: Ended) -> None:
        heard.put(event)

    assert [each.name for each in hf.hooks.list()] == ["only_here"]
    with Holdfast(store_url) as other:

        @other.task
        def send() -> None: ...

        with other.worker(name="unable"):
            send.enqueue().result(PATIENCE)
            assert eventually(
                lambda: [t.holds.names for t in hook_tasks(hf, "only_here")] == [("version",)]
            )
        (task,) = hook_tasks(hf, "only_here")
        assert "no function 'hook only_here'" in str(hf.why(task.id))
        with hf.worker(name="able"):
            assert heard.get(timeout=PATIENCE).step == "send"
            settled(hf, "only_here", Status.DONE)


def test_a_task_of_the_same_name_is_not_taken_for_the_hook(hf: Holdfast) -> None:
    heard: queue.Queue[str] = queue.Queue()

    @hf.task(name="send")
    def task(address: str) -> None:
        heard.put(f"task {address}")

    @hf.on("task.done", name="send")
    def after(event: Ended) -> None:
        heard.put(f"hook {event.step}")

    with hf.worker():
        task.enqueue("ada")
        assert [heard.get(timeout=PATIENCE) for _ in range(2)] == ["task ada", "hook send"]
        settled(hf, "send", Status.DONE)
    assert heard.empty()


def test_the_store_hears_of_hooks_when_it_is_opened_and_of_later_ones_at_once(
    store_url: str,
) -> None:
    with Holdfast(store_url) as hf, Holdfast(store_url) as looker:

        @hf.on("run.failed")
        def early(event: Ended) -> None: ...

        assert looker.hooks.list() == []
        assert [each.name for each in hf.hooks.list()] == ["early"]

        @hf.on(*RUN_ENDS, workflow="checkout", agent="mailer", max_attempts=9)
        def late(event: Ended) -> None: ...

        found = {each.name: each for each in looker.hooks.list()}
        assert found.keys() == {"early", "late"}
        assert (found["late"].about, found["late"].agent) == ("checkout", "mailer")
        assert (found["late"].events, found["late"].max_attempts) == (tuple(sorted(RUN_ENDS)), 9)
        assert looker.hooks.remove("early").ok
        assert [each.name for each in hf.hooks.list()] == ["late"]


def test_a_hook_that_the_store_was_not_told_of_is_no_hook_and_can_be_said_again(
    hf: Holdfast, tmp_path: Path
) -> None:
    said: list[Callable[[], object]] = [
        lambda: hf.on("task.done")(follow),
        lambda: hf.archive(tmp_path),
    ]
    with hf.transaction() as connection:
        connection.execute("ALTER TABLE holdfast_hook RENAME TO holdfast_elsewhere")
    for say in said:
        with pytest.raises(Exception, match="holdfast_hook"):
            say()
    with hf.transaction() as connection:
        connection.execute("ALTER TABLE holdfast_elsewhere RENAME TO holdfast_hook")
    assert hf.hooks.list() == []
    for say in said:
        say()
    assert [hook.name for hook in hf.hooks.list()] == ["archive", "follow"]
    with pytest.raises(InvalidDefinition, match="already a hook"):
        hf.on("task.done")(follow)


def test_many_processes_that_open_a_store_at_once_register_each_hook_once(store_url: str) -> None:
    with Holdfast(store_url) as first:
        assert first.hooks.list() == []
    opening = threading.Barrier(6)
    programs = [Holdfast(store_url) for _ in range(6)]

    def open_one(hf: Holdfast) -> None:
        for name in ("one", "two", "three"):
            hf.on("run.failed", name=name)(follow)
        opening.wait(PATIENCE)
        assert len(hf.hooks.list()) == 3

    threads = [threading.Thread(target=open_one, args=(hf,)) for hf in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [each.name for each in programs[0].hooks.list()] == ["one", "three", "two"]
    for hf in programs:
        hf.close()


@pytest.mark.parametrize(
    ("events", "options", "field"),
    [
        ((), {}, "events"),
        (("run.ended",), {}, "events"),
        (("task.done",), {"workflow": "checkout"}, "workflow"),
        (("run.failed",), {"task": "send"}, "task"),
        (("run.failed",), {"task": "send", "workflow": "checkout"}, "task"),
        (("run.failed",), {"attempts": 3}, "attempts"),
        (("run.failed",), {"name": "two words"}, "hook"),
    ],
)
def test_a_hook_on_an_impossible_end_is_refused_before_anything_is_stored(
    hf: Holdfast, events: tuple[str, ...], options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        hf.on(*events, **options)(follow)
    assert refused.value.field == field
    assert hf.hooks.list() == []


def test_a_function_whose_parameter_can_never_be_the_event_is_refused(hf: Holdfast) -> None:
    def a_number(x: int) -> None: ...

    def a_row(ctx: Context, x: dict[str, Any] | None) -> None: ...

    for function, shown in ((a_number, "int"), (a_row, "dict[str, typing.Any] | None")):
        told = f"parameter 'x': takes the event, an Ended, and never {shown}"
        with pytest.raises(InvalidDefinition, match=re.escape(told)):
            hf.on("run.failed")(function)

    @hf.on("run.failed")
    def general(x: Annotated[str | object, "more"]) -> None: ...

    @hf.on("run.failed")
    def anything(x: Any) -> None: ...  # noqa: ANN401 - it is what this is about

    hf.on("run.failed", name="untold")(lambda _: None)


def test_a_function_that_takes_no_event_or_more_than_that_is_refused(hf: Holdfast) -> None:
    def nothing() -> None: ...

    def only_context(ctx: Context) -> None: ...

    def too_much(event: Ended, more: int) -> None: ...

    def a_step(event: Ended, other: int = needs("other")) -> None: ...

    for function in (nothing, only_context, too_much, a_step):
        with pytest.raises(InvalidDefinition, match="takes the event"):
            hf.on("run.failed")(function)

    @hf.on("run.failed")
    def twice(event: Ended) -> None: ...

    with pytest.raises(InvalidDefinition, match="already a hook"):
        hf.on("run.failed")(twice)
