"""What counts no more because its epoch is over, and what stands in its place."""

from __future__ import annotations

from holdfast.engine.looking import name_tasks
from holdfast.engine.places import seek
from holdfast.store.database import Transaction

OVER = "it was made in an epoch that is over, and counts no more"


def tell_over(tx: Transaction, task_id: str, run_id: str | None) -> tuple[str, str]:
    """That a task counts no more, with who stands in its place, and the call that tells of that."""
    if run_id is None:
        return OVER, ""
    place = name_tasks(tx, [task_id])[task_id]
    found = seek(tx, run_id, place).found
    if found is None or found["superseded"]:
        return OVER, ""
    instead = f"{run_id}:{place} {found['id']} ({found['status']}) stands in its place"
    return f"{OVER}; {instead}", f'hf.why("{found["id"]}")'
