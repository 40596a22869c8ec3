"""Wrong uses of the Python API: each type checker reports each line that says so, and no other."""

from __future__ import annotations

from datetime import timedelta

from holdfast import AsyncContext, Context, Handle, Holdfast, Plan, Worker

hf = Holdfast("sqlite:///shop.db", leese="30s")  # wrong
checkout = hf.workflow("checkout", deadline=[2])  # wrong


@hf.task
def price(product: str, amount: int = 1) -> int:
    return len(product) * amount


@hf.task
async def mail(address: str) -> bool:
    return bool(address)


@hf.task(max_attempts="5")  # wrong
async def remind(address: str) -> bool:
    return bool(address)


@hf.task(priorty=3)  # wrong
def loose() -> None: ...


@hf.task
def charge(ctx: Context, order: int) -> int:
    ctx.effect("price", price, 7)  # wrong
    ctx.effect("price", price, "book", amont=7)  # wrong
    text: str = ctx.effect("price", price, "book")  # wrong
    number: int = ctx.wait_for("paid", type=str)  # wrong
    ctx.wait_for("paid", timeout=[2])  # wrong
    ctx.map(price, [1, 2])  # wrong
    ctx.map(price, ["book"], ["two"])  # wrong
    ctx.spawn(price, 7)  # wrong
    ctx.spawn(price, "book", colour="red")  # wrong
    ctx.call(price)  # wrong
    ctx.sleep(None)  # wrong
    return len(text) + number + order


@hf.task
async def ship(ctx: AsyncContext, order: int) -> str:
    await ctx.effect("price", price, order)  # wrong
    text: str = await ctx.effect("price", price, "book")  # wrong
    other: int = await ctx.effect("label", print_label, 7)  # wrong
    await ctx.map(mail, [1])  # wrong
    await ctx.call(mail, 7)  # wrong
    label: str = ctx.wait_for("label", type=str)  # wrong
    return f"{text} {other} {label}"


async def print_label(order: int) -> str:
    return f"label {order}"


@checkout.step(when="input.customer", on_failre="skip")  # wrong
def pack(customer: str) -> str:
    return customer


@checkout.step(timeout=timedelta(minutes=2), tags=7)  # wrong
def send(customer: str) -> str:
    return customer


@hf.on("run.failed", agnt="mailer")  # wrong
def alarm(event: object) -> None: ...


def enqueue(connection: object) -> None:
    price.enqueue(7)  # wrong
    price.enqueue()  # wrong
    price.enqueue("book", amont=2)  # wrong
    price.enqueue("book", "two")  # wrong
    charge.enqueue("seven")  # wrong
    ship.enqueue(order="seven")  # wrong
    price.using(key="1").enqueue(7)  # wrong
    price.using(key="1", connection=connection).enqueue(prodct="book")  # wrong
    price.using(prio=5)  # wrong
    price.using(scheduled_for=7.5)  # wrong
    text: str = price.enqueue("book").result()  # wrong
    price.enqueue.submit(7)  # wrong
    text.upper()


async def enqueue_in_coroutine() -> None:
    await price.enqueue.aio(7)  # wrong
    text: str = await (await ship.enqueue.aio("seven")).result.aio()  # wrong
    text.upper()


def look(handle: Handle[int]) -> None:
    text: str | None = handle.output()  # wrong
    handle.cancel(7)  # wrong
    handle.state()  # wrong
    late: int = hf.tasks.get(handle).created_at  # wrong
    len(text or "") + late


def start() -> None:
    checkout.start("Ada")  # wrong
    checkout.start(customer="Ada", key=7)  # wrong
    number: int = checkout.start(customer="Ada")  # wrong
    number.bit_length()


def plan(parts: Plan, anything: object) -> None:
    parts.add(price, 7)  # wrong
    parts.add(price.using(key="1"), "book", amont=2)  # wrong
    parts.add(len, anything)  # wrong


def work() -> None:
    with hf.worker(concurency=2):  # wrong
        pass
    Worker(store=hf)  # wrong
    Context(store=hf)  # wrong
