"""An edit for a version that has not come yet is tried again, a few times and ever later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.clock import ManualClock
from holdfast.engine.state.expected_version import VERSION_RETRY
from holdfast.model.result import Refusal
from tests.contract.task_states import create, start
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


def test_an_edit_waits_for_its_version_until_it_comes_or_the_task_ends_and_never_for_long(
    store_url: str,
) -> None:
    clock = Waited()
    with opened(store_url, clock=clock) as engine:
        run = start(engine)
        task, edit = run.steps["plan"], engine.tasks.edit
        assert edit(task, {"title": "second"}, expected_version=1).ok
        assert edit(task, {"title": "x"}, expected_version=1).reason is Refusal.VERSION_CONFLICT
        assert clock.slept == [], "neither a version that is there nor one that has passed"
        assert edit(task, {"title": "x"}, expected_version=4).reason is Refusal.VERSION_CONFLICT
        assert len(clock.slept) == VERSION_RETRY.max_attempts - 1
        assert all(0 <= each <= VERSION_RETRY.backoff_max for each in clock.slept)
        assert len(set(clock.slept)) > 1
        told = [each for each in engine.runs.events(run.id) if each.type == "run.conflict"]
        assert [each.data["expected_version"] for each in told] == [1, 4], "once for each refusal"
        clock.slept.clear()
        clock.meanwhile = lambda: edit(task, {"priority": len(clock.slept)})
        assert edit(task, {"title": "third"}, expected_version=4).ok
        assert (len(clock.slept), engine.tasks.get(task).title) == (2, "third")
        clock.meanwhile = lambda: engine.tasks.cancel(task)
        assert not edit(task, {"title": "x"}, expected_version=99).ok
        assert len(clock.slept) == 3


def test_a_coroutine_awaits_an_edit_for_a_version_that_has_not_come_yet(store_url: str) -> None:
    clock = Waited()
    with opened(store_url, clock=clock) as engine:
        task = create(engine)
        clock.meanwhile = lambda: engine.tasks.edit(task, {"priority": 3})
        made = asyncio.run(engine.tasks.edit.aio(task, {"title": "second"}, expected_version=2))
        assert made.ok
        assert engine.tasks.get(task).title == "second"
