"""Runs over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.model.units import parse_duration
from holdfast.server.problems import Answer
from holdfast.server.request_context import After, AsksAs, Limit, RunId
from holdfast.server.route_table import LOOKERS, STEERERS, Table
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.commands import Commands
from holdfast.service.queries.views import View

table = Table(tag="runs")


@table.route(
    "POST",
    "/runs",
    STEERERS,
    answers=responses.Run,
    status=201,
    also={200: {"description": "The same key and body again", "model": responses.Run}},
)
def start_run(body: request_bodies.StartRunBody, asks: AsksAs) -> Answer:
    """Start a run; the same key with the same body gives back the existing one."""
    within = None if body.deadline is None else parse_duration("deadline", body.deadline)
    more = {"key": body.key, "priority": body.priority or 0, "deadline": within}
    told = asks.service.commands.start_by_name(
        body.workflow, body.input, version=body.version, **more
    )
    asks.note(told["id"], body.workflow)
    return Answer(told, 201 if told["created"] else 200)


@table.route("GET", "/runs", LOOKERS, answers=responses.Runs)
def list_runs(
    asks: AsksAs,
    limit: Limit = 100,
    after: After = None,
    status: str | None = None,
    workflow: str | None = None,
) -> Answer:
    """Runs, newest first."""
    return Answer(
        asks.service.queries.runs(limit=limit, after=after, status=status, workflow=workflow)
    )


@table.route("GET", "/runs/{run_id}", LOOKERS, answers=responses.Run)
def show_run(run_id: RunId, asks: AsksAs) -> Answer:
    """A run with all its tasks."""
    return Answer(asks.service.queries.run(run_id))


@table.route("GET", "/runs/{run_id}/why", LOOKERS, answers=responses.Why)
def explain_run(run_id: RunId, asks: AsksAs) -> Answer:
    """Why it stands where it stands, and what would change that."""
    return Answer(asks.service.why(run_id))


def _steer(verb: str, change: Callable[[Commands, str], View], said: str) -> None:
    def act(run_id: RunId, asks: AsksAs) -> Answer:
        return Answer(change(asks.service.commands, run_id))

    act.__doc__ = said
    table.route("POST", f"/runs/{{run_id}}/{verb}", STEERERS, answers=responses.Changed)(act)


_steer("cancel", Commands.cancel, "End a run and every open task of it, for good.")
_steer("pause", Commands.pause, "Let what runs finish, and start nothing new.")


@table.route("POST", "/runs/{run_id}/resume", STEERERS, answers=responses.Changed)
def resume_run(
    run_id: RunId, asks: AsksAs, body: request_bodies.ResumeRunBody | None = None
) -> Answer:
    """Go on after a pause; what is added raises the budget."""
    return Answer(asks.service.commands.resume(run_id, **(body.without_nulls() if body else {})))


@table.route("POST", "/runs/{run_id}/retry", STEERERS, answers=responses.Changed)
def retry_run(
    run_id: RunId, asks: AsksAs, body: request_bodies.RetryRunBody | None = None
) -> Answer:
    """Try again what failed or was cancelled, or a step and all that needs it."""
    return Answer(asks.service.commands.retry(run_id, step=body.step if body else None))


@table.route("POST", "/runs/{run_id}/signals", STEERERS, answers=responses.Signalled)
def signal_run(run_id: RunId, body: request_bodies.SignalBody, asks: AsksAs) -> Answer:
    """Send what a step waits for; it is kept until it is taken, once."""
    return Answer(asks.service.commands.signal(run_id, body.name, body.payload, body.key))
