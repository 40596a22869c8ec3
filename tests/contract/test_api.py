"""The Python API on both databases: decorators, handles, workers, sync and async callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from holdfast import (
    AttemptEnded,
    Context,
    Holdfast,
    InvalidDefinition,
    InvalidInput,
    KeyConflict,
    ShuttingDown,
    TaskFailed,
    needs,
)

PATIENCE = 30


@dataclass
class Parcel:
    order_id: int
    weight: float


@pytest.fixture
def hf(store_url: str) -> Iterator[Holdfast]:
    with Holdfast(store_url) as opened:
        yield opened
        diagnosis = opened.doctor()
        assert diagnosis.ok, str(diagnosis)


def test_a_task_is_called_as_it_is_or_enqueued_for_its_result(hf: Holdfast) -> None:
    @hf.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert add(2, 3) == 5
    with hf.worker():
        assert add.enqueue(2, b=3).result(PATIENCE) == 5
        assert add.enqueue(2).result(PATIENCE) == 3
        handles = add.enqueue_many([{"a": number} for number in range(20)])
        assert [handle.result(PATIENCE) for handle in handles] == list(range(1, 21))


def test_values_travel_as_what_their_annotations_say(hf: Holdfast) -> None:
    checkout = hf.workflow("checkout")

    @checkout.step
    def pack(order_id: int) -> Parcel:
        return Parcel(order_id, 2.5)

    @checkout.step
    async def ship(ctx: Context, parcel: Parcel = needs(pack)) -> str:
        await asyncio.sleep(0)
        assert isinstance(parcel, Parcel)
        return f"{parcel.order_id} {parcel.weight} {ctx.attempt}"

    with hf.worker():
        assert checkout.start(order_id=7).result(PATIENCE) == "7 2.5 1"


def test_a_step_without_needs_follows_the_step_before_it(hf: Holdfast) -> None:
    chain = hf.workflow("chain")
    seen: list[str] = []

    @chain.step
    def first() -> None:
        seen.append("first")

    @chain.step
    def second() -> None:
        seen.append("second")

    @chain.step(needs=[])
    def aside() -> str:
        return "aside"

    graph = {step.id: step.needs for step in chain.graph.steps}
    assert graph == {"first": (), "second": ("first",), "aside": ()}
    with hf.worker():
        assert chain.start().result(PATIENCE) == {"second": None, "aside": "aside"}
    assert seen == ["first", "second"]


def test_the_same_operations_serve_async_callers(hf: Holdfast) -> None:
    @hf.task
    async def double(number: int) -> int:
        return number * 2

    async def use() -> list[int]:
        handles = await asyncio.gather(*(double.enqueue.aio(n) for n in range(10)))
        return await asyncio.gather(*(handle.result.aio(PATIENCE) for handle in handles))

    with hf.worker():
        assert asyncio.run(use()) == [n * 2 for n in range(10)]


def test_a_key_makes_a_call_exist_once(hf: Holdfast) -> None:
    @hf.task
    def note(text: str) -> str:
        return text

    first = note.enqueue("a", key="k")
    assert first.created
    again = note.enqueue("a", key="k")
    assert (again.id, again.created) == (first.id, False)
    with pytest.raises(KeyConflict, match=first.id):
        note.enqueue("b", key="k")


def test_a_failing_function_is_tried_again_and_its_error_kept(hf: Holdfast) -> None:
    calls: list[int] = []

    @hf.task(max_attempts=2, backoff=0)
    def broken(ctx: Context) -> None:
        calls.append(ctx.attempt)
        message = f"no luck \x00 {ctx.attempt}"
        raise ValueError(message)

    with hf.worker():
        handle = broken.enqueue()
        with pytest.raises(TaskFailed, match="no luck") as caught:
            handle.result(PATIENCE)
    assert calls == [1, 2]
    assert caught.value.status == "failed"
    assert [attempt.outcome for attempt in hf.tasks.attempts(handle.id)] == ["failed", "failed"]


def test_a_result_that_is_not_json_fails_without_another_try(hf: Holdfast) -> None:
    @hf.task
    def opaque() -> object:
        return object()

    with hf.worker():
        handle = opaque.enqueue()
        with pytest.raises(TaskFailed, match="not JSON"):
            handle.result(PATIENCE)
    assert hf.tasks.get(handle.id).failures == 1


def test_a_cancel_stops_a_coroutine_and_its_guard_refuses(hf: Holdfast) -> None:
    began = threading.Event()
    stopped: list[str] = []

    @hf.task
    async def endless(ctx: Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(AttemptEnded):
                ctx.guard()
            stopped.append(ctx.check().reason or "")
            raise

    with hf.worker():
        handle = endless.enqueue()
        assert began.wait(PATIENCE)
        assert hf.tasks.cancel(handle.id).ok
        with pytest.raises(TaskFailed, match="cancelled"):
            handle.result(PATIENCE)
    assert stopped == ["cancelled"]


def test_a_step_longer_than_its_timeout_fails(hf: Holdfast) -> None:
    @hf.task(timeout="50ms", max_attempts=1)
    async def slow() -> None:
        await asyncio.Event().wait()

    with hf.worker(), pytest.raises(TaskFailed, match="ran longer than"):
        slow.enqueue().result(PATIENCE)


def test_a_missing_function_holds_the_task_until_a_program_has_it(store_url: str) -> None:
    with Holdfast(store_url) as old:

        @old.task
        def gone() -> str:
            return "old"

        handle = gone.enqueue()
    with Holdfast(store_url) as other:
        held = threading.Event()
        other.engine.on_hint(lambda: held.set() if other.tasks.get(handle.id).holds.names else None)
        with other.worker():
            assert held.wait(PATIENCE)
        assert other.tasks.get(handle.id).holds.names == ("version",)
        assert "no function 'gone'" in str(other.why(handle.id))
    with Holdfast(store_url) as new:

        @new.task(name="gone")
        def back() -> str:
            return "new"

        with new.worker():
            row = new.engine.outcomes.wait(handle.id).result(PATIENCE)
    assert row["output"] == '"new"'


def test_bad_calls_name_the_argument_and_leave_nothing_behind(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def only(count: int) -> int:
        return count

    with pytest.raises(InvalidInput, match="count: is missing"):
        flow.start()
    with pytest.raises(InvalidInput, match="cuont: is no input"):
        flow.start(count=1, cuont=2)
    with pytest.raises(InvalidInput, match="count: Input should be a valid integer"):
        flow.start(count="many")
    with pytest.raises(InvalidInput, match="max_atempts: is no option"):
        hf.task(max_atempts=2)
    with pytest.raises(InvalidDefinition, match="'key'"):

        @flow.step
        def reserved(key: str) -> str:
            return key

    assert hf.work.claim("nobody") == []


def test_a_closed_holdfast_says_so(store_url: str) -> None:
    hf = Holdfast(store_url)
    hf.close()
    with pytest.raises(ShuttingDown, match="open another"):
        hf.doctor()


def test_waiting_for_a_result_can_end_before_the_task_does(hf: Holdfast) -> None:
    @hf.task
    def never() -> None: ...

    handle = never.enqueue()
    with pytest.raises(TimeoutError, match=handle.id):
        handle.result(0.01)
    assert hf.tasks.get(handle.id).state == "ready"
