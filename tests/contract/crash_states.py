"""States that a crash between two writes could leave, planted past the engine by hand.

What is taken back is taken out of the history too: the store is one in which it never happened.
"""

from __future__ import annotations

from tests.contract.raw_store import Raw, drop_guards, raw

_FORGET = "DELETE FROM holdfast_event WHERE run_id = ? AND type = ?"
_NEWEST = "(SELECT max(event.version) FROM holdfast_event AS event WHERE event.entity = id)"


def take_back_the_end(url: str, run_id: str) -> None:
    """As if the process had died after a task ended and before its run heard of it."""
    with raw(url) as run:
        run(f"DROP TRIGGER IF EXISTS holdfast_run_guard{' ON holdfast_run' * run.postgresql}")
        for type_ in ("run.held", "run.failed", "run.completed", "task.held"):
            run(_FORGET, run_id, type_)
        run(
            "UPDATE holdfast_run SET status = 'running', holds = 0, error = NULL, "  # noqa: S608
            f"finished_at = NULL, version = {_NEWEST} WHERE id = ?",
            run_id,
        )
        _restore_tasks(run, run_id, "run_holds = 0")


def take_back_an_unblocking(url: str, task_id: str) -> None:
    """As if the process had died after the needs were done and before anyone was unblocked."""
    with raw(url) as run:
        run("DELETE FROM holdfast_event WHERE entity = ? AND type = 'task.unblocked'", task_id)
        run(
            f"UPDATE holdfast_task SET blocked = true, version = {_NEWEST} WHERE id = ?",  # noqa: S608
            task_id,
        )


def put_status(url: str, task_id: str, status: str) -> None:
    """Write a status that no version of the table knows, or put the old one back."""
    with raw(url) as run:
        if status == "waiting":
            drop_guards(run)
        run("UPDATE holdfast_task SET status = ? WHERE id = ?", status, task_id)


def _restore_tasks(run: Raw, run_id: str, change: str) -> None:
    run(
        f"UPDATE holdfast_task SET {change}, version = {_NEWEST} WHERE run_id = ?",  # noqa: S608
        run_id,
    )
