"""What stands around the work: workers, schedules, counts, and tokens.

Messages that handlers failed on: listed, tried again after the fix, or given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query

from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.schedule import NewSchedule
from holdfast.model.task import NewTask
from holdfast.server.problems import Answer
from holdfast.server.request_context import After, AsksAs, Limit
from holdfast.server.route_table import ADMINS, LOOKERS, STEERERS, Table
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.commands.task_fields import read_new_task
from holdfast.service.queries.views import View

table = Table(tag="standing")
Name = Annotated[str, Path()]


@table.route("GET", "/workers", LOOKERS, answers=responses.Page)
def list_workers(asks: AsksAs) -> Answer:
    """Every worker that was heard of lately."""
    return Answer(asks.service.queries.workers())


def _steer(noun: str, verb: str, change: Callable[[Commands, str, str], View], said: str) -> None:
    def act(name: Name, asks: AsksAs) -> Answer:
        return Answer(change(asks.service.commands, name, verb))

    act.__doc__ = said
    table.route("POST", f"/{noun}/{{name}}/{verb}", STEERERS, answers=responses.Changed)(act)


_steer("workers", "drain", Commands.control_worker, "Have a worker finish what it runs, and leave.")
_steer(
    "workers", "evict", Commands.control_worker, "Have a worker give back what it runs, and leave."
)


@table.route("POST", "/agents/{name}/resume", STEERERS, answers=responses.Changed)
def resume_agent(name: Name, asks: AsksAs) -> Answer:
    """Let an agent go on that has reached its usage limit, before that lifts by itself."""
    return Answer(asks.service.commands.lift_limit(name))


@table.route("GET", "/schedules", LOOKERS, answers=responses.Page)
def list_schedules(asks: AsksAs, limit: Limit = 100, after: After = None) -> Answer:
    """Every schedule, by name."""
    return Answer(asks.service.queries.schedules(limit=limit, after=after))


@table.route("POST", "/schedules", STEERERS, answers=responses.Schedule, status=201)
def add_schedule(body: request_bodies.NewScheduleBody, asks: AsksAs) -> Answer:
    """Start a run or a task at each tick of a cron expression."""
    if (body.workflow is None) == (body.task is None):
        raise InvalidInput("workflow", "say what it starts: either a workflow or a task")
    commands, settings = asks.service.commands, asks.service.settings
    starts: NewTask | NewRun
    if body.task is not None:
        starts = read_new_task(body.task.without_nulls(), settings)
    else:
        starts = commands.prepare_run(str(body.workflow), body.input)
    chosen = {"zone": body.zone, "missed": body.missed}
    more = {name: value for name, value in chosen.items() if value is not None}
    asks.note(body.name)
    wanted = NewSchedule(name=body.name, cron=body.cron, starts=starts, **more)
    return Answer(commands.add_schedule(wanted), 201)


_steer(
    "schedules",
    "pause",
    Commands.control_schedule,
    "Fire no more ticks; those of the pause are not made up for.",
)
_steer("schedules", "resume", Commands.control_schedule, "Go on with the next tick from now.")


@table.route("DELETE", "/schedules/{name}", STEERERS, answers=responses.Changed)
def remove_schedule(name: Name, asks: AsksAs) -> Answer:
    """Forget a schedule; what it has started stays."""
    return Answer(asks.service.commands.control_schedule(name, "remove"))


@table.route("GET", "/stats", LOOKERS, answers=responses.Statistics)
def statistics(asks: AsksAs) -> Answer:
    """How much waits and runs, by agent."""
    return Answer(asks.service.statistics())


@table.route("GET", "/tokens", ADMINS, answers=responses.Page)
def list_tokens(asks: AsksAs) -> Answer:
    """Every token that was made: its name, role and times, never the token itself."""
    return Answer(asks.service.tokens.list())


@table.route("POST", "/tokens", ADMINS, answers=responses.Token, status=201)
def create_token(body: request_bodies.NewTokenBody, asks: AsksAs) -> Answer:
    """Make a token, which is told this once."""
    asks.note(body.name, body.role, *(body.agents or ()))
    made = asks.service.tokens.create(
        body.name, role=body.role, agents=body.agents, expires=body.expires
    )
    return Answer(made, 201)


@table.route("DELETE", "/tokens/{name}", ADMINS, answers=responses.Token)
def revoke_token(name: Name, asks: AsksAs) -> Answer:
    """Have a token be good for nothing from now on."""
    return Answer(asks.service.tokens.revoke(name))


bus_table = Table(tag="bus")


@bus_table.route("GET", "/bus/parked", LOOKERS, answers=responses.Page)
def list_parked(
    asks: AsksAs,
    *,
    limit: Limit = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before")] = 0,
    everything: Annotated[
        bool, Query(alias="all", description="What is tried again and what waits behind it, too")
    ] = False,
) -> Answer:
    """Messages that are parked, or were replayed and not tried yet, in the order they came."""
    return Answer(
        asks.service.parked_messages.page(everything=everything, limit=limit, after=after)
    )


@bus_table.route("POST", "/bus/parked/replay", STEERERS, answers=responses.Changed)
def replay_parked(body: request_bodies.ParkedMessageBody, asks: AsksAs) -> Answer:
    """Have a parked message tried again; what waits behind it follows."""
    asks.note(body.handler, body.message_id)
    return Answer(asks.service.parked_messages.replay(body.handler, body.message_id))


@bus_table.route("POST", "/bus/parked/drop", STEERERS, answers=responses.Changed)
def drop_parked(body: request_bodies.ParkedMessageBody, asks: AsksAs) -> Answer:
    """Give a parked message up for good; what waits behind it follows."""
    asks.note(body.handler, body.message_id)
    return Answer(asks.service.parked_messages.drop(body.handler, body.message_id))
