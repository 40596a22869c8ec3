"""Who holds the places of a concurrency key, and whether any of them will be free."""

from __future__ import annotations

from holdfast.engine.slots import RUN_PREFIX
from holdfast.engine.why_circle import find_circle
from holdfast.store.database import Transaction


def explain_slot(tx: Transaction, key: str) -> tuple[str, str]:
    """How full a key is, and of whose tasks or runs; what would change it, if nothing else will."""
    (slot,) = tx.read("slot_by_key", key=key)
    held = [row["id"] for row in tx.read("slot_holders", key=key)]
    holders, full = ", ".join(held), slot["used"] >= slot["capacity"]
    state = "is full" if full else "has room"
    told = f"{key.partition(':')[2]} {state}, {slot['used']} of {slot['capacity']}"
    told = f"{told}: {holders}" if holders else told
    # A task gives its place back whenever it waits for others.
    circle = find_circle(tx, key) if key.startswith(RUN_PREFIX) else None
    if circle is not None:
        return f"{told}; {circle}", circle.fix
    return told, f'hf.why("{held[0]}")' if full and held else ""


def explain_turn(tx: Transaction, run_id: str) -> tuple[str, str]:
    """What a run waits for that has no place of its key yet."""
    (run,) = tx.read("run_by_id", run_id=run_id)
    return explain_slot(tx, run["concurrency_key"]) if run["concurrency_key"] else ("", "")
