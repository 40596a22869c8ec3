"""Run routes: starting, reading and steering runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from holdfast.model.filters import RunFilters
from holdfast.model.labels import parse_labels
from holdfast.model.units import parse_duration
from holdfast.model.workflow.step import Concurrency
from holdfast.server.exception_handlers import JsonAnswer
from holdfast.server.request_context import (
    After,
    Context,
    DryRun,
    Key,
    Label,
    Limit,
    RunId,
    Since,
    Until,
)
from holdfast.server.route_table import OPERATOR_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.task_fields import read_moment

table = RouteTable(tag="runs")


@table.route(
    "POST",
    "/runs",
    OPERATOR_ROLES,
    answers=responses.RunResponse,
    status=201,
    also={
        200: {
            "description": "The same key, workflow and input again",
            "model": responses.RunResponse,
        }
    },
)
def start_run(body: request_bodies.StartRunBody, context: Context) -> JsonAnswer:
    """Start a run; the same key, workflow and input give back the existing one.

    That one keeps its version of the workflow; `asked_version` is another one that was asked for.
    """
    told = context.service.commands.start_by_name(
        body.workflow,
        body.input,
        version=body.version,
        key=body.key,
        priority=body.priority or 0,
        deadline=None if body.deadline is None else parse_duration("deadline", body.deadline),
        scheduled_for=read_moment(body.scheduled_for),
        concurrency=_read_concurrency(body.concurrency),
        labels=body.labels or {},
    )
    context.note(told["id"], body.workflow)
    return JsonAnswer(told, 201 if told["created"] else 200)


def _read_concurrency(given: str | request_bodies.ConcurrencyBody | None) -> Concurrency | None:
    if given is None:
        return None
    told = request_bodies.ConcurrencyBody(key=given) if isinstance(given, str) else given
    return Concurrency(key=told.key, limit=told.limit)


def _read_filters(  # noqa: PLR0913, PLR0917 - the filters of a list
    status: Annotated[str | None, Query(description="In this status")] = None,
    workflow: Annotated[str | None, Query(description="Of this workflow")] = None,
    step: Annotated[str | None, Query(description="With a task of this step")] = None,
    agent: Annotated[str | None, Query(description="With a task for this agent")] = None,
    key: Key = None,
    label: Label = None,
    since: Since = None,
    until: Until = None,
    error: Annotated[
        str | None, Query(description="Whose error, or that of a task, has this text")
    ] = None,
    name: Annotated[str | None, Query(description="Whose workflow or key has this text")] = None,
    held: Annotated[str | None, Query(description="On hold for this reason, as `paused`")] = None,
) -> RunFilters:
    return RunFilters(
        status=status,
        workflow=workflow,
        step=step,
        agent=agent,
        key=key,
        labels=parse_labels("label", label),
        since=read_moment(since),
        until=read_moment(until),
        error=error,
        name=name,
        held=held,
    )


Filters = Annotated[RunFilters, Depends(_read_filters)]


@table.route("GET", "/runs", VIEWER_ROLES, answers=responses.RunPageResponse)
def list_runs(
    context: Context, filters: Filters, limit: Limit = 100, after: After = None
) -> JsonAnswer:
    """Runs, newest first."""
    return JsonAnswer(context.service.queries.runs(limit=limit, after=after, **filters))


@table.route("GET", "/runs/counts", VIEWER_ROLES, answers=responses.RunCountsResponse)
def count_runs(context: Context, filters: Filters) -> JsonAnswer:
    """How many runs there are, by status."""
    return JsonAnswer(context.service.queries.run_counts(**filters))


@table.route("GET", "/runs/{run_id}", VIEWER_ROLES, answers=responses.RunResponse)
def show_run(
    run_id: RunId,
    context: Context,
    at: Annotated[
        int | None,
        Query(ge=1, le=2**53, description="As it stood after the event with this `seq`"),
    ] = None,
) -> JsonAnswer:
    """A run with all its tasks; with `at` as it was once, told by its events."""
    queries = context.service.queries
    return JsonAnswer(queries.run(run_id) if at is None else queries.past_run(run_id, at))


@table.route("GET", "/runs/{run_id}/why", VIEWER_ROLES, answers=responses.WhyResponse)
def explain_run(run_id: RunId, context: Context) -> JsonAnswer:
    """Why it stands where it stands, and what would change that."""
    return JsonAnswer(context.service.why(run_id))


def _add_steering_route(verb: str, said: str) -> None:
    def act(run_id: RunId, context: Context, *, dry_run: DryRun = False) -> JsonAnswer:
        return JsonAnswer(context.steer(verb, run_id, dry_run=dry_run))

    act.__doc__ = said
    table.route(
        "POST", f"/runs/{{run_id}}/{verb}", OPERATOR_ROLES, answers=responses.SteeringResponse
    )(act)


_add_steering_route("cancel", "End a run and every open task of it, for good.")
_add_steering_route("pause", "Let what runs finish, and start nothing new.")


@table.route("POST", "/runs/{run_id}/resume", OPERATOR_ROLES, answers=responses.SteeringResponse)
def resume_run(
    run_id: RunId,
    context: Context,
    *,
    dry_run: DryRun = False,
    body: request_bodies.ResumeRunBody | None = None,
) -> JsonAnswer:
    """Go on after a pause; what is added raises the budget."""
    added = body.without_nulls() if body else {}
    return JsonAnswer(context.steer("resume", run_id, dry_run=dry_run, **added))


@table.route("POST", "/runs/{run_id}/retry", OPERATOR_ROLES, answers=responses.SteeringResponse)
def retry_run(
    run_id: RunId,
    context: Context,
    *,
    dry_run: DryRun = False,
    body: request_bodies.RetryRunBody | None = None,
) -> JsonAnswer:
    """Try again what failed or was cancelled, or a step and all that needs it."""
    step = body.step if body else None
    return JsonAnswer(context.steer("retry", run_id, dry_run=dry_run, step=step))


@table.route("POST", "/runs/{run_id}/signals", OPERATOR_ROLES, answers=responses.SignalResponse)
def signal_run(run_id: RunId, body: request_bodies.SignalBody, context: Context) -> JsonAnswer:
    """Send what a step waits for; it is kept until it is taken, once."""
    return JsonAnswer(context.service.commands.signal(run_id, body.name, body.payload, body.key))
