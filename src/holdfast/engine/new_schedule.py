"""A new schedule at the edge: checked whole, and put in the terms of the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from holdfast.engine import validation
from holdfast.engine.schedule_operations import PutSchedule
from holdfast.errors import InvalidInput
from holdfast.ids import Ids
from holdfast.model.run import NewRun
from holdfast.model.schedule import Missed, NewSchedule, check_cron, first_after
from holdfast.model.task import NewTask
from holdfast.model.text import clean_name, clean_text, digest

# The key of what a tick starts is this name and more, and a key has at most 200 characters.
MAX_NAME = 150
OF_ONE_CALL = ("key", "needs", "parent", "scheduled_for", "trace")
_TEMPLATE = (
    *("step", "title", "agent", "status", "priority", "position", "tags", "concurrency_key"),
    *("capacity", "max_attempts", "max_lost", "backoff", "backoff_max", "timeout"),
)


def clean_schedule_name(value: object) -> str:
    return clean_name("name", clean_text("name", value, limit=MAX_NAME))


def new_schedule(
    schedule: NewSchedule, ids: Ids, *, max_payload: int, now: Callable[[], int]
) -> PutSchedule:
    validation.instance("schedule", schedule, NewSchedule)
    name = clean_schedule_name(schedule.name)
    cron, zone = check_cron(schedule.cron, schedule.zone)
    missed = _missed(schedule.missed)
    run_id = None if schedule.run is None else validation.run_id(schedule.run, "run")
    target = _target(schedule.starts, ids, max_payload=max_payload)
    # What is called is part of the definition, by its version.
    told = (target[key] for key in sorted(target) if key != "called")
    said = (cron, zone, missed, run_id, *told)
    return PutSchedule(
        name=name,
        cron=cron,
        zone=zone,
        missed=missed,
        run_id=run_id,
        body_digest=digest(repr(said)),
        next_at=first_after(cron, zone, now()),
        **target,
    )


def _missed(value: object) -> str:
    known = [each.value for each in Missed]
    if not isinstance(value, str) or value not in known:
        raise InvalidInput("missed", f"{value!r} is not one of {', '.join(known)}")
    return str(value)


def _target(starts: object, ids: Ids, *, max_payload: int) -> dict[str, Any]:
    if isinstance(starts, NewTask):
        _refuse_own(starts, OF_ONE_CALL)
        task = validation.new_task(starts, ids, max_payload=max_payload, now=lambda: 0)
        template = {name: getattr(task, name) for name in _TEMPLATE}
        return {"template": json.dumps(template), "input": task.payload}
    if isinstance(starts, NewRun):
        _refuse_own(starts, ("key", "trace"))
        run = validation.new_run(starts, ids, max_payload=max_payload, actor_name="schedule")
        return {
            "workflow": run.workflow,
            "workflow_version": run.workflow_version,
            "definition": run.definition,
            "called": run.called,
            "template": json.dumps({"priority": run.priority}),
            "input": run.input,
        }
    reason = f"must be a NewTask or a NewRun, not {type(starts).__name__}"
    raise InvalidInput("starts", reason)


def _refuse_own(starts: NewTask | NewRun, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(starts, name):
            reason = "belongs to one call; what a schedule starts has a key of its own at each tick"
            raise InvalidInput(name, reason)
