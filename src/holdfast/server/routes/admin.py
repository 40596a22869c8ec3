"""Administration routes: workers, agents, statistics, tokens and parked messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import Context, Limit
from holdfast.server.route_table import ADMIN_ROLES, OPERATOR_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.routes.schedules import Name, add_control_route
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.queries.activity import MAX_DAYS, MAX_HOURS, MAX_OFFSET

table = RouteTable(tag="standing")


@table.route("GET", "/workers", VIEWER_ROLES, answers=responses.PageResponse)
def list_workers(context: Context) -> JsonAnswer:
    """Every worker that was heard of lately."""
    return JsonAnswer(context.service.queries.workers())


add_control_route(
    table,
    "/workers/{name}/drain",
    Commands.control_worker,
    "Have a worker finish what it runs, and leave.",
)
add_control_route(
    table,
    "/workers/{name}/evict",
    Commands.control_worker,
    "Have a worker give back what it runs, and leave.",
)


@table.route("POST", "/agents/{name}/resume", OPERATOR_ROLES, answers=responses.ChangeResponse)
def resume_agent(name: Name, context: Context) -> JsonAnswer:
    """Let an agent go on that has reached its usage limit, before that lifts by itself."""
    return JsonAnswer(context.service.commands.lift_limit(name))


@table.route("GET", "/stats", VIEWER_ROLES, answers=responses.StatisticsResponse)
def statistics(context: Context) -> JsonAnswer:
    """How much waits and runs, by agent."""
    return JsonAnswer(context.service.statistics())


@table.route("GET", "/activity", VIEWER_ROLES, answers=responses.ActivityResponse)
def show_activity(
    context: Context,
    hours: Annotated[int, Query(ge=1, le=MAX_HOURS, description="How many, this one too")] = 24,
) -> JsonAnswer:
    """What was done in each of the last hours, what failed, and how long work waited."""
    return JsonAnswer(context.service.activity(hours))


@table.route("GET", "/costs", VIEWER_ROLES, answers=responses.CostsResponse)
def show_costs(
    context: Context,
    days: Annotated[int, Query(ge=1, le=MAX_DAYS, description="How many, today too")] = 14,
    offset: Annotated[
        int,
        Query(ge=-MAX_OFFSET, le=MAX_OFFSET, description="Minutes that days begin before UTC's"),
    ] = 0,
) -> JsonAnswer:
    """What ended attempts have cost on each of the last days, by workflow."""
    return JsonAnswer(context.service.costs(days, offset))


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


@bus_table.route("GET", "/bus/groups", VIEWER_ROLES, answers=responses.GroupPageResponse)
def list_groups(context: Context) -> JsonAnswer:
    """Consumer groups: how far each is behind, and who reads it, by stable name and since when."""
    return JsonAnswer(context.service.bus_groups())


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
