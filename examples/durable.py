"""A durable function: it waits for days without a process, and does nothing twice.

Each time it has to wait it ends, and gives its worker back. When the time or the signal has come it
runs again from its top; what it has done is remembered, and is not done again. Kill the worker at
any point: the next one goes on.

Run it, in this folder:   python durable.py
"""

from __future__ import annotations

import os
import time
from collections import Counter

from holdfast import Context, Holdfast

hf = Holdfast(os.environ.get("HOLDFAST_DB", "sqlite:///durable.db"))
happened: Counter[str] = Counter()


@hf.task(max_attempts=5)
def welcome(ctx: Context, customer: str) -> str:
    happened["began"] += 1
    account = ctx.effect("open account", open_account, customer)  # done once, remembered
    ctx.sleep("300ms")  # may be a week: it holds no worker
    reply = ctx.wait_for("confirmed", timeout="2d")  # until somebody signals, or TimeoutError
    ctx.effect("send gift", send_gift, account)
    return f"{customer} has {account}, confirmed by {reply['by']}"


def open_account(customer: str) -> str:
    happened["account opened"] += 1
    return f"account-of-{customer}"


def send_gift(account: str) -> None:
    happened["gift sent"] += 1
    print(f"a gift goes to {account}")


if __name__ == "__main__":
    with hf, hf.worker():
        job = welcome.enqueue("ada")
        while hf.tasks.get(job.id).waits_for is None:
            time.sleep(0.05)
        print(hf.why(job))
        # The same by the command line: holdfast signal ID confirmed '{"by": "mail"}'
        hf.signal(job, "confirmed", {"by": "mail"})
        print(job.result(timeout="1m"))
    print(", ".join(f"{what}: {often}" for what, often in happened.items()))
