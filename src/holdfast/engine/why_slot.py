"""Who holds the places of a concurrency key."""

from __future__ import annotations

from holdfast.store.database import Transaction


def tell_slot(tx: Transaction, key: str) -> str:
    """How full a key is, and whose tasks or runs it is full of."""
    (slot,) = tx.read("slot_by_key", key=key)
    holders = ", ".join(row["id"] for row in tx.read("slot_holders", key=key))
    state = "is full" if slot["used"] >= slot["capacity"] else "has room"
    told = f"{key.partition(':')[2]} {state}, {slot['used']} of {slot['capacity']}"
    return f"{told}: {holders}" if holders else told


def tell_wait(tx: Transaction, run_id: str) -> str:
    """What a run waits for that has no place of its key yet."""
    (run,) = tx.read("run_by_id", run_id=run_id)
    return tell_slot(tx, run["concurrency_key"]) if run["concurrency_key"] else ""
