"""A task or step looks like its function: to `inspect`, to `help`, and to frameworks."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Holdfast


def send(address: str, *, greeting: str = "Hello") -> str:
    """Send a letter."""
    return f"{greeting} {address}"


async def ship(ctx: Context | None, parcel: int) -> int:
    """Ship a parcel."""
    return parcel if ctx is None else -parcel


class Sender:
    """Sends letters."""

    __name__ = "sender"

    def __call__(self, address: str) -> str:
        return address


def as_task(function: Callable[..., Any]) -> Callable[..., Any]:
    return Holdfast("sqlite:///never.db").task(max_attempts=2)(function)


def as_step(function: Callable[..., Any]) -> Callable[..., Any]:
    return Holdfast("sqlite:///never.db").workflow("flow").step(max_attempts=2)(function)


def as_task_with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    return Holdfast("sqlite:///never.db").task(function).using(priority=3)


MADE = pytest.mark.parametrize("made_of", [as_task, as_step, as_task_with_options])


@MADE
@pytest.mark.parametrize("function", [send, ship])
def test_what_inspect_tells_of_a_function_it_tells_of_the_task_or_step(
    made_of: Callable[..., Any], function: Callable[..., Any]
) -> None:
    made = made_of(function)
    assert inspect.signature(made) == inspect.signature(function)
    assert inspect.unwrap(made) is function
    assert inspect.getdoc(made) == inspect.getdoc(function)
    assert (made.__name__, made.__qualname__) == (function.__name__, function.__qualname__)
    assert made.__module__ == function.__module__
    assert inspect.iscoroutinefunction(made) is inspect.iscoroutinefunction(function)


@MADE
def test_a_call_of_a_coroutine_task_or_step_is_awaited_as_before(
    made_of: Callable[..., Any],
) -> None:
    assert asyncio.run(made_of(ship)(None, parcel=3)) == 3


def test_a_task_of_something_callable_tells_its_parameters_too() -> None:
    late = functools.partial(ship, parcel=3)
    hf = Holdfast("sqlite:///never.db")
    made = hf.task(name="late")(late)
    assert inspect.signature(made) == inspect.signature(late)
    assert inspect.iscoroutinefunction(made)
    assert made.__name__ == "late"
    called = hf.task(name="called")(Sender())
    assert list(inspect.signature(called).parameters) == ["address"]
    assert called("ada") == "ada"
