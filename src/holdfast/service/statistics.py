"""How much waits and runs, for dashboards and for whoever measures."""

from __future__ import annotations

from holdfast.service.queries import Look
from holdfast.service.views import View
from holdfast.store.database import Transaction


def count(view: Look) -> View:
    """`{agents: {developer: {ready: 3, running: 1}}, runs: {running: 2}, workers, conflicts}`."""

    def read(tx: Transaction) -> View:
        agents: dict[str, dict[str, int]] = {}
        for row in tx.read("open_tasks_by_agent"):
            agents.setdefault(row["agent"], {})[row["state"]] = int(row["tasks"])
        runs = int(tx.read("count_running_runs")[0]["runs"])
        workers = len(tx.read("list_workers"))
        conflicts = int(tx.read("count_conflicts")[0]["conflicts"])
        return {
            "agents": agents,
            "runs": {"running": runs},
            "workers": workers,
            "conflicts": conflicts,
        }

    return view(read)
