"""Engines for tests: a clock that moves by hand, and every invariant checked at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.clock import Clock, ManualClock
from holdfast.engine.engine import Engine
from holdfast.randomness import Randomness, SeededRandomness
from holdfast.settings import Settings
from tests.stores import examined


@contextmanager
def opened(
    url: str,
    *,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
    settings: Settings | None = None,
) -> Iterator[Engine]:
    """An engine with its writer running but no loops beside it: time is the test's to move."""
    engine = Engine(
        url,
        clock=clock or ManualClock(),
        randomness=randomness or SeededRandomness(7),
        settings=settings,
    )
    engine.commits.start()
    with healthy(engine):
        yield engine


@contextmanager
def healthy(engine: Engine) -> Iterator[None]:
    """Close an engine at the end, and before that let the doctor find nothing."""
    try:
        yield
        diagnosis = examined(engine)
        assert diagnosis.ok, str(diagnosis)
    finally:
        engine.close()
