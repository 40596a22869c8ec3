"""Tasks over HTTP: make, look at, change and steer them.

Plans over HTTP: children are added, put in order, and let go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Header, Query

from holdfast.errors import InvalidInput
from holdfast.model.task import NewTask
from holdfast.server.problems import Answer
from holdfast.server.request_context import After, AsksAs, Door, Limit, TaskId
from holdfast.server.route_table import LOOKERS, STEERERS, Table
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.commands.task_fields import read_changes, read_new_task
from holdfast.service.queries.views import View

table = Table(tag="tasks")
# Of many, as many are named in the audit.
SHOWN = 8
_VERSION = re.compile(r'(?:W/)?"?(\d{1,9})"?')


@table.route(
    "POST",
    "/tasks",
    STEERERS,
    answers=responses.Made,
    status=201,
    also={200: {"description": "The same key and body again", "model": responses.Task}},
)
async def add_tasks(
    body: request_bodies.NewTaskBody | request_bodies.NewTasksBody, asks: AsksAs
) -> Answer:
    """One task, or `{tasks: […]}`: all of them or none, answered as `{items}`."""
    return await make(asks, body)


async def make(
    asks: Door,
    body: request_bodies.NewTaskBody | request_bodies.NewTasksBody,
    parent: str | None = None,
) -> Answer:
    if isinstance(body, request_bodies.NewTasksBody):
        return await asks.serving.in_thread(partial(_make_many, asks, body, parent))
    wanted = _wanted(asks, body, parent)
    told = await asks.swift.add_task(wanted)
    asks.note(told["id"])
    return Answer(told, 201 if told["created"] else 200)


def _wanted(asks: Door, body: request_bodies.NewTaskBody, plan: str | None) -> NewTask:
    own = {} if plan is None else {"parent": plan, "enqueue": False}
    wanted = read_new_task({**body.without_nulls(), **own}, asks.service.settings)
    return wanted if plan is None else replace(wanted, part=True)


def _make_many(asks: Door, body: request_bodies.NewTasksBody, plan: str | None) -> Answer:
    wanted = [_wanted(asks, each, plan) for each in body.tasks]
    many = asks.service.commands.add_tasks(wanted)
    asks.note(*(each["id"] for each in many["items"][:SHOWN]))
    known = many["items"] and not any(each["created"] for each in many["items"])
    return Answer(many, 200 if known else 201)


@table.route("GET", "/tasks", LOOKERS, answers=responses.Tasks)
def list_tasks(  # noqa: PLR0913, PLR0917 - the filters of a list
    asks: AsksAs,
    limit: Limit = 100,
    after: After = None,
    status: str | None = None,
    agent: str | None = None,
    run: str | None = None,
    parent: str | None = None,
    workflow: str | None = None,
) -> Answer:
    """Tasks, newest first."""
    own = {"status": status, "agent": agent, "run": run, "parent": parent, "workflow": workflow}
    return Answer(asks.service.queries.tasks(limit=limit, after=after, **own))


@table.route("GET", "/tasks/{task_id}", LOOKERS, answers=responses.Task)
def show_task(task_id: TaskId, asks: AsksAs) -> Answer:
    """A task as it stands."""
    return Answer(asks.service.queries.task(task_id))


@table.route("PATCH", "/tasks/{task_id}", STEERERS, answers=responses.Changed)
def edit_task(
    task_id: TaskId,
    body: request_bodies.EditTaskBody,
    asks: AsksAs,
    if_match: Annotated[str | None, Header(description="Only at this version")] = None,
) -> Answer:
    """Change a task that is idle or queued, between two attempts too."""
    changes = read_changes(body.without_nulls())
    return Answer(asks.service.commands.edit(task_id, changes, _version(if_match)))


@table.route("DELETE", "/tasks/{task_id}", STEERERS, answers=responses.Changed)
def delete_task(task_id: TaskId, asks: AsksAs) -> Answer:
    """Remove a task that nothing needs."""
    return Answer(asks.service.commands.delete(task_id))


@table.route("GET", "/tasks/{task_id}/why", LOOKERS, answers=responses.Why)
def explain_task(task_id: TaskId, asks: AsksAs) -> Answer:
    """Why it is not running, clause by clause, and what would change that."""
    return Answer(asks.service.why(task_id))


@table.route("GET", "/tasks/{task_id}/attempts", LOOKERS, answers=responses.Page)
def list_attempts(task_id: TaskId, asks: AsksAs) -> Answer:
    """Every lease it ever had, and how each ended."""
    asks.service.queries.task(task_id)
    return Answer({"items": asks.service.queries.attempts(task_id)})


@table.route("GET", "/tasks/{task_id}/logs", LOOKERS, answers=responses.LogText)
def read_logs(
    task_id: TaskId,
    asks: AsksAs,
    attempt: int | None = None,
    start: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Answer:
    """What an attempt wrote, the latest unless said, from a byte on."""
    chosen, text = asks.service.read_attempt_log(task_id, attempt, start)
    told = {"attempt": chosen, "text": text.decode(errors="replace"), "next": start + len(text)}
    return Answer(told)


@table.route("GET", "/tasks/{task_id}/effects", LOOKERS, answers=responses.Effects)
def list_effects(task_id: TaskId, asks: AsksAs, limit: Limit = 100, after: After = None) -> Answer:
    """What it remembers in its present epoch, by name, oldest first."""
    asks.service.queries.task(task_id)
    return Answer(asks.service.effects(task_id, after, limit))


def _steer(verb: str, change: Callable[[Commands, str], View], said: str) -> None:
    def act(task_id: TaskId, asks: AsksAs) -> Answer:
        return Answer(change(asks.service.commands, task_id))

    act.__doc__ = said
    table.route("POST", f"/tasks/{{task_id}}/{verb}", STEERERS, answers=responses.Changed)(act)


_steer("enqueue", Commands.enqueue, "Put an idle task in the queue.")
_steer("run-now", Commands.run_now, "Put a task first in line.")
_steer("cancel", Commands.cancel, "End a task and all below it, for good.")
_steer("pause", Commands.pause, "Let an attempt that runs finish, and start no other.")
_steer(
    "resume",
    Commands.resume,
    "Go on after a pause, a usage limit put on it alone, or a worker that lacked its function.",
)
_steer("reopen", Commands.reopen, "Do an ended task again, and everything that needs it.")
_steer("reset", Commands.reset, "Take a task back to idle, as if it had never run.")
_steer("retry", Commands.retry, "Try again what failed, and all that failed with it in its run.")
_steer("plan/start", Commands.start_planning, "Begin to plan an idle task.")


@table.route("POST", "/tasks/{task_id}/block", STEERERS, answers=responses.Changed)
def block_task(task_id: TaskId, body: request_bodies.BlockTaskBody, asks: AsksAs) -> Answer:
    """Have a task that has not begun wait for others too."""
    return Answer(asks.service.commands.block(task_id, body.needs))


@table.route("POST", "/tasks/{task_id}/unblock", STEERERS, answers=responses.Changed)
def unblock_task(
    task_id: TaskId, asks: AsksAs, body: request_bodies.UnblockTaskBody | None = None
) -> Answer:
    """Have a task wait no more for others that it was linked to by hand."""
    return Answer(asks.service.commands.unblock(task_id, body.needs if body else None))


@table.route("POST", "/tasks/{task_id}/approve", STEERERS, answers=responses.Changed)
def approve_task(
    task_id: TaskId, asks: AsksAs, body: request_bodies.ApproveBody | None = None
) -> Answer:
    """Let what waits for a person go on."""
    return Answer(asks.service.commands.approve(task_id, body.note if body else None))


@table.route("POST", "/tasks/{task_id}/reject", STEERERS, answers=responses.Changed)
def reject_task(
    task_id: TaskId, asks: AsksAs, body: request_bodies.RejectBody | None = None
) -> Answer:
    """Fail what waits for a person, and say why."""
    return Answer(asks.service.commands.reject(task_id, body.reason if body else None))


@table.route("POST", "/tasks/{task_id}/answer", STEERERS, answers=responses.Changed)
def answer_task(task_id: TaskId, body: request_bodies.AnswerBody, asks: AsksAs) -> Answer:
    """Answer the question that a task waits with."""
    return Answer(asks.service.commands.answer(task_id, body.answer))


@table.route("POST", "/tasks/{task_id}/continue", STEERERS, answers=responses.Changed)
def continue_task(task_id: TaskId, body: request_bodies.FollowUpBody, asks: AsksAs) -> Answer:
    """Do an ended task again with a message to who did it, and all that needs it."""
    return Answer(asks.service.commands.follow_up(task_id, body.message))


def _version(text: str | None) -> int | None:
    if text is None or text == "*":
        return None
    found = _VERSION.fullmatch(text)
    if found is None:
        raise InvalidInput("if-match", 'is the version of a task, as in If-Match: "3"')
    return int(found[1])


plan_table = Table(tag="plans")


@plan_table.route(
    "POST",
    "/tasks/{task_id}/plan/children",
    STEERERS,
    answers=responses.Made,
    status=201,
    also={200: {"description": "The same key and body again", "model": responses.Task}},
)
async def add_children(
    task_id: TaskId, body: request_bodies.NewTaskBody | request_bodies.NewTasksBody, asks: AsksAs
) -> Answer:
    """Add one child, or `{tasks: […]}`, to a plan that is not finalized."""
    return await make(asks, body, task_id)


@plan_table.route("PATCH", "/tasks/{task_id}/plan/children", STEERERS, answers=responses.Changed)
def reorder_children(
    task_id: TaskId,
    body: request_bodies.ReorderPlanBody | request_bodies.ReorderByPositionBody,
    asks: AsksAs,
) -> Answer:
    """Put the children in this order, or each at its position; name all of them."""
    return Answer(asks.service.commands.reorder_plan(task_id, body.order))


@plan_table.route("POST", "/tasks/{task_id}/plan/finalize", STEERERS, answers=responses.Changed)
def finalize_plan(
    task_id: TaskId, asks: AsksAs, body: request_bodies.FinalizePlanBody | None = None
) -> Answer:
    """Queue the children, as a chain in their order, or by what each needs."""
    return Answer(asks.service.commands.finalize_plan(task_id, body.graph if body else None))
