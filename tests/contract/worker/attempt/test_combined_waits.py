"""A function that waits for several things at once goes on with the first of them that comes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from holdfast import AsyncContext
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.task import Assignment, NewTask
from holdfast.worker.attempt.execution import Execution, Invocation
from holdfast.worker.pool.runner import make_step_loop
from tests.contract.task_states import create, finish

HOUR = 3600
Wait = Coroutine[Any, Any, Any]
Function = Callable[[Any], Any]
Beside = Callable[..., Awaitable[list[Any]]]


async def in_group(*waits: Wait) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in waits]
    return [task.result() for task in tasks]


async def gathered(*waits: Wait) -> list[Any]:
    return list(await asyncio.gather(*waits))


BOTH = pytest.mark.parametrize("beside", [in_group, gathered])


class Story:
    """A task whose function runs in this thread, once each time that it is due."""

    def __init__(self, engine: Engine, function: Function) -> None:
        self.engine = engine
        self.function = function
        self.task_id = create(engine)

    def goes_on(self) -> bool:
        """Whether it was due; if so, it has run until it had to wait or was done."""
        found = self.engine.work.claim("worker", lease=30 * 24 * HOUR)
        for assignment in found:
            self._attempt(assignment)
        return bool(found)

    def _attempt(self, assignment: Assignment) -> None:
        heard = threading.Event()
        execution = Execution(
            self.engine,
            assignment,
            deadline=float("inf"),
            on_finished=lambda _: heard.set(),
        )
        invocation = Invocation(
            function=self.function,
            arguments={"ctx": execution.context},
            encode=lambda result: result,
            asynchronous=inspect.iscoroutinefunction(self.function),
        )
        if invocation.asynchronous:
            with asyncio.Runner(loop_factory=make_step_loop) as runner:
                runner.run(execution.run_coroutine(invocation))
        else:
            execution.run_function(invocation)
        assert heard.wait(30)

    def signal(self, name: str, payload: object = None) -> None:
        assert self.engine.signals.send(self.task_id, name, payload).ok

    @property
    def state(self) -> str:
        return self.engine.tasks.get(self.task_id).state

    @property
    def output(self) -> object:
        task = self.engine.tasks.get(self.task_id)
        assert (task.state, task.failures) == ("done", 0), task
        return task.output


class Children:
    """Stands for a function that was made a task, with a title as `using(title=…)` gives it."""

    def __init__(self, title: str = "child") -> None:
        self.title = title

    def request(self, number: int) -> NewTask:
        return NewTask(title=self.title, payload={"number": number}, agent="child")

    def read_output(self, output: object) -> object:
        return output


@BOTH
@pytest.mark.parametrize("order", [1, -1])
def test_a_timer_fires_while_a_signal_is_waited_for(
    engine: Engine, clock: ManualClock, beside: Beside, order: int
) -> None:
    fired: list[int] = []

    async def remind(ctx: AsyncContext) -> str:
        await ctx.sleep("1h")
        await ctx.effect("mail", fired.append, ctx.attempt)
        return "reminded"

    async def work(ctx: AsyncContext) -> object:
        return sorted(await beside(*[remind(ctx), ctx.wait_for("go")][::order]))

    story = Story(engine, work)
    assert story.goes_on()
    assert not story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert (fired, story.state) == ([2], "waiting")
    clock.advance(9 * HOUR)
    assert not story.goes_on()
    story.signal("go", "gone")
    assert story.goes_on()
    assert story.output == ["gone", "reminded"]
    assert fired == [2]


@BOTH
def test_a_signal_is_heard_while_a_timer_runs(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    async def work(ctx: AsyncContext) -> object:
        return await beside(ctx.sleep("2h"), ctx.wait_for("go", timeout="3h"), ctx.sleep("1h"))

    story = Story(engine, work)
    assert story.goes_on()
    story.signal("go", 7)
    assert story.goes_on()
    assert "wait go" in engine.work.effects(story.task_id)
    for _ in range(2):
        assert not story.goes_on()
        clock.advance(HOUR)
        assert story.goes_on()
    # Both timers ran from the first attempt on: two hours later all is over.
    assert story.output == [None, 7, None]


@BOTH
def test_signals_are_heard_in_the_order_in_which_they_come(engine: Engine, beside: Beside) -> None:
    heard: list[object] = []

    async def hear(ctx: AsyncContext, name: str) -> None:
        heard.append(await ctx.effect(f"hear {name}", str, await ctx.wait_for(name)))

    async def work(ctx: AsyncContext) -> None:
        heard.clear()
        await beside(*(hear(ctx, name) for name in ("a", "b", "c")))

    story = Story(engine, work)
    assert story.goes_on()
    for number, name in enumerate(("c", "a", "b"), start=1):
        story.signal("other", name)
        assert not story.goes_on()
        story.signal(name, name)
        assert story.goes_on()
        assert len(heard) == number
    assert story.output is None


@BOTH
@pytest.mark.parametrize("order", [1, -1])
def test_children_and_a_signal_are_waited_for_together(
    engine: Engine, beside: Beside, order: int
) -> None:
    async def work(ctx: AsyncContext) -> object:
        return await beside(ctx.map(Children(), [1]), ctx.wait_for("a"), ctx.wait_for("b"))

    story = Story(engine, work)
    assert story.goes_on()
    (child,) = engine.tasks.list(parent=story.task_id)
    events: list[Callable[[], object]] = [
        lambda: finish(engine, child.id, 2),
        lambda: story.signal("b", "b"),
    ]
    for come in events[::order]:
        come()
        assert story.goes_on()
        assert story.state == "waiting"
    story.signal("a", "a")
    assert story.goes_on()
    assert story.output == [[2], "a", "b"]


def test_the_first_of_a_timer_and_a_signal_can_decide(engine: Engine, clock: ManualClock) -> None:
    async def work(ctx: AsyncContext) -> str:
        named = {
            asyncio.create_task(ctx.sleep("1h")): "late",
            asyncio.create_task(ctx.wait_for("yes")): "yes",
            asyncio.create_task(ctx.wait_for("no")): "no",
        }
        done, waiting = await asyncio.wait(named, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        for each in done:
            await each
        return "+".join(named[each] for each in done)

    late, refused = Story(engine, work), Story(engine, work)
    assert late.goes_on()
    assert refused.goes_on()
    refused.signal("no")
    assert refused.goes_on()
    assert refused.output == "no"
    clock.advance(HOUR)
    assert late.goes_on()
    assert late.output == "late"


@BOTH
def test_an_effect_under_way_beside_a_wait_is_done_once(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    done: list[str] = []

    async def slowly(name: str) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        done.append(name)

    async def both(ctx: AsyncContext) -> None:
        await beside(ctx.effect("one", slowly, "one"), ctx.effect("two", slowly, "two"))
        await ctx.sleep("1h")

    async def work(ctx: AsyncContext) -> object:
        return await beside(ctx.wait_for("go"), both(ctx))

    story = Story(engine, work)
    assert story.goes_on()
    assert sorted(done) == ["one", "two"]
    clock.advance(HOUR)
    assert story.goes_on()
    story.signal("go")
    assert story.goes_on()
    assert story.output == [None, None]
    assert sorted(done) == ["one", "two"]


@BOTH
def test_a_question_beside_a_timer_is_asked_first(
    engine: Engine, clock: ManualClock, beside: Beside
) -> None:
    async def work(ctx: AsyncContext) -> object:
        return await beside(ctx.sleep("1h"), ctx.ask("which?"), ctx.ask("how many?"))

    story = Story(engine, work)
    for asked, answer in (("which?", "this"), ("how many?", 2)):
        assert story.goes_on()
        assert engine.tasks.get(story.task_id).question == asked
        assert engine.tasks.answer(story.task_id, answer).ok
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == [None, "this", 2]


@BOTH
def test_an_error_beside_a_wait_fails_the_attempt(engine: Engine, beside: Beside) -> None:
    async def stumble(ctx: AsyncContext) -> None:
        await ctx.effect("look", str, 1)
        raise ValueError("stumbled")

    async def work(ctx: AsyncContext) -> object:
        return await beside(ctx.wait_for("go"), stumble(ctx), ctx.sleep("1h"))

    story = Story(engine, work)
    assert story.goes_on()
    assert engine.tasks.get(story.task_id).failures == 1


def test_a_wait_inside_an_effect_leaves_the_function_too(
    engine: Engine, clock: ManualClock
) -> None:
    async def work(ctx: AsyncContext) -> object:
        async def nap() -> str:
            await ctx.sleep("1h")
            return "rested"

        return await ctx.effect("nap", nap)

    story = Story(engine, work)
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    assert story.output == "rested"


def test_more_signals_than_fit_are_all_heard_in_the_end(engine: Engine) -> None:
    names = [f"{number:0189}x" for number in range(12)]

    async def work(ctx: AsyncContext) -> object:
        return await in_group(*(ctx.wait_for(name) for name in names))

    story = Story(engine, work)
    assert story.goes_on()
    for name in names:
        story.signal(name, name)
    while story.goes_on():
        pass
    assert story.output == names
