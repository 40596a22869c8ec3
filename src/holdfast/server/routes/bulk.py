"""Bulk routes: one command for all runs that fit some filters, and how far it has come."""

from __future__ import annotations

from holdfast.model.filters import RunFilters
from holdfast.model.labels import clean_labels
from holdfast.server.exception_handlers import JsonAnswer, too_many_requests
from holdfast.server.request_context import Context, DryRun, RequestContext
from holdfast.server.route_table import OPERATOR_ROLES, VIEWER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.bulk_changes import VERBS, BulkChange, BulkVerb
from holdfast.service.commands.task_fields import read_moment

table = RouteTable(tag="bulk")
_SAID = {
    "cancel": "End all running runs that fit, and every open task of them, for good.",
    "retry": "Try again what failed or was cancelled in all failed runs that fit.",
    "pause": "Let what runs finish in all running runs that fit, and start nothing new.",
    "resume": "Let all paused runs that fit go on.",
}


def _add_bulk_route(verb: BulkVerb) -> None:
    def act(
        body: request_bodies.BulkBody, context: Context, *, dry_run: DryRun = False
    ) -> JsonAnswer:
        filters = _read_filters(body)
        everything = body.all is True
        if dry_run:
            context.leave_out_of_audit()
            return JsonAnswer(context.service.bulk.preview(verb, filters, everything=everything))
        change = context.service.bulk.prepare(verb, filters, everything=everything)
        return _begin(context, change)

    act.__doc__ = _SAID[verb]
    table.route(
        "POST",
        f"/runs/{verb}",
        OPERATOR_ROLES,
        answers=responses.BulkResponse,
        status=202,
        also={200: {"description": "The preview", "model": responses.BulkPreviewResponse}},
    )(act)


def _begin(context: RequestContext, change: BulkChange) -> JsonAnswer:
    """Have a change carried out in a thread of the server; the answer is how it begins."""
    told = change.view()
    if not context.server_state.bulk_changes.add(change):
        said = "other bulk changes go on, and no more may at once; GET /bulk lists them"
        raise too_many_requests(said, 1)
    context.note(change.id, f"{change.matched} runs", told["filters"])
    context.server_state.threads.submit(change.carry_out)
    return JsonAnswer(told, 202)


def _read_filters(body: request_bodies.BulkBody) -> RunFilters:
    return RunFilters(
        status=body.status,
        workflow=body.workflow,
        step=body.step,
        agent=body.agent,
        key=body.key,
        labels=None if body.labels is None else clean_labels("labels", body.labels),
        since=read_moment(body.since),
        until=read_moment(body.until),
        error=body.error,
        name=body.name,
        held=body.held,
    )


for _verb in VERBS:
    _add_bulk_route(_verb)


@table.route("GET", "/bulk", VIEWER_ROLES, answers=responses.BulkPageResponse)
def list_bulk_changes(context: Context) -> JsonAnswer:
    """The bulk changes that this server was asked for, the newest first."""
    return JsonAnswer({"items": context.server_state.bulk_changes.list()})


@table.route("GET", "/bulk/{bulk_id}", VIEWER_ROLES, answers=responses.BulkResponse)
def show_bulk_change(bulk_id: str, context: Context) -> JsonAnswer:
    """How far a bulk change has come."""
    return JsonAnswer(context.server_state.bulk_changes.get(bulk_id).view())


@table.route("POST", "/bulk/{bulk_id}/stop", OPERATOR_ROLES, answers=responses.BulkResponse)
def stop_bulk_change(bulk_id: str, context: Context) -> JsonAnswer:
    """Have a bulk change end after the runs that it changes now; what it has changed stays so."""
    change = context.server_state.bulk_changes.get(bulk_id)
    change.stop()
    return JsonAnswer(change.view())
