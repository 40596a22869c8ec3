"""What would end the same way in every attempt is not tried again, and tells how to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from holdfast import Context, InvalidInput
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from tests.contract.worker.attempt.test_combined_waits import HOUR, Children, Story


class Strict(Children):
    """Stands for a task function whose annotation the argument does not fit."""

    def request(self, number: int) -> NewTask:
        raise InvalidInput("number", f"{number!r} is no integer")


class Bound(Children):
    """Stands for a task function with options: `task.using(…)`."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def request(self, number: int) -> NewTask:
        return NewTask(**{"title": f"child {number}", **self._options})


async def _nothing() -> None: ...


OTHER = "t_" + "0" * 20
FIVE: Any = 5
PAID: Any = "paid"


CALLS: dict[str, Callable[[Context], Any]] = {
    "number: 'x' is no integer": lambda ctx: ctx.spawn(Strict(), cast("int", "x")),
    "number: 'y' is no integer": lambda ctx: ctx.map(Strict(), [cast("int", "y")]),
    "duration: 'soon' is not a duration": lambda ctx: ctx.sleep("soon"),
    "timeout: '80000d' cannot be waited for": lambda ctx: ctx.wait_for("go", timeout="80000d"),
    "effect: must be non-empty": lambda ctx: ctx.effect("", str),
    "effect: gave an awaitable": lambda ctx: ctx.effect("mail", _nothing),
    "effect: 'paid' is no function; give the function, and": lambda ctx: ctx.effect("pay", PAID),
    "effect: must be text, not int": lambda ctx: ctx.effect_id(FIVE),
    "signal: 'courier arrived'": lambda ctx: ctx.wait_for("courier arrived"),
    "signal: must be text, not int": lambda ctx: ctx.wait_for(FIVE),
    "progress: ": lambda ctx: ctx.progress(object()),
    "map: 'int' object is not iterable; give": lambda ctx: ctx.map(Bound(), FIVE),
    "needs: a child has none of": lambda ctx: ctx.spawn(Bound(needs=(OTHER,)), 1),
    "parent: a child has none of": lambda ctx: ctx.map(Bound(parent=OTHER), [1]),
    "key: a child has none of": lambda ctx: ctx.spawn(Bound(key="k"), 1),
    "title: ": lambda ctx: ctx.spawn(Bound(title=" "), 1),
}
REFUSED = pytest.mark.parametrize("told", CALLS)


@REFUSED
def test_a_task_function_that_passes_a_bad_argument_is_not_tried_again(
    engine: Engine, told: str
) -> None:
    story = Story(engine, CALLS[told])
    assert story.goes_on()
    task = engine.tasks.get(story.task_id)
    assert (task.status, task.failures) == ("failed", 1)
    assert task.error["message"].startswith(told)


@REFUSED
def test_a_function_may_catch_what_it_is_refused(engine: Engine, told: str) -> None:
    def work(ctx: Context) -> str:
        with pytest.raises(InvalidInput):
            CALLS[told](ctx)
        return "went on"

    story = Story(engine, work)
    assert story.goes_on()
    assert story.output == "went on"


def test_a_task_function_that_the_store_refused_is_tried_again(engine: Engine) -> None:
    def work(ctx: Context) -> None:
        engine.tasks.create(NewTask(title=f"after {ctx.task_id}", needs=("t_" + "0" * 20,)))

    story = Story(engine, work)
    assert story.goes_on()
    task = engine.tasks.get(story.task_id)
    assert (task.status, task.failures) == ("queued", 1)


def test_a_wait_that_timed_out_is_not_tried_again_but_waits_anew_when_it_is_told_to(
    engine: Engine, clock: ManualClock
) -> None:
    story = Story(engine, lambda ctx: ctx.wait_for("go", timeout="1h"))
    assert story.goes_on()
    clock.advance(HOUR)
    assert story.goes_on()
    task = engine.tasks.get(story.task_id)
    assert (task.status, task.failures) == ("failed", 1)
    assert task.error["message"] == (
        "no signal 'go' came in time, which is remembered and not tried again: catch TimeoutError, "
        f"or have it begin anew, its effects too: `holdfast retry --again {story.task_id}`"
    )
    assert engine.tasks.reopen(story.task_id).ok
    assert story.goes_on()
    assert story.state == "waiting"
    story.signal("go", 7)
    assert story.goes_on()
    assert engine.tasks.get(story.task_id).output == 7
