"""A small pipeline of Python functions: pack and charge, then ship, then tell the customer.

Run it, in this folder:   holdfast run shop:checkout -i order_id=7 -i items:='["tea"]' --wait
Or a worker of its own:   python shop.py
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from holdfast import Context, Holdfast, needs

STORE = os.environ.get("HOLDFAST_DB", "sqlite:///shop.db")

hf = Holdfast(STORE, lease=2.0, renewal=0.5)
checkout = hf.workflow("checkout")


@dataclass
class Parcel:
    order_id: int
    items: list[str]


@checkout.step(needs=[])
def pack(order_id: int, items: list[str]) -> Parcel:
    return Parcel(order_id, sorted(items))


@checkout.step(needs=[], max_attempts=5, timeout="2m")
def charge(ctx: Context, order_id: int) -> str:
    ctx.progress("asking the bank")
    ctx.guard()  # may this attempt still act?
    return f"payment for order {order_id}, taken by attempt {ctx.attempt}"


@checkout.step
async def ship(parcel: Parcel = needs(pack), payment: str = needs(charge)) -> str:
    await asyncio.sleep(0.1)
    return f"{len(parcel.items)} items on their way ({payment})"


@checkout.step
def tell(message: str = needs(ship)) -> str:
    return f"Dear customer: {message}."


if __name__ == "__main__":
    hf.worker(name=f"worker-{os.getpid()}").run()
