"""Tasks and workflows as functions: decorators, arguments, types, keys, options."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, assert_type
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from holdfast import AsyncContext, Handle, Holdfast, KeyConflict, TaskFailed, needs
from holdfast.engine.engine import engine_of

PATIENCE = 30


@dataclass
class Parcel:
    order_id: int
    weight: float


class Invoice(BaseModel):
    model_config = ConfigDict(strict=True)

    number: UUID
    total: Decimal
    due: datetime
    tags: set[str]


INVOICE = Invoice(
    number=UUID("00000000-0000-0000-0000-000000000007"),
    total=Decimal("12.50"),
    due=datetime(2026, 1, 2, tzinfo=UTC),
    tags={"a", "b"},
)


def test_a_task_is_called_as_it_is_or_enqueued_for_its_result(hf: Holdfast) -> None:
    @hf.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert_type(add(2, 3), int)
    assert add(2, 3) == 5
    with hf.worker():
        handle = add.enqueue(2, b=3)
        assert_type(handle, Handle[int])
        assert handle.result(PATIENCE) == 5
        assert add.enqueue(2).result("30s") == 3
        handles = add.enqueue_many([{"a": number} for number in range(20)])
        assert [handle.result(PATIENCE) for handle in handles] == list(range(1, 21))


def test_a_coroutine_function_is_awaited_when_called_and_its_result_is_what_it_gives(
    hf: Holdfast,
) -> None:
    @hf.task
    async def plain(number: int) -> str:
        return str(number)

    @hf.task(max_attempts=1)
    async def with_options(number: int) -> str:
        return str(number)

    for each in (plain, with_options):
        called: Coroutine[Any, Any, str] = each(7)
        assert asyncio.run(called) == "7"
    with hf.worker():
        assert_type(plain.enqueue(7), Handle[str])
        assert plain.enqueue(7).result(PATIENCE) == "7"
        assert with_options.enqueue(8).result(PATIENCE) == "8"


def test_values_travel_as_what_their_annotations_say(hf: Holdfast) -> None:
    checkout = hf.workflow("checkout")

    @checkout.step
    def pack(order_id: int) -> Parcel:
        return Parcel(order_id, 2.5)

    @checkout.step
    async def ship(ctx: AsyncContext, parcel: Parcel = needs(pack)) -> str:
        await asyncio.sleep(0)
        assert isinstance(parcel, Parcel)
        return f"{parcel.order_id} {parcel.weight} {ctx.attempt}"

    with hf.worker():
        assert checkout.start(order_id=7).result(PATIENCE) == "7 2.5 1"


def test_a_strict_model_comes_out_as_it_went_in(hf: Holdfast) -> None:
    @hf.task
    def same(invoice: Invoice) -> Invoice:
        assert isinstance(invoice, Invoice)
        return invoice

    with hf.worker():
        assert same.enqueue(INVOICE).result(PATIENCE) == INVOICE


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
        async with hf.worker():
            handles = await asyncio.gather(*(double.enqueue.aio(n) for n in range(10)))
            results = await asyncio.gather(*(each.result.aio(PATIENCE) for each in handles))
        assert (await hf.tasks.get.aio(handles[0].id)).status == "done"
        assert "done" in str(await hf.why.aio(handles[0].id))
        return results

    assert asyncio.run(use()) == [n * 2 for n in range(10)]


def test_a_holdfast_is_closed_by_async_with(store_url: str) -> None:
    async def use() -> Holdfast:
        async with Holdfast(store_url) as opened:
            assert (await opened.doctor.aio()).ok
            return opened

    with pytest.raises(Exception, match="open another"):
        asyncio.run(use()).doctor()


def test_a_key_makes_a_call_exist_once(hf: Holdfast) -> None:
    @hf.task
    def note(text: str) -> str:
        return text

    first = note.enqueue("a", key="k")
    assert first.created
    again = note.enqueue("a", key="k")
    assert (again.id, again.created) == (first.id, False)
    later = note.using(max_attempts=7, priority=3, title="other", scheduled_for="1h")
    again = later.enqueue("a", key="k")
    assert (again.id, again.created, hf.tasks.get(first.id).state) == (first.id, False, "ready")
    for other in (note, later):
        with pytest.raises(KeyConflict, match=f"{first.id}, whose argument differs: text"):
            other.enqueue("b", key="k")


def test_a_task_is_enqueued_with_other_options_than_it_was_made_with(hf: Holdfast) -> None:
    @hf.task(max_attempts=7, max_lost=2, timeout="1m")
    def job() -> None: ...

    first = job.enqueue()
    changed = job.using(max_attempts=1, timeout=None, priority=3, tags=["gpu"], needs=[first.id])
    task = hf.tasks.get(changed.enqueue().id)
    assert (task.retry.max_attempts, task.retry.max_lost, task.timeout) == (1, 2, None)
    assert (task.priority, task.tags, task.state) == (3, ("gpu",), "blocked")
    assert hf.tasks.get(first.id).timeout == 60


def test_a_setting_of_the_holdfast_holds_for_what_says_nothing_else(store_url: str) -> None:
    with Holdfast(store_url, max_attempts=1) as hf:
        flow = hf.workflow("flow")
        calls: list[str] = []

        @flow.step
        def broken() -> None:
            calls.append("broken")
            raise ValueError("no luck")

        with hf.worker(), pytest.raises(TaskFailed, match="at step 'broken': ValueError: no luck"):
            flow.start().result(PATIENCE)
        assert calls == ["broken"]


def test_a_missing_function_holds_the_task_until_a_program_has_it(store_url: str) -> None:
    with Holdfast(store_url) as old:

        @old.task
        def gone() -> str:
            return "old"

        handle = gone.enqueue()
    with Holdfast(store_url) as other:
        held = threading.Event()
        engine_of(other).on_hint(
            lambda: held.set() if other.tasks.get(handle.id).holds.names else None
        )
        with other.worker():
            assert held.wait(PATIENCE)
        assert other.tasks.get(handle.id).holds.names == ("version",)
        assert "no function 'gone'" in str(other.why(handle.id))
    with Holdfast(store_url) as new:

        @new.task(name="gone")
        def back() -> str:
            return "new"

        with new.worker():
            row = engine_of(new).outcomes.wait(handle.id).result(PATIENCE)
    assert row["output"] == '"new"'
