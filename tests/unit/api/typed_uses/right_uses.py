"""Right uses of the Python API: no type checker reports any of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from holdfast import (
    AsyncContext,
    Context,
    Handle,
    Holdfast,
    Plan,
    RunHandle,
    RunStatus,
    Status,
    TransitionResult,
    goto,
    needs,
)


@dataclass
class Payment:
    amount: int


hf = Holdfast("sqlite:///shop.db", lease="30s", max_attempts=5, backoff=timedelta(seconds=1))


@hf.task
def price(product: str, amount: int = 1) -> int:
    return len(product) * amount


@hf.task(max_attempts=5, timeout="2m", tags=["eu"], retry_on=OSError, concurrency=("key", 2))
async def mail(address: str) -> bool:
    return bool(address)


@hf.task
def charge(ctx: Context, order: int, *, currency: str = "EUR") -> Payment:
    amount = ctx.effect("price", price, "book", amount=order)
    assert_type(amount, int)
    paid = ctx.effect("pay", pay, amount, currency=currency)
    assert_type(paid, Payment)
    assert_type(ctx.wait_for("paid", type=Payment, timeout=timedelta(days=2)), Payment)
    assert_type(ctx.wait_for("paid"), Any)
    assert_type(ctx.map(price, ["book", "pen"]), list[int])
    assert_type(ctx.map(price, ["book", "pen"], [1, 2], name="both"), list[int])
    assert_type(ctx.map(charge, [1, 2]), list[Payment])
    assert_type(ctx.call(price, "book", amount=2), int)
    assert_type(ctx.spawn(charge.using(title="again"), order, currency="USD"), str)
    ctx.sleep(timedelta(minutes=1))
    ctx.guard()
    return paid


@hf.task
async def ship(ctx: AsyncContext, order: int) -> str:
    assert_type(await ctx.effect("label", print_label, order), str)
    assert_type(await ctx.effect("price", price, "book"), int)
    assert_type(await ctx.wait_for("courier", type=Payment, timeout="2d"), Payment)
    assert_type(await ctx.map(mail, ["ada@example.org"]), list[bool])
    assert_type(await ctx.call(mail, "ada@example.org"), bool)
    assert_type(await ctx.spawn(price, "book"), str)
    await ctx.sleep("1h")
    await ctx.guard.aio()
    return "sent"


@hf.task(name="untyped", agent="mailer", priority=3)
def loose(anything: object) -> object:
    return anything


def pay(amount: int, *, currency: str) -> Payment:
    return Payment(amount if currency else 0)


async def print_label(order: int) -> str:
    return f"label {order}"


checkout = hf.workflow("checkout", concurrency=("customer-{{ input.customer }}", 1), deadline="2h")


@checkout.step
def pack(customer: str) -> str:
    return customer


@checkout.step(max_attempts=5, timeout=timedelta(minutes=2), on_failure="skip", needs=pack)
def check(parcel: str = needs(pack)) -> str:
    return parcel


@checkout.step(on_failure=goto(pack, max_rounds=2), when="input.customer", tags=("eu",))
async def send(ctx: AsyncContext, parcel: str = needs(pack)) -> str:
    await ctx.wait_for("courier")
    return parcel


@hf.on("run.failed", workflow=checkout, max_attempts=2)
def alarm(event: object) -> None:
    print(event)  # noqa: T201 - what an alarm does


def enqueue(connection: object) -> None:
    assert_type(price.enqueue("book"), Handle[int])
    assert_type(price.enqueue(product="book", amount=2), Handle[int])
    assert_type(price.enqueue("book", key="1"), Handle[int])
    assert_type(price.enqueue("book", connection=connection), Handle[int])
    assert_type(mail.enqueue("ada@example.org").result(timedelta(seconds=2)), bool)
    assert_type(charge.enqueue(7, currency="USD").result("2s"), Payment)
    assert_type(ship.enqueue(order=7), Handle[str])
    later = charge.using(
        key="7", connection=connection, priority=5, scheduled_for=datetime.now(UTC), title="Later"
    )
    assert_type(later.enqueue(7), Handle[Payment])
    assert_type(price.enqueue.submit("book").result(), Handle[int])
    assert_type(price("book"), int)
    loose.enqueue({"any": "thing"})
    price.enqueue_many([{"product": "book"}], connection=connection)
    wide: Handle[object] = price.enqueue("book")
    print(wide.result())  # noqa: T201 - a wider type is no mistake


async def enqueue_in_coroutine(connection: object) -> None:
    assert_type(await price.enqueue.aio("book"), Handle[int])
    assert_type(await ship.using(connection=connection).enqueue.aio(7), Handle[str])
    assert_type(await (await ship.enqueue.aio(7, key="7")).result.aio(), str)
    assert_type(await mail("ada@example.org"), bool)


def look(handle: Handle[int]) -> None:
    assert_type(handle.status(), Status | RunStatus)
    assert_type(handle.output(), int | None)
    assert_type(handle.cancel(), TransitionResult)
    assert_type(handle.retry(), TransitionResult)
    print(handle.why())  # noqa: T201 - an explanation is for people
    assert_type(hf.tasks.get(handle).created_at, datetime)
    assert_type(hf.runs.get("r_1").deadline, datetime | None)


def start(connection: object) -> None:
    assert_type(checkout.start(customer="Ada", key="1", connection=connection), RunHandle)
    hf.signal("r_1", "paid", {"amount": 3}, connection=connection)
    hf.runs.cancel("r_1", connection=connection)


def plan(parts: Plan) -> None:
    assert_type(parts.add(price, "book", amount=2), Handle[int])
    assert_type(parts.add(price.using(key="1"), "book"), Handle[int])
    assert_type(parts.add(price, "book", key="1"), Handle[int])


def work() -> None:
    with hf.worker(concurrency=2, agents=["default"], least_disk="1GB"):
        pass
