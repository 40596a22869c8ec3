"""Administration routes: workers, agents, schedules, statistics, tokens and parked messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query

from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import After, Context, Limit
from holdfast.server.route_table import ADMIN_ROLES, OPERATOR_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.commands.task_fields import read_new_task
from holdfast.service.queries.views import View

table = RouteTable(tag="standing")
Name = Annotated[str, Path()]


@table.route("GET", "/workers", VIEWER_ROLES, answers=responses.PageResponse)
def list_workers(context: Context) -> JsonAnswer:
    """Every worker that was heard of lately."""
    return JsonAnswer(context.service.queries.workers())


def _add_steering_route(
    noun: str, verb: str, change: Callable[[Commands, str, str], View], said: str
) -> None:
    def act(name: Name, context: Context) -> JsonAnswer:
        return JsonAnswer(change(context.service.commands, name, verb))

    act.__doc__ = said
    table.route(
        "POST", f"/{noun}/{{name}}/{verb}", OPERATOR_ROLES, answers=responses.ChangeResponse
    )(act)


_add_steering_route(
    "workers", "drain", Commands.control_worker, "Have a worker finish what it runs, and leave."
)
_add_steering_route(
    "workers", "evict", Commands.control_worker, "Have a worker give back what it runs, and leave."
)


@table.route("POST", "/agents/{name}/resume", OPERATOR_ROLES, answers=responses.ChangeResponse)
def resume_agent(name: Name, context: Context) -> JsonAnswer:
    """Let an agent go on that has reached its usage limit, before that lifts by itself."""
    return JsonAnswer(context.service.commands.lift_limit(name))


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


_add_steering_route(
    "schedules",
    "pause",
    Commands.control_schedule,
    "Fire no more ticks; those of the pause are not made up for.",
)
_add_steering_route(
    "schedules", "resume", Commands.control_schedule, "Go on with the next tick from now."
)


@table.route("DELETE", "/schedules/{name}", OPERATOR_ROLES, answers=responses.ChangeResponse)
def remove_schedule(name: Name, context: Context) -> JsonAnswer:
    """Forget a schedule; what it has started stays."""
    return JsonAnswer(context.service.commands.control_schedule(name, "remove"))


@table.route("GET", "/stats", VIEWER_ROLES, answers=responses.StatisticsResponse)
def statistics(context: Context) -> JsonAnswer:
    """How much waits and runs, by agent."""
    return JsonAnswer(context.service.statistics())


@table.route("GET", "/tokens", ADMIN_ROLES, answers=responses.PageResponse)
def list_tokens(context: Context) -> JsonAnswer:
    """Every token that was made: its name, role and times, never the token itself."""
    return JsonAnswer(context.service.tokens.list())


@table.route("POST", "/tokens", ADMIN_ROLES, answers=responses.TokenResponse, status=201)
def create_token(body: request_bodies.NewTokenBody, context: Context) -> JsonAnswer:
    """Make a token, which is told this once."""
    context.note(body.name, body.role, *(body.agents or ()))
    made = context.service.tokens.create(
        body.name, role=body.role, agents=body.agents, expires=body.expires
    )
    return JsonAnswer(made, 201)


@table.route("DELETE", "/tokens/{name}", ADMIN_ROLES, answers=responses.TokenResponse)
def revoke_token(name: Name, context: Context) -> JsonAnswer:
    """Have a token be good for nothing from now on."""
    return JsonAnswer(context.service.tokens.revoke(name))


bus_table = RouteTable(tag="bus")


@bus_table.route("GET", "/bus/parked", VIEWER_ROLES, answers=responses.PageResponse)
def list_parked(
    context: Context,
    *,
    limit: Limit = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before")] = 0,
    everything: Annotated[
        bool, Query(alias="all", description="What is tried again and what waits behind it, too")
    ] = False,
) -> JsonAnswer:
    """Messages that are parked, or were replayed and not tried yet, in the order they came."""
    return JsonAnswer(
        context.service.parked_messages.page(everything=everything, limit=limit, after=after)
    )


@bus_table.route("POST", "/bus/parked/replay", OPERATOR_ROLES, answers=responses.ChangeResponse)
def replay_parked(body: request_bodies.ParkedMessageBody, context: Context) -> JsonAnswer:
    """Have a parked message tried again; what waits behind it follows."""
    context.note(body.handler, body.message_id)
    return JsonAnswer(context.service.parked_messages.replay(body.handler, body.message_id))


@bus_table.route("POST", "/bus/parked/drop", OPERATOR_ROLES, answers=responses.ChangeResponse)
def drop_parked(body: request_bodies.ParkedMessageBody, context: Context) -> JsonAnswer:
    """Give a parked message up for good; what waits behind it follows."""
    context.note(body.handler, body.message_id)
    return JsonAnswer(context.service.parked_messages.drop(body.handler, body.message_id))
