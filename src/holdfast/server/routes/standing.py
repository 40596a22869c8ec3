"""What stands around the work: workers, schedules, counts, and tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from holdfast.server import answers, bodies
from holdfast.server.door import After, AsksAs, Limit
from holdfast.server.problems import Answer
from holdfast.server.routing import ADMINS, LOOKERS, STEERERS, Table

table = Table(tag="standing")
Name = Annotated[str, Path()]


@table.route("GET", "/workers", LOOKERS, answers=answers.Page)
def list_workers(asks: AsksAs) -> Answer:
    """Every worker that was heard of lately."""
    return Answer(asks.service.queries.workers())


@table.route("POST", "/workers/{name}/drain", STEERERS, answers=answers.Changed)
def drain_worker(name: Name, asks: AsksAs) -> Answer:
    """Have a worker finish what it runs, and leave."""
    return Answer(asks.service.commands.steer_worker(name, "drain"))


@table.route("POST", "/workers/{name}/evict", STEERERS, answers=answers.Changed)
def evict_worker(name: Name, asks: AsksAs) -> Answer:
    """Have a worker give back what it runs, and leave."""
    return Answer(asks.service.commands.steer_worker(name, "evict"))


@table.route("POST", "/agents/{name}/resume", STEERERS, answers=answers.Changed)
def resume_agent(name: Name, asks: AsksAs) -> Answer:
    """Let an agent go on that has reached its usage limit, before that lifts by itself."""
    return Answer(asks.service.commands.lift_limit(name))


@table.route("GET", "/schedules", LOOKERS, answers=answers.Page)
def list_schedules(asks: AsksAs, limit: Limit = 100, after: After = None) -> Answer:
    """Every schedule, by name."""
    return Answer(asks.service.queries.schedules(limit=limit, after=after))


@table.route("GET", "/stats", LOOKERS, answers=answers.Statistics)
def statistics(asks: AsksAs) -> Answer:
    """How much waits and runs, by agent."""
    return Answer(asks.service.statistics())


@table.route("GET", "/tokens", ADMINS, answers=answers.Page)
def list_tokens(asks: AsksAs) -> Answer:
    """Every token that was made: its name, role and times, never the token itself."""
    return Answer(asks.service.tokens.list())


@table.route("POST", "/tokens", ADMINS, answers=answers.Token, status=201)
def create_token(body: bodies.NewToken, asks: AsksAs) -> Answer:
    """Make a token, which is told this once."""
    asks.note(body.name, body.role, *(body.agents or ()))
    made = asks.service.tokens.create(
        body.name, role=body.role, agents=body.agents, expires=body.expires
    )
    return Answer(made, 201)


@table.route("DELETE", "/tokens/{name}", ADMINS, answers=answers.Token)
def revoke_token(name: Name, asks: AsksAs) -> Answer:
    """Have a token be good for nothing from now on."""
    return Answer(asks.service.tokens.revoke(name))
