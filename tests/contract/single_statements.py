"""Single statements of the store, run as if their process had died right after them."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.store.database import Row
from holdfast.store.sql_text.queries import Rows


def write(
    engine: Engine, query: str, *, rows: Rows | None = None, **parameters: object
) -> set[str]:
    """Run one transition alone; the answer is the rows that it changed."""
    changed = engine.database.transact(lambda tx: tx.change(query, rows=rows, **parameters))
    return {row["entity"] for row in changed}


def complete(engine: Engine, task_id: str) -> None:
    """Complete the running attempt of a task, and nothing that follows from it."""
    fence = engine.tasks.get(task_id).attempt
    report = (task_id, fence, '"output"', "digest", None)
    assert write(engine, "complete_tasks", rows=[report]) == {task_id}


def fail(engine: Engine, task_id: str) -> None:
    """Fail the running attempt of a task for good, and nothing that follows from it."""
    fence = engine.tasks.get(task_id).attempt
    report = (task_id, fence, '"broken"', "digest", False, 0.5, None)
    assert write(engine, "fail_tasks", rows=[report]) == {task_id}


def keep(
    engine: Engine, query: str, *, rows: Rows | None = None, **parameters: object
) -> list[Row]:
    """Run one statement alone that moves neither run nor task; the answer is what it returns."""
    return engine.database.transact(lambda tx: tx.write(query, rows=rows, **parameters))
