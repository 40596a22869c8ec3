"""The arguments of a call: bound as Python binds them, and refused in its words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.api.signature import Signature
from holdfast.errors import InvalidInput


def job(first: int, second: int = 2, *, third: int, fourth: int = 4) -> None:
    """Takes some by place, some by name, some not at all."""


def nothing() -> None:
    """Takes nothing."""


NAMES = ("first", "second", "third", "fourth", "fifth")


@given(
    function=st.sampled_from([job, nothing]),
    args=st.lists(st.integers(), max_size=4).map(tuple),
    kwargs=st.dictionaries(st.sampled_from(NAMES), st.integers()),
)
@example(function=job, args=(1,), kwargs={"third": 3})
@example(function=nothing, args=(), kwargs={})
def test_a_call_is_bound_as_python_binds_it(
    function: Callable[..., Any],
    args: tuple[int, ...],
    kwargs: dict[str, int],
) -> None:
    assert ours(Signature(function), args, kwargs) == pythons(function, args, kwargs)


def ours(signature: Signature, args: tuple[int, ...], kwargs: dict[str, int]) -> object:
    try:
        return list(signature.bind_call(args, kwargs).items())
    except InvalidInput as refused:
        return refused.reason


def pythons(function: Callable[..., Any], args: tuple[int, ...], kwargs: dict[str, int]) -> object:
    try:
        return list(inspect.signature(function).bind(*args, **kwargs).arguments.items())
    except TypeError as refused:
        return str(refused)
