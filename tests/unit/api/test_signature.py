"""The arguments of a call: bound as Python binds them, and refused in its words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.api.signature import Signature
from holdfast.errors import InvalidDefinition, InvalidInput


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


class Client:
    """What a program keeps open, and no JSON can hold."""


def send(client: Client, letter: int, copies: int = 1) -> int:
    assert client is not None
    return letter * copies


class Sender:
    async def __call__(self, letter: int) -> int:
        return letter


@pytest.mark.parametrize(
    ("called", "asynchronous"),
    [
        (partial(send, Client()), False),
        (partial(send, client=Client(), copies=2), False),
        (Sender(), True),
        (partial(Sender()), True),
        (partial(Sender().__call__), True),
    ],
)
def test_a_callable_that_is_no_function_is_bound_by_its_annotations(
    called: Callable[..., Any], *, asynchronous: bool
) -> None:
    signature = Signature(called)
    assert signature.bind_call((), {"letter": "7"}) == {"letter": 7}
    assert signature.decode("return", 7) == 7
    assert signature.asynchronous is asynchronous


@pytest.mark.parametrize("called", [int, 7])
def test_an_object_whose_parameters_cannot_be_told_is_refused(called: Callable[..., Any]) -> None:
    with pytest.raises(InvalidDefinition, match="its parameters cannot be told"):
        Signature(called)


def test_bytes_that_are_no_text_are_no_json() -> None:
    def store(data: bytes) -> None: ...

    with pytest.raises(InvalidInput, match="data: is not JSON"):
        Signature(store).bind_call((b"\xff",), {})
