"""What a run, a task, an event, an attempt and a schedule hold as JSON; null is absent.

What work used up: the numbers of each attempt's usage, added by name.

What is left to tell of runs and tasks that were removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from holdfast.model.budget import Budget, BudgetUsage, is_amount
from holdfast.model.event import Event, read_event_data
from holdfast.model.run import Run
from holdfast.model.schedule import Schedule
from holdfast.model.status import TaskKind
from holdfast.model.task import Attempt, NamedLease, Task
from holdfast.model.worker import LiveWorker
from holdfast.store.database import Row, Transaction

View = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def tell_time(moment: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601 in UTC."""
    return None if moment is None else _tell(moment)


# What one commit wrote has one time, and is often told together.
@lru_cache(maxsize=1_024)
def _tell(moment: int) -> str:
    return (_EPOCH + timedelta(microseconds=moment)).isoformat().replace("+00:00", "Z")


def read_time(text: str | None) -> int | None:
    """Microseconds since 1970 of a time in a view."""
    if text is None:
        return None
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)


def present(**fields: Any) -> View:
    return {name: value for name, value in fields.items() if value is not None}


def view_run(run: Run, **more: Any) -> View:
    return present(
        id=run.id,
        workflow=run.workflow,
        workflow_version=run.workflow_version,
        key=run.key,
        parent_id=run.parent_id,
        root_id=run.root_id,
        status=run.status.value,
        holds=list(run.holds.names),
        input=run.input,
        error=run.error,
        version=run.version,
        generation=run.generation,
        created_at=tell_time(run.created_at),
        finished_at=tell_time(run.finished_at),
        deadline=tell_time(run.deadline),
        **more,
    )


def view_budget(budget: Budget, used: BudgetUsage) -> View:
    """The limits of a run that it has, and what it has used so far."""
    return present(**asdict(budget), used=asdict(used))


def view_task(
    task: Task, *, blocked_by: list[str] | None = None, below: tuple[int, int] | None = None
) -> View:
    """A task; `below` are how many of the tasks right below it are done, and how many there are."""
    lease = task.lease
    return present(
        id=task.id,
        kind=task.kind.value,
        run_id=task.run_id,
        parent_id=task.parent_id,
        step=task.step,
        item=task.item,
        calls=task.calls,
        title=task.title,
        agent=task.agent,
        status=task.status.value,
        state=tell_state(task, below),
        planning_phase=task.planning_phase.value,
        blocked_by=blocked_by or [],
        holds=list(task.holds.names),
        held_until=tell_time(task.held_until),
        skipped=task.skipped,
        superseded=task.superseded or None,
        attempt=task.attempt,
        failures=task.failures,
        max_attempts=task.retry.max_attempts,
        lost=task.lost,
        max_lost=task.retry.max_lost,
        round=task.round,
        max_rounds=task.max_rounds if task.round else None,
        generation=task.generation,
        priority=task.priority,
        position=task.position,
        scheduled_for=tell_time(task.scheduled_for),
        waits_for=task.waits_for,
        tags=list(task.tags),
        key=task.key,
        timeout=task.timeout,
        payload=task.payload,
        output=task.output,
        error=task.error,
        progress=task.progress,
        question=task.question,
        feedback=task.feedback,
        lease=lease and {"owner": lease.owner, "expires_at": tell_time(lease.expires_at)},
        usage=task.usage,
        version=task.version,
        created_at=tell_time(task.created_at),
        started_at=tell_time(task.started_at),
        finished_at=tell_time(task.finished_at),
    )


def tell_state(task: Task, below: tuple[int, int] | None) -> str:
    """What a person sees of a task; of a group that is under way, how far it is."""
    if task.kind is TaskKind.GROUP or below is not None:
        done, total = below or (0, 0)
        if total and not task.terminal and task.state in {"idle", "ready", "in progress"}:
            return f"in progress {done}/{total}"
    return task.state


def view_event(event: Event) -> View:
    # What is made had nothing before: only of a change does a null in it say something.
    data = event.data if event.source is not None else present(**event.data)
    told = present(
        seq=event.seq,
        type=event.type,
        run_id=event.run_id,
        task_id=event.task_id,
        version=event.version,
        generation=event.generation,
        attempt=event.attempt,
        actor=event.actor,
        at=tell_time(event.at),
        data=data or None,
    )
    return told | {
        name: status
        for name, status in (("from", event.source), ("to", event.target))
        if status is not None
    }


def view_attempt(attempt: Attempt) -> View:
    stopped = attempt.stopped_at is not None
    return present(
        task_id=attempt.task_id,
        attempt=attempt.number,
        owner=attempt.owner,
        claimed_at=tell_time(attempt.claimed_at),
        ended_at=tell_time(attempt.ended_at),
        outcome=attempt.outcome,
        digest=attempt.digest,
        error=attempt.error,
        usage=attempt.usage,
        stopped_at=tell_time(attempt.stopped_at),
        stopped=attempt.stopped if stopped else None,
        left=attempt.left if stopped else None,
    )


def view_schedule(schedule: Schedule) -> View:
    return present(
        name=schedule.name,
        cron=schedule.cron,
        zone=schedule.zone,
        missed=str(schedule.missed),
        workflow=schedule.workflow,
        task=schedule.task,
        input=schedule.input,
        run_id=schedule.run_id,
        paused=schedule.paused,
        next_at=tell_time(schedule.next_at),
        last_at=tell_time(schedule.last_at),
        last_error=schedule.last_error,
        version=schedule.version,
        created_at=tell_time(schedule.created_at),
    )


def view_worker(worker: LiveWorker) -> View:
    return present(
        name=worker.name,
        agents=list(worker.agents),
        tags=list(worker.tags),
        concurrency=worker.concurrency,
        told=worker.told,
        pausing=worker.pausing,
        started_at=tell_time(worker.started_at),
        seen_at=tell_time(worker.seen_at),
    )


def view_lease(lease: NamedLease) -> View:
    return {
        "key": lease.key,
        "owner": lease.owner,
        "fence": lease.fence,
        "token": lease.token,
        "expires_at": tell_time(lease.expires_at),
    }


Usage = dict[str, float]


def usage_by_owner(rows: Iterable[Row]) -> dict[str, Usage]:
    """What runs or tasks used up: the ends of attempts, and what is running."""
    totals: dict[str, Usage] = {}
    for row in rows:
        ended = row["data"] is not None
        used = read_event_data(row["data"]).get("usage") if ended else json.loads(row["usage"])
        add(totals.setdefault(row["owner"], {}), used)
    return totals


def add(total: Usage, used: object) -> None:
    if not isinstance(used, dict):
        return
    for name, value in used.items():
        if is_amount(value):
            total[name] = total.get(name, 0) + value


def usd(used: object) -> float | None:
    """What it cost, where that is known."""
    match used:
        case {"usd": bool()}:
            return None
        case {"usd": int() | float() as cost}:
            return float(cost)
        case _:
            return None


def view_tombstone(row: Row) -> View:
    """What is left of a run or task that was removed."""
    run = row["kind"] == "run"
    return present(
        id=row["entity"],
        workflow=row["name"] if run else None,
        workflow_version=row["version"],
        title=None if run else row["name"],
        key=row["key"],
        status=row["status"],
        created_at=tell_time(row["created_at"]),
        finished_at=tell_time(row["finished_at"]),
        removed_at=tell_time(row["removed_at"]),
    )


def tell_removed(tx: Transaction, identifier: str) -> str:
    """That it was there once, where a tombstone tells so."""
    for row in tx.read("tombstone_of", entity=identifier):
        return f"it was {row['status']}, and removed {tell_time(row['removed_at'])}: keep.runs"
    return ""
