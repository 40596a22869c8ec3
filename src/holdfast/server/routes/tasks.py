"""Task routes: creating, reading, editing and steering tasks, and planning them in parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Query

from holdfast.errors import InvalidInput
from holdfast.model.filters import TaskFilters
from holdfast.model.labels import parse_labels
from holdfast.model.task import NewTask
from holdfast.model.text import is_task_id, parse_run_id, parse_task_id
from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import (
    After,
    Context,
    DryRun,
    Key,
    Label,
    Limit,
    RequestContext,
    Since,
    TaskId,
    Until,
)
from holdfast.server.route_table import OPERATOR_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.commands.request_errors import rename_fields
from holdfast.service.commands.task_fields import read_changes, read_moment, read_new_task
from holdfast.service.queries.views import View

table = RouteTable(tag="tasks")
# The most tasks that one audit entry names.
MAX_NAMED = 8
_VERSION = re.compile(r'(?:W/)?"?(\d{1,9})"?')


@table.route(
    "POST",
    "/tasks",
    OPERATOR_ROLES,
    answers=responses.NewTasksResponse,
    status=201,
    also={200: {"description": "The same key and payload again", "model": responses.TaskResponse}},
)
async def add_tasks(
    body: request_bodies.NewTaskBody | request_bodies.NewTasksBody, context: Context
) -> JsonAnswer:
    """One task, or `{tasks: […]}`: all of them or none, answered as `{items}`."""
    return await create_tasks(context, body)


async def create_tasks(
    context: RequestContext,
    body: request_bodies.NewTaskBody | request_bodies.NewTasksBody,
    parent: str | None = None,
) -> JsonAnswer:
    if isinstance(body, request_bodies.NewTasksBody):
        return await context.server_state.in_thread(partial(_create_many, context, body, parent))
    if _names_by_key(body) or body.workflow is not None:
        return await context.server_state.in_thread(partial(_create_one, context, body, parent))
    wanted = _read_new_task(context, body, parent)
    told = await context.async_service.add_task(wanted)
    context.note(told["id"])
    return JsonAnswer(told, 201 if told["created"] else 200)


def _names_by_key(body: request_bodies.NewTaskBody) -> bool:
    """Whether a need or the parent is named by its key, which has to be looked up in the store."""
    named = [*(body.needs or ()), *([] if body.parent is None else [body.parent])]
    return not all(map(is_task_id, named))


def _create_one(
    context: RequestContext, body: request_bodies.NewTaskBody, plan: str | None
) -> JsonAnswer:
    told = context.service.commands.add_task(_read_new_task(context, body, plan))
    context.note(told["id"])
    return JsonAnswer(told, 201 if told["created"] else 200)


def _read_new_task(
    context: RequestContext, body: request_bodies.NewTaskBody, plan: str | None
) -> NewTask:
    own: dict[str, Any] = {} if plan is None else {"parent": plan, "enqueue": False}
    if body.needs and _names_by_key(body):
        with rename_fields(id="needs", task="needs", run="needs"):
            find = context.service.addresses.task_or_key
            own["needs"] = [find(each, whole=True) for each in body.needs]
    wanted = read_new_task({**body.without_nulls(), **own}, context.service.settings)
    return wanted if plan is None else replace(wanted, part=True)


def _create_many(
    context: RequestContext, body: request_bodies.NewTasksBody, plan: str | None
) -> JsonAnswer:
    wanted = [_read_new_task(context, each, plan) for each in body.tasks]
    many = context.service.commands.add_tasks(wanted)
    context.note(*(each["id"] for each in many["items"][:MAX_NAMED]))
    known = many["items"] and not any(each["created"] for each in many["items"])
    return JsonAnswer(many, 200 if known else 201)


@table.route("GET", "/tasks", VIEWER_ROLES, answers=responses.TaskPageResponse)
def list_tasks(  # noqa: PLR0913, PLR0917 - the filters of a list
    context: Context,
    limit: Limit = 100,
    after: After = None,
    status: str | None = None,
    agent: str | None = None,
    run: str | None = None,
    parent: str | None = None,
    workflow: str | None = None,
    step: Annotated[str | None, Query(description="Of this step or function")] = None,
    key: Key = None,
    label: Label = None,
    since: Since = None,
    until: Until = None,
    error: Annotated[str | None, Query(description="Whose error has this text")] = None,
    name: Annotated[str | None, Query(description="Whose title, step or key has this text")] = None,
) -> JsonAnswer:
    """Tasks, newest first; a label may be that of their run."""
    filters = TaskFilters(
        status=status,
        agent=agent,
        workflow=workflow,
        step=step,
        key=key,
        labels=parse_labels("label", label),
        since=read_moment(since),
        until=read_moment(until),
        error=error,
        name=name,
        run=None if run is None else parse_run_id(context.find_run(run), field="run"),
        parent=None if parent is None else parse_task_id(context.find_task(parent), field="parent"),
    )
    return JsonAnswer(context.service.queries.tasks(limit=limit, after=after, **filters))


@table.route("GET", "/tasks/{task_id}", VIEWER_ROLES, answers=responses.TaskResponse)
def show_task(task_id: TaskId, context: Context) -> JsonAnswer:
    """A task as it stands."""
    return JsonAnswer(context.service.queries.task(task_id))


@table.route("PATCH", "/tasks/{task_id}", OPERATOR_ROLES, answers=responses.ChangeResponse)
def edit_task(
    task_id: TaskId,
    body: request_bodies.EditTaskBody,
    context: Context,
    if_match: Annotated[str | None, Header(description="Only at this version")] = None,
) -> JsonAnswer:
    """Change a task that is idle or queued, between two attempts too."""
    changes = read_changes(body.without_nulls())
    return JsonAnswer(context.service.commands.edit(task_id, changes, _read_version(if_match)))


@table.route("DELETE", "/tasks/{task_id}", OPERATOR_ROLES, answers=responses.ChangeResponse)
def delete_task(task_id: TaskId, context: Context) -> JsonAnswer:
    """Remove a task that nothing needs."""
    return JsonAnswer(context.service.commands.delete(task_id))


@table.route("GET", "/tasks/{task_id}/why", VIEWER_ROLES, answers=responses.WhyResponse)
def explain_task(task_id: TaskId, context: Context) -> JsonAnswer:
    """Why it is not running, clause by clause, and what would change that."""
    return JsonAnswer(context.service.why(task_id))


@table.route("GET", "/tasks/{task_id}/attempts", VIEWER_ROLES, answers=responses.PageResponse)
def list_attempts(task_id: TaskId, context: Context) -> JsonAnswer:
    """Every lease it ever had, and how each ended."""
    context.service.queries.task(task_id)
    return JsonAnswer({"items": context.service.queries.attempts(task_id)})


@table.route("GET", "/tasks/{task_id}/logs", VIEWER_ROLES, answers=responses.LogTextResponse)
def read_logs(
    task_id: TaskId,
    context: Context,
    attempt: int | None = None,
    start: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> JsonAnswer:
    """What an attempt wrote, the latest unless said, from a byte on."""
    chosen, text = context.service.read_attempt_log(task_id, attempt, start)
    told = {"attempt": chosen, "text": text.decode(errors="replace"), "next": start + len(text)}
    return JsonAnswer(told)


@table.route("GET", "/tasks/{task_id}/effects", VIEWER_ROLES, answers=responses.EffectPageResponse)
def list_effects(
    task_id: TaskId, context: Context, limit: Limit = 100, after: After = None
) -> JsonAnswer:
    """What it remembers in its present epoch, by name, oldest first."""
    context.service.queries.task(task_id)
    return JsonAnswer(context.service.effects(task_id, after, limit))


def _add_steering_route(verb: str, change: Callable[[Commands, str], View], said: str) -> None:
    def act(task_id: TaskId, context: Context) -> JsonAnswer:
        return JsonAnswer(change(context.service.commands, task_id))

    act.__doc__ = said
    table.route(
        "POST", f"/tasks/{{task_id}}/{verb}", OPERATOR_ROLES, answers=responses.ChangeResponse
    )(act)


_add_steering_route("enqueue", Commands.enqueue, "Put an idle task in the queue.")
_add_steering_route("run-now", Commands.run_now, "Put a task first in line.")
_add_steering_route("reset", Commands.reset, "Take a task back to idle, as if it had never run.")
_add_steering_route("plan/start", Commands.start_planning, "Begin to plan an idle task.")


def _add_previewed_route(verb: str, said: str) -> None:
    def act(task_id: TaskId, context: Context, *, dry_run: DryRun = False) -> JsonAnswer:
        return JsonAnswer(context.steer(verb, task_id, dry_run=dry_run))

    act.__doc__ = said
    table.route(
        "POST", f"/tasks/{{task_id}}/{verb}", OPERATOR_ROLES, answers=responses.SteeringResponse
    )(act)


_add_previewed_route("cancel", "End a task and all below it, for good.")
_add_previewed_route("pause", "Let an attempt that runs finish, and start no other.")
_add_previewed_route(
    "resume",
    "Go on after a pause, a usage limit put on it alone, or a worker that lacked its function.",
)
_add_previewed_route("reopen", "Do an ended task again, and everything that needs it.")
_add_previewed_route("retry", "Try again what failed, and all that failed with it in its run.")


@table.route("POST", "/tasks/{task_id}/block", OPERATOR_ROLES, answers=responses.ChangeResponse)
def block_task(task_id: TaskId, body: request_bodies.BlockTaskBody, context: Context) -> JsonAnswer:
    """Have a task that has not begun wait for others too."""
    return JsonAnswer(context.service.commands.block(task_id, body.needs))


@table.route("POST", "/tasks/{task_id}/unblock", OPERATOR_ROLES, answers=responses.ChangeResponse)
def unblock_task(
    task_id: TaskId, context: Context, body: request_bodies.UnblockTaskBody | None = None
) -> JsonAnswer:
    """Have a task wait no more for others that it was linked to by hand."""
    return JsonAnswer(context.service.commands.unblock(task_id, body.needs if body else None))


@table.route("POST", "/tasks/{task_id}/approve", OPERATOR_ROLES, answers=responses.ChangeResponse)
def approve_task(
    task_id: TaskId, context: Context, body: request_bodies.ApproveBody | None = None
) -> JsonAnswer:
    """Let what waits for a person go on."""
    return JsonAnswer(context.service.commands.approve(task_id, body.note if body else None))


@table.route("POST", "/tasks/{task_id}/reject", OPERATOR_ROLES, answers=responses.SteeringResponse)
def reject_task(
    task_id: TaskId,
    context: Context,
    *,
    dry_run: DryRun = False,
    body: request_bodies.RejectBody | None = None,
) -> JsonAnswer:
    """Fail what waits for a person, and say why; or send it back, where its step says so."""
    reason = body.reason if body else None
    comments = _list_comments(body.comments) if body else []
    return JsonAnswer(context.steer("reject", task_id, reason, comments, dry_run=dry_run))


@table.route("POST", "/tasks/{task_id}/answer", OPERATOR_ROLES, answers=responses.ChangeResponse)
def answer_task(task_id: TaskId, body: request_bodies.AnswerBody, context: Context) -> JsonAnswer:
    """Answer the question that a task waits with."""
    return JsonAnswer(context.service.commands.answer(task_id, body.answer))


@table.route("POST", "/tasks/{task_id}/continue", OPERATOR_ROLES, answers=responses.ChangeResponse)
def continue_task(
    task_id: TaskId, body: request_bodies.FollowUpBody, context: Context
) -> JsonAnswer:
    """Do an ended task again with a message to who did it, and all that needs it."""
    return JsonAnswer(
        context.service.commands.follow_up(task_id, body.message, _list_comments(body.comments))
    )


def _list_comments(given: Sequence[request_bodies.CommentBody] | None) -> list[View]:
    return [each.without_nulls() for each in given or ()]


def _read_version(text: str | None) -> int | None:
    if text is None or text == "*":
        return None
    found = _VERSION.fullmatch(text)
    if found is None:
        raise InvalidInput("if-match", 'is the version of a task, as in If-Match: "3"')
    return int(found[1])


plan_table = RouteTable(tag="plans")


@plan_table.route(
    "POST",
    "/tasks/{task_id}/plan/children",
    OPERATOR_ROLES,
    answers=responses.NewTasksResponse,
    status=201,
    also={200: {"description": "The same key and payload again", "model": responses.TaskResponse}},
)
async def add_children(
    task_id: TaskId,
    body: request_bodies.NewTaskBody | request_bodies.NewTasksBody,
    context: Context,
) -> JsonAnswer:
    """Add one child, or `{tasks: […]}`, to a plan that is not finalized."""
    return await create_tasks(context, body, task_id)


@plan_table.route(
    "PATCH", "/tasks/{task_id}/plan/children", OPERATOR_ROLES, answers=responses.ChangeResponse
)
def reorder_children(
    task_id: TaskId,
    body: request_bodies.ReorderPlanBody | request_bodies.ReorderByPositionBody,
    context: Context,
) -> JsonAnswer:
    """Put the children in this order, or each at its position; name all of them."""
    return JsonAnswer(context.service.commands.reorder_plan(task_id, body.order))


@plan_table.route(
    "POST", "/tasks/{task_id}/plan/finalize", OPERATOR_ROLES, answers=responses.SteeringResponse
)
def finalize_plan(
    task_id: TaskId,
    context: Context,
    *,
    dry_run: DryRun = False,
    body: request_bodies.FinalizePlanBody | None = None,
) -> JsonAnswer:
    """Queue the children, as a chain in their order, or by what each needs."""
    graph = body.graph if body else None
    return JsonAnswer(context.steer("finalize_plan", task_id, graph, dry_run=dry_run))
