"""Summaries of a store: the report since a moment, and counts of open tasks and runs."""

from __future__ import annotations

from collections import Counter

from holdfast.engine.read.records import read_run
from holdfast.engine.read.task_records import read_task
from holdfast.service.queries.command_lines import CommandWords
from holdfast.service.queries.queries import Queries, view_runs, view_tasks
from holdfast.service.queries.run_history import StoreReader
from holdfast.service.queries.standstills import find_standstills
from holdfast.service.queries.views import View, add_usage, format_time
from holdfast.store.database import Transaction

MAX_ENDED = 500
MAX_RUNNING = 100


def build_report(
    read_store: StoreReader, queries: Queries, since: int, words: CommandWords
) -> View:
    def read(tx: Transaction) -> View:
        ended = view_runs(
            tx, [*map(read_run, tx.read("runs_ended_since", since=since, count=MAX_ENDED))]
        )
        lone = tx.read("lone_tasks_failed_since", since=since, count=MAX_ENDED)
        return {
            "ended": ended,
            "failed_tasks": view_tasks(tx, map(read_task, lone)),
            "standstills": [
                each.view(words.typed) for each in find_standstills(tx, since, words.commanded)
            ],
        }

    told = read_store(read)
    # A called run is part of its caller: its cost is in the usage of the caller.
    running = queries.runs(status="running", limit=MAX_RUNNING)["items"]
    spent: dict[str, float] = {}
    for run in (*told["ended"], *running):
        add_usage(spent, run.get("usage"))
    return {
        "since": format_time(since),
        "counts": dict(Counter(run["status"] for run in told["ended"])),
        **told,
        "running": running,
        "usage": spent,
        "needs_you": [*queries.tasks_for_people(), *queries.tasks_out_of_queue()],
    }


def count_open_work(read_store: StoreReader) -> View:
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

    return read_store(read)
