"""The rows of a store against the plain model, field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping

from holdfast.model.status import Hold
from tests.simulation.plain.world import OPEN, WAITING, Run, Task, World
from tests.simulation.tables import Row, Tables

COMPARED = ("holdfast_need", "holdfast_task", "holdfast_run", "holdfast_slot", "holdfast_lease")


Found = dict[str, list[Row]]


def read(tables: Tables) -> Found:
    return dict(zip(COMPARED, tables.all_rows(*COMPARED), strict=True))


def compare(world: World, found: Found) -> None:
    needs: dict[str, set[str]] = {}
    for row in found["holdfast_need"]:
        needs.setdefault(row["task_id"], set()).add(row["need_id"])
    stored = {row["id"]: _stored_task(row, needs) for row in found["holdfast_task"]}
    same(stored, {task.id: _plain_task(world, task) for task in world.tasks.values()})
    runs = {row["id"]: _stored_run(row) for row in found["holdfast_run"]}
    same(runs, {run.id: _plain_run(run) for run in world.runs.values()})
    slots = {row["key"]: (row["capacity"], row["used"]) for row in found["holdfast_slot"]}
    same(slots, {key: (size, world.used(key)) for key, size in world.capacity.items()})
    leases = {
        row["key"]: (row["owner"], row["fence"], row["expires_at"])
        for row in found["holdfast_lease"]
    }
    same(leases, {k: (each.owner, each.fence, each.expires_at) for k, each in world.leases.items()})


def same(stored: Mapping[str, object], expected: Mapping[str, object]) -> None:
    for key in stored.keys() | expected.keys():
        assert stored.get(key) == expected.get(key), (
            f"{key}: stored and expected\n{stored.get(key)}\n{expected.get(key)}"
        )


def _stored_task(row: Row, needs: dict[str, set[str]]) -> object:
    waits, lives = row["status"] in WAITING, row["status"] in OPEN
    return {
        "title": row["title"],
        "run": row["run_id"],
        "parent": row["parent_id"],
        "kind": (row["kind"], row["item"], row["total"], bool(row["superseded"])),
        "agent": row["agent"],
        "status": row["status"],
        "needs": needs.get(row["id"], set()),
        "blocked": bool(row["blocked"]) if waits else None,
        "holds": Hold(row["holds"]),
        "run_holds": Hold(row["run_holds"]) if lives else None,
        "held_until": row["held_until"],
        "scheduled_for": row["scheduled_for"],
        "run_now": bool(row["run_now"]),
        "order": (row["priority"], row["position"]),
        "tags": set(json.loads(row["tags"])),
        "attempt": row["attempt"],
        "failures": (row["failures"], row["max_attempts"]),
        "lost": (row["lost"], row["max_lost"]),
        "generation": (row["generation"], row["epoch"]),
        "round": (row["round"], row["max_rounds"], row["detours"]),
        "skipped": bool(row["skipped"]),
        "said": (_value(row["feedback"]), _value(row["question"])),
        "output": _value(row["output"]),
        "error": _value(row["error"]),
        "lease": (row["worker"], row["lease_expires_at"]) if row["lease_expires_at"] else None,
    }


def _plain_task(world: World, task: Task) -> object:
    waits, lives = task.status in WAITING, task.status in OPEN
    return {
        "title": task.title,
        "run": task.run,
        "parent": task.parent,
        "kind": (task.kind, task.item, task.total, task.superseded),
        "agent": task.agent,
        "status": task.status,
        "needs": task.needs,
        "blocked": world.blocked(task) if waits else None,
        "holds": task.holds,
        "run_holds": world.run_holds(task) if lives else None,
        "held_until": task.held_until,
        "scheduled_for": task.scheduled_for,
        "run_now": task.run_now,
        "order": (task.priority, task.position),
        "tags": task.tags,
        "attempt": task.attempt,
        "failures": (task.failures, task.max_attempts),
        "lost": (task.lost, task.max_lost),
        "generation": (task.generation, task.epoch),
        "round": (task.round, task.max_rounds, task.detours),
        "skipped": task.skipped,
        "said": (task.feedback, task.question),
        "output": task.output,
        "error": task.error,
        "lease": (task.owner, task.expires_at) if task.expires_at else None,
    }


def _stored_run(row: Row) -> object:
    fields = ("workflow", "key", "status", "generation", "concurrency_key")
    rest = {"holds": Hold(row["holds"]), "error": _value(row["error"])}
    return {name: row[name] for name in fields} | rest


def _plain_run(run: Run) -> object:
    return {
        "workflow": run.workflow,
        "key": run.key,
        "status": run.status,
        "generation": run.generation,
        "concurrency_key": run.slot,
        "holds": run.holds,
        "error": run.error,
    }


def _value(text: str | None) -> object:
    return None if text is None else json.loads(text)
