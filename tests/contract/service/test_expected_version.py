"""Whoever edits for a version that has not come yet looks again, a few times and ever later."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.clock import ManualClock
from holdfast.service.commands.commands import VERSION_RETRY, await_version
from tests.contract.task_states import create
from tests.engines import opened


class Waited(ManualClock):
    """A clock that tells how long it was slept by, and lets something happen meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.meanwhile()


def test_a_version_is_waited_for_until_it_comes_or_the_task_ends_and_never_for_long(
    store_url: str,
) -> None:
    clock = Waited()
    with opened(store_url, clock=clock) as engine:
        task = create(engine)
        await_version(engine, task, 1)
        assert clock.slept == []
        await_version(engine, task, 3)
        assert len(clock.slept) == VERSION_RETRY.max_attempts - 1
        assert all(0 <= each <= VERSION_RETRY.backoff_max for each in clock.slept)
        assert len(set(clock.slept)) > 1
        clock.slept.clear()
        clock.meanwhile = lambda: engine.tasks.edit(task, {"priority": len(clock.slept)})
        await_version(engine, task, 3)
        assert len(clock.slept) == 2
        engine.tasks.cancel(task)
        await_version(engine, task, 99)
        assert len(clock.slept) == 2
