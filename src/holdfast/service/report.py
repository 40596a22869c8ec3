"""The morning report: what happened since a moment, what it cost, what needs a person."""

from __future__ import annotations

from collections import Counter

from holdfast.engine.read.records import read_run, read_task
from holdfast.service.queries import Look, Queries, view_runs, view_tasks
from holdfast.service.usage import add
from holdfast.service.views import View, tell_time
from holdfast.store.database import Transaction

SHOWN = 500
RUNNING = 100


def report(view: Look, queries: Queries, since: int) -> View:
    def read(tx: Transaction) -> View:
        ended = view_runs(
            tx, [*map(read_run, tx.read("runs_ended_since", since=since, count=SHOWN))]
        )
        lone = tx.read("lone_tasks_failed_since", since=since, count=SHOWN)
        return {"ended": ended, "failed_tasks": view_tasks(tx, map(read_task, lone))}

    told = view(read)
    # What a step called is part of the run that called it, and costs nothing beside that.
    running = queries.runs(status="running", limit=RUNNING)["items"]
    spent: dict[str, float] = {}
    for run in (*told["ended"], *running):
        add(spent, run.get("usage"))
    return {
        "since": tell_time(since),
        "counts": dict(Counter(run["status"] for run in told["ended"])),
        **told,
        "running": running,
        "usage": spent,
        "needs_you": [*queries.for_people(), *queries.out_of_queue()],
    }
