"""The program: garbage collection while a command starts."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from holdfast.cli.main import FIRST_COLLECTION, _put_off_collection


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    thresholds, callbacks = gc.get_threshold(), [*gc.callbacks]
    yield thresholds
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks


def test_the_first_collection_comes_late_and_the_others_as_usual(
    usual: tuple[int, int, int],
) -> None:
    callbacks = [*gc.callbacks]
    _put_off_collection()
    assert gc.get_threshold() == (FIRST_COLLECTION, *usual[1:])
    assert len(gc.callbacks) == len(callbacks) + 1
    kept: list[list[object]] = [[] for _ in range(FIRST_COLLECTION + usual[0])]
    assert gc.get_threshold() == usual
    assert gc.callbacks == callbacks
    del kept
