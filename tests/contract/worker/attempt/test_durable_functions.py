"""Durable functions: what they did is done once, and where they wait no worker is held."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any, cast

import pytest

from holdfast import (
    AsyncContext,
    Context,
    Holdfast,
    InvalidInput,
    KeyConflict,
    NotFound,
    TaskFailed,
)
from tests.race.racers import eventually

PATIENCE = 30


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened
        diagnosis = opened.doctor()
        assert diagnosis.ok, str(diagnosis)


class Ledger:
    """Counts how often something was really done."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def do(self, what: object) -> object:
        self.done.append(what)
        return what

    async def do_later(self, what: object) -> object:
        await asyncio.sleep(0)
        return self.do(what)


def test_an_effect_is_done_once_however_often_the_function_runs(hf: Holdfast) -> None:
    ledger = Ledger()

    @hf.task(max_attempts=3, backoff=0)
    def charge(ctx: Context, amount: int) -> object:
        paid = ctx.effect("pay", ledger.do, amount)
        if ctx.attempt < 3:
            raise ConnectionError
        return [paid, ctx.effect("pay", ledger.do, "tip")]

    with hf.worker():
        assert charge.enqueue(7).result(PATIENCE) == [7, "tip"]
    assert ledger.done == [7, "tip"]


def test_a_coroutine_has_the_same_effects(hf: Holdfast) -> None:
    ledger = Ledger()

    @hf.task(max_attempts=2, backoff=0)
    async def charge(ctx: AsyncContext) -> object:
        paid = await ctx.effect("pay", ledger.do_later, "later")
        noted = await ctx.effect("note", ledger.do, "at once")
        if ctx.attempt == 1:
            raise ConnectionError
        return [paid, noted]

    with hf.worker():
        assert charge.enqueue().result(PATIENCE) == ["later", "at once"]
    assert ledger.done == ["later", "at once"]


def test_an_awaitable_effect_of_a_plain_function_is_refused(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def charge(ctx: Context) -> object:
        return ctx.effect("pay", Ledger().do_later, 1)

    with hf.worker(), pytest.raises(TaskFailed, match="from an async step"):
        charge.enqueue().result(PATIENCE)


def test_an_effect_belongs_to_an_epoch_and_its_id_says_so(hf: Holdfast) -> None:
    ledger = Ledger()

    @hf.task
    def charge(ctx: Context) -> str:
        key = ctx.effect_id("pay")
        ctx.effect("pay", ledger.do, 1)
        return key

    with hf.worker():
        handle = charge.enqueue()
        first = handle.result(PATIENCE)
        assert hf.tasks.reopen(handle.id).ok
        second = handle.result(PATIENCE)
    assert len(ledger.done) == 2
    assert [first, second] == [f"{handle.id}/1/pay", f"{handle.id}/2/pay"]


def test_sleep_gives_the_task_back_and_costs_no_attempt(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def nap(ctx: Context) -> int:
        ctx.sleep("40ms")
        ctx.sleep(0.04)
        return ctx.attempt

    with hf.worker(concurrency=1):
        handle = nap.enqueue()
        assert handle.result(PATIENCE) == 3
    task = hf.tasks.get(handle.id)
    assert (task.failures, task.lost) == (0, 0)
    outcomes = [attempt.outcome for attempt in hf.tasks.attempts(handle.id)]
    assert outcomes == ["released", "released", "completed"]


def test_a_sleep_that_is_cut_short_is_over_in_each_later_attempt_too(hf: Holdfast) -> None:
    slept: list[int] = []

    @hf.task(max_attempts=2, backoff=0)
    def nap(ctx: Context) -> int:
        ctx.sleep("30d")
        slept.append(ctx.attempt)
        if len(slept) == 1:
            raise ConnectionError
        ctx.sleep("30d")
        return ctx.attempt

    with hf.worker():
        handle = nap.enqueue()

        def asleep() -> bool:
            # Not while it runs: the time of the sleep before is still there then.
            return hf.tasks.get(handle.id).state == "scheduled"

        assert eventually(asleep)
        assert "cut short" in hf.tasks.run_now(handle.id).detail
        assert eventually(lambda: len(slept) == 2 and asleep())
        assert "cut short" in hf.tasks.run_now(handle.id).detail
        assert handle.result(PATIENCE) == 4
    assert slept == [2, 3, 4]


def test_a_signal_sent_before_anyone_waits_is_kept(hf: Holdfast) -> None:
    flow = hf.workflow("delivery")

    @flow.step
    def ship(ctx: Context) -> object:
        return ctx.wait_for("courier")

    run = flow.start()
    assert hf.signal(run.id, "courier", {"van": 3}).ok
    with hf.worker():
        assert run.result(PATIENCE) == {"van": 3}


def test_a_waiting_task_holds_no_worker_and_a_signal_wakes_it(hf: Holdfast) -> None:
    flow = hf.workflow("delivery")
    waiting = threading.Event()

    @flow.step
    async def ship(ctx: AsyncContext) -> object:
        waiting.set()
        first = await ctx.wait_for("courier", timeout="2d")
        return [first, await ctx.wait_for("courier")]

    @hf.task
    def other() -> str:
        return "done meanwhile"

    with hf.worker(concurrency=1):
        run = flow.start()
        assert waiting.wait(PATIENCE)
        assert other.enqueue().result(PATIENCE) == "done meanwhile"
        (task,) = hf.runs.tasks(run.id)
        assert task.state == "waiting"
        assert "waits for the signal 'courier'" in str(hf.why(task.id))
        assert hf.signal(run.id, "courier", 1, key="a").ok
        assert hf.signal(run.id, "courier", 1, key="a").repeated
        with pytest.raises(KeyConflict, match=f"{run.id}, to which 'courier' was sent under it"):
            hf.signal(run.id, "courier", 5, key="a")
        assert hf.signal(run.id, "other", 5, key="a").ok
        assert hf.signal(run.id, "courier", 2).ok
        assert run.result(PATIENCE) == [1, 2]
    assert not hf.signal(run.id, "courier").ok


def test_a_wait_ends_with_its_time_once_and_for_all(hf: Holdfast) -> None:
    @hf.task(max_attempts=2, backoff=0)
    def wait(ctx: Context) -> str:
        try:
            return str(ctx.wait_for("never", timeout="50ms"))
        except TimeoutError:
            if hf.tasks.get(ctx.task_id).failures == 0:
                hf.signal(ctx.task_id, "never", "too late")
                raise ValueError("once more") from None
            return "timed out"

    with hf.worker():
        assert wait.enqueue().result(PATIENCE) == "timed out"


def test_a_branch_that_is_left_unseen_is_told_of_only_by_another_error_than_its_wait(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    async def stumble() -> None:
        raise ValueError("stumbled")

    @hf.task
    async def first(ctx: AsyncContext) -> int:
        branches = [ctx.wait_for("go"), ctx.sleep(0.01), stumble()]
        ended, _ = await asyncio.wait(list(map(asyncio.ensure_future, branches)))
        return len(ended)

    # Branches that earlier tests left are told of now, and not below.
    gc.collect()
    caplog.clear()
    with hf.worker():
        handle = first.enqueue()
        assert eventually(lambda: hf.tasks.get(handle.id).attempt > 1)
        assert hf.signal(handle, "go").ok
        assert handle.result(PATIENCE) == 3
        gc.collect()
    told = [record.exc_info for record in caplog.records if record.name == "asyncio"]
    assert {type(each[1]) for each in told if each} == {ValueError}


def test_map_runs_each_call_as_a_task_and_gives_the_results_in_order(hf: Holdfast) -> None:
    ledger = Ledger()

    @hf.task
    def resize(name: str, size: int) -> str:
        ledger.do(name)
        return f"{name}@{size}"

    flow = hf.workflow("gallery")

    @flow.step
    def build(ctx: Context) -> list[str]:
        made: list[str] = ctx.map(resize, ["a", "b", "c"], [1, 2, 3])
        return [*made, *ctx.map(resize, [], [])]

    @flow.step
    def publish(ctx: Context) -> str:
        titled = resize.using(title="y" * 500)
        assert ctx.map(titled, ["long"], [1]) == ["long@1"]
        return str(ctx.spawn(titled, "cover", size=9))

    with hf.worker(concurrency=1):
        run = flow.start()
        cover = run.result(PATIENCE)
    by_step = {task.step: task for task in hf.runs.tasks(run.id) if task.parent_id is None}
    assert by_step["build"].output == ["a@1", "b@2", "c@3"]
    assert sorted(map(str, ledger.done)) == ["a", "b", "c", "cover", "long"]
    assert hf.tasks.get(cover).parent_id == by_step["publish"].id
    with pytest.raises(InvalidInput, match=r"build\.resize leads to 3 tasks; give .*: t_"):
        run.task("build.resize")
    again = hf.runs.retry(run.id, step="build.resize")
    assert (again.ok, again.detail[:28]) == (False, "build.resize leads to 3 task")
    with pytest.raises(NotFound, match=r"the steps there are resize$"):
        run.task("build.1")


def test_a_failed_child_fails_the_call_without_another_try(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def divide(number: int) -> float:
        return 1 / number

    @hf.task(max_attempts=5)
    def total(ctx: Context) -> float:
        return float(sum(ctx.map(divide, [1, 0])))

    with hf.worker():
        handle = total.enqueue()
        with pytest.raises(TaskFailed, match="division by zero"):
            handle.result(PATIENCE)
    assert hf.tasks.get(handle.id).failures == 1


def test_only_a_task_can_be_mapped(hf: Holdfast) -> None:
    @hf.task(max_attempts=1)
    def total(ctx: Context) -> object:
        return ctx.map(cast("Any", abs), [1])

    with hf.worker(), pytest.raises(TaskFailed, match=r"put @hf[.]task above it"):
        total.enqueue().result(PATIENCE)


def test_durations_and_maps_beyond_the_bounds_are_refused_with_the_name_of_the_argument(
    hf: Holdfast,
) -> None:
    @hf.task
    def nothing(number: int) -> None: ...

    calls: dict[str, Callable[[Context], object]] = {
        "duration: inf cannot be waited for; at most 200 years": lambda ctx: ctx.sleep(inf),
        "duration: nan cannot be": lambda ctx: ctx.sleep(nan),
        "timeout: '80000d' cannot be": lambda ctx: ctx.wait_for("go", timeout="80000d"),
        "map: 10001 items are more than the 10000": lambda ctx: ctx.map(nothing, range(10_001)),
    }

    @hf.task(max_attempts=1)
    def call(ctx: Context, told: str) -> object:
        return calls[told](ctx)

    with hf.worker():
        for told in calls:
            with pytest.raises(TaskFailed, match=told):
                call.enqueue(told).result(PATIENCE)


@pytest.mark.parametrize(
    ("target", "name", "field"), [("r_x", "go", "target"), ("r_" + "0" * 20, "a b", "name")]
)
def test_a_malformed_signal_is_refused_at_the_edge(
    hf: Holdfast, target: str, name: str, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        hf.signal(target, name)
    assert refused.value.field == field
