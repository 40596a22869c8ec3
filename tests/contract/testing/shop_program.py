"""A program as users write it: its store is named at import, in a folder that is not there."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

from holdfast import AsyncContext, Context, Holdfast, needs

hf = Holdfast("sqlite:///no/such/folder/shop.db", max_attempts=3, backoff="5s")
checkout = hf.workflow("checkout")
charged: list[str] = []
threads: set[int] = set()


@dataclass
class Parcel:
    order_id: int


@checkout.step(needs=[])
def pack(order_id: int) -> Parcel:
    threads.add(threading.get_ident())
    return Parcel(order_id)


@checkout.step(needs=[])
def charge(ctx: Context, order_id: int) -> str:
    ctx.effect("note", len, "seven")
    return str(ctx.effect("charge", take_money, order_id))


@checkout.step
async def ship(parcel: Parcel = needs(pack), payment: str = needs(charge)) -> str:
    threads.add(threading.get_ident())
    await asyncio.sleep(0)
    return f"order {parcel.order_id} shipped, {payment}"


def take_money(order_id: int) -> str:
    charged.append(f"order {order_id}")
    return f"paid {order_id}"


@hf.task
def send_mail(to: str, subject: str = "hello") -> str:
    return f"{subject} to {to}"


@hf.task
def welcome(ctx: Context, customer: str) -> str:
    account = ctx.effect("open account", take_account, customer)
    ctx.sleep("7d")
    reply = ctx.wait_for("confirmed", timeout="2d")
    send_mail.enqueue(customer, subject="welcome")
    return f"{account}, confirmed by {reply}"


@hf.task
async def welcome_softly(ctx: AsyncContext, customer: str) -> str:
    account = await ctx.effect("open account", take_account, customer)
    await ctx.sleep("7d")
    return f"softly {account}"


def take_account(customer: str) -> str:
    charged.append(customer)
    return f"account of {customer}"
