"""Store repair: `doctor --fix` takes back expired leases, and evaluates what stands still again."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.model.status import RUN_TERMINAL, RunStatus
from holdfast.service.admin.health import MAX_LISTED
from holdfast.service.queries.views import View
from holdfast.store.database import Row, Transaction


def repair_store(engine: Engine, *, dry_run: bool = False) -> View:
    """Take back tasks whose lease has expired, and evaluate open runs and stuck tasks again."""
    expired = engine.database.view(lambda tx: tx.read("expired_tasks", count=MAX_LISTED))
    running = _list_running_runs(engine)
    plans = engine.database.view(lambda tx: tx.read("check_plans_end_with_children"))
    waiting = engine.database.view(_find_tasks_waiting_in_vain)
    lost = engine.database.view(_find_tasks_with_superseded_needs)
    advanced: list[str] = []
    if not dry_run:
        while engine.work.recover():
            pass
        advanced = [each for each in running if engine.runs.advance(each).advanced]
        for task_id in [*(row["entity"] for row in plans), *waiting, *lost]:
            engine.tasks.advance(task_id, actor="doctor")
    leases = [row["id"] for row in expired]
    taken_back = [] if dry_run else _read_rows(engine, "tasks_by_id", leases)
    ended = [
        row for row in _read_rows(engine, "runs_by_id", running) if row["status"] in RUN_TERMINAL
    ]
    moved = {*advanced, *(row["run_id"] for row in taken_back)} - {row["id"] for row in ended}
    return {
        "dry_run": dry_run,
        "expired_leases": leases,
        "taken_back": [{"id": row["id"], "status": row["status"]} for row in taken_back],
        "looked_at": running,
        "advanced": [each for each in running if each in moved],
        "ended": [
            {"id": row["id"], "workflow": row["workflow"], "status": row["status"]} for row in ended
        ],
        "settled_plans": [row["entity"] for row in plans],
        "woken": waiting,
        "passed_on": lost,
    }


def _read_rows(engine: Engine, query: str, ids: list[str]) -> list[Row]:
    rows = engine.database.view(lambda tx: tx.read(query, ids=ids)) if ids else []
    return sorted(rows, key=lambda row: str(row["id"]))


def _find_tasks_waiting_in_vain(tx: Transaction) -> list[str]:
    """The tasks that wait for children that have all ended, or for a signal that is there."""
    children = tx.read("check_waits_end_with_children")
    signals = tx.read("check_waits_end_with_signals")
    return sorted({row["entity"] for row in [*children, *signals]})


def _find_tasks_with_superseded_needs(tx: Transaction) -> list[str]:
    """The tasks that need a superseded task: older releases left such needs."""
    return sorted({row["entity"] for row in tx.read("check_needs_still_count")})


def _list_running_runs(engine: Engine) -> list[str]:
    found: list[str] = []
    page = engine.runs.list(status=RunStatus.RUNNING, limit=MAX_LISTED)
    while page:
        found += [run.id for run in page]
        page = engine.runs.list(status=RunStatus.RUNNING, limit=MAX_LISTED, after=found[-1])
    return found
