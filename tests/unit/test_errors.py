"""Errors, as another process reads them, and as people are told of those of attempts."""

from __future__ import annotations

import pickle

import pytest

from holdfast import HoldfastError, InvalidDefinition, KeyConflict, NotFound, TaskFailed
from holdfast.errors import InvalidWorkflowFile, Mistake, StoreUnreachable, describe_error


@pytest.mark.parametrize(
    "error",
    [
        TaskFailed("t_1", "failed", {"type": "ValueError", "message": "no"}, "pack"),
        KeyConflict("order-7", "t_1", kind="name"),
        NotFound("t_1", yet=True),
        InvalidDefinition("flow", ["one", "two"]),
        InvalidWorkflowFile("flow.yaml", [Mistake(line=1, column=2, message="what?")]),
        StoreUnreachable("gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_out_of_another_process_as_it_went_in(error: HoldfastError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - of its own making
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"rounds": 1, "feedback": "no"}, "rejected 1 time, last: no"),
        (
            {"rounds": 2, "feedback": {"why": "zu früh", "again": True}},
            'rejected 2 times, last: {"why": "zu früh", "again": true}',
        ),
        ("cancelled", "cancelled"),
        ([None, 1], "[null, 1]"),
    ],
)
def test_an_error_is_told_as_it_was_said_and_not_as_python_writes_it(
    error: object, told: str
) -> None:
    assert describe_error(error) == told
