"""Functions that tests run in processes of their own, which import them by their names."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from holdfast import AsyncContext, Context, Holdfast, Permanent, RetryAfter

hf = Holdfast("sqlite:///never.db")
say = print


@dataclass
class Parcel:
    weight: int
    day: date


class OutOfStock(Exception):
    """An error of this module."""


@hf.task(isolation="process")
def described(parcel: Parcel) -> list[Parcel]:
    """A task already, of a store that nobody opens."""
    assert isinstance(parcel, Parcel)
    return [parcel, Parcel(os.getpid(), parcel.day)]


def remember(ctx: Context, name: str) -> dict[str, Any]:
    ctx.guard()
    key = ctx.effect_id("pay")
    paid = ctx.effect("pay", os.getpid)
    if ctx.attempt == 1:
        raise ConnectionError(f"no {name}")
    return {"paid": paid, "process": os.getpid(), "id": key}


async def remember_async(ctx: AsyncContext) -> list[object]:
    await ctx.guard.aio()
    both = await asyncio.gather(ctx.effect("a", str, 1), ctx.effect("b", _later))
    await ctx.sleep("10ms")
    return [*both, await ctx.wait_for("go"), ctx.attempt]


async def _later() -> int:
    await asyncio.sleep(0)
    return os.getpid()


def tell(ctx: Context, secret: str) -> str:
    say("printed", secret)
    say("aside", file=sys.stderr)
    logging.getLogger("shop").warning("logged %s", secret)
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    ctx.log(f"said {secret}")
    ctx.progress({"half": secret})
    path = ctx.artifact("note.txt", f"kept {secret}")
    return f"{path} {secret}"


def raise_what(kind: str) -> None:
    if kind == "exit":
        os._exit(3)
    if kind == "kill":
        os.kill(os.getpid(), 9)
    raise {"permanent": Permanent, "stock": OutOfStock, "other": ValueError}[kind]("no parcel")


def ask_later(ctx: Context) -> str:
    if ctx.attempt == 1:
        raise RetryAfter("1s", "full")
    return "later"


def look(ctx: Context) -> None:
    """Never ends by itself, and only looks whether it may go on."""
    while not ctx.ended:
        time.sleep(0.05)


def hold(ctx: Context, name: str) -> None:
    """Never ends by itself, and holds a name."""
    assert ctx.lease(name, "1h") is not None
    ctx.progress("held")
    while True:
        time.sleep(1)


def hang(folder: str, *, quiet: bool = True) -> None:
    """Never ends by itself, and leaves a process of another session behind."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)  # noqa: S607
    Path(folder, "pids.new").write_text(f"{os.getpid()} {child.pid}")
    Path(folder, "pids.new").rename(Path(folder, "pids"))
    while True:
        time.sleep(0.05)
        if not quiet:
            say("still here")
