"""Schedule routes: schedules are listed, added, paused, resumed and removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path

from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import After, Context, Limit
from holdfast.server.route_table import OPERATOR_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.commands.task_fields import read_new_task
from holdfast.service.queries.views import View

table = RouteTable(tag="standing")
Name = Annotated[str, Path()]


def add_control_route(
    to: RouteTable, path: str, change: Callable[[Commands, str, str], View], described: str
) -> None:
    """Add a call that changes what a path names; the last part of the path is the change."""

    def act(name: Name, context: Context) -> JsonAnswer:
        return JsonAnswer(change(context.service.commands, name, path.rpartition("/")[2]))

    act.__doc__ = described
    to.route("POST", path, OPERATOR_ROLES, answers=responses.ChangeResponse)(act)


@table.route("GET", "/schedules", VIEWER_ROLES, answers=responses.PageResponse)
def list_schedules(context: Context, limit: Limit = 100, after: After = None) -> JsonAnswer:
    """Every schedule, by name."""
    return JsonAnswer(context.service.queries.schedules(limit=limit, after=after))


@table.route("POST", "/schedules", OPERATOR_ROLES, answers=responses.ScheduleResponse, status=201)
def add_schedule(body: request_bodies.NewScheduleBody, context: Context) -> JsonAnswer:
    """Start a run or a task at each tick of a cron expression."""
    if (body.workflow is None) == (body.task is None):
        raise InvalidInput("workflow", "say what it starts: either a workflow or a task")
    commands, settings = context.service.commands, context.service.settings
    starts: NewTask | NewRun
    if body.task is not None:
        starts = read_new_task(body.task.without_nulls(), settings)
    else:
        starts = commands.prepare_run(str(body.workflow), body.input)
    chosen = {"zone": body.zone, "missed": body.missed}
    more = {name: value for name, value in chosen.items() if value is not None}
    context.note(body.name)
    wanted = NewSchedule(name=body.name, cron=body.cron, starts=starts, **more)
    return JsonAnswer(commands.add_schedule(wanted), 201)


add_control_route(
    table,
    "/schedules/{name}/pause",
    Commands.control_schedule,
    "Fire no more ticks; those of the pause are not made up for.",
)
add_control_route(
    table,
    "/schedules/{name}/resume",
    Commands.control_schedule,
    "Go on with the next tick from now.",
)


@table.route("DELETE", "/schedules/{name}", OPERATOR_ROLES, answers=responses.ChangeResponse)
def remove_schedule(name: Name, context: Context) -> JsonAnswer:
    """Forget a schedule; what it has started stays."""
    return JsonAnswer(context.service.commands.control_schedule(name, "remove"))
