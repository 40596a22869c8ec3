"""Claim routes: the worker's protocol, in which every report carries the token of its attempt."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import partial

from fastapi import Request

from holdfast.errors import InvalidInput
from holdfast.model.effect import WakeCondition
from holdfast.model.task import Assignment, Completion, Renewal
from holdfast.model.workflow.line import Draft, NewHead
from holdfast.server.exception_handlers import JsonAnswer, Problem
from holdfast.server.long_polls import (
    REVOKED,
    AsgiCall,
    give_back_on_error,
    is_gone,
    wait_for_end,
    wait_for_work,
)
from holdfast.server.request_context import Context, RequestContext, TaskId, in_thread
from holdfast.server.route_table import WORKER_ROLES, RouteTable
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.request_errors import rename_fields
from holdfast.service.commands.task_fields import read_moment
from holdfast.service.protocol.long_polls import ClaimOptions
from holdfast.service.protocol.protocol import ClaimTerms, make_request_key, view_assignment
from holdfast.service.queries.views import View, without_nulls

table = RouteTable(tag="claims")
DEFAULT_LEASE = 30.0
# The most tasks that one audit entry names.
MAX_NAMED = 8
_rename_note_fields = partial(rename_fields, name="note.name", value="note.value")


@table.route("POST", "/claims", WORKER_ROLES, answers=responses.ClaimResponse)
async def claim(body: request_bodies.ClaimBody, request: Request, context: Context) -> JsonAnswer:
    """Lease ready tasks, or wait for some; the same `request_id` gives the same again."""
    offer = _read_terms(body, context)
    told = context.server_state.remote_presence.note_claim(offer, body.max or 1)
    known = None
    if body.request_id is not None:
        known = make_request_key(context.access.name, body.worker, body.request_id)
    call = (request.scope, request.receive)
    if body.task_id is not None:
        named = body.task_id
        context.note(body.worker, named)
        with rename_fields(lease="lease_seconds"):
            found = await in_thread(
                lambda: context.service.protocol.claim_by_id(offer, named, known)
            )
    elif told is not None and known is None:
        return JsonAnswer(without_nulls(assignments=[], told=told))
    else:
        ask_for = ClaimOptions(
            most=body.max or 1,
            request=known,
            passing=tuple(body.passing or ()),
            # A remote worker of Holdfast runs a task that names neither a function nor a program
            # only for an agent that it has a command for.
            bare=not body.whole,
            equipped=tuple(body.equipped or ()),
        )
        found = await _claim_or_wait(context, offer, ask_for, (body.wait_seconds or 0.0, call))
        if found:
            context.note(body.worker, *(each.task_id for each in found[:MAX_NAMED]))
        else:
            context.leave_out_of_audit()
    with give_back_on_error(context.async_service, found, kept=known is not None):
        assignments = await _view_assignments(
            context, found, whole=bool(body.whole and body.task_id is None)
        )
        gone = bool(found) and known is None and await is_gone(call)
    if gone:
        context.async_service.release_unheard(found)
    return JsonAnswer(without_nulls(assignments=assignments, told=told))


def _read_terms(body: request_bodies.ClaimBody, context: RequestContext) -> ClaimTerms:
    return ClaimTerms(
        worker=body.worker,
        agents=context.service.token_scope.choose_agents(body.agents),
        tags=body.tags or (),
        equipped=body.equipped or () if body.whole else None,
        lease=DEFAULT_LEASE if body.lease_seconds is None else body.lease_seconds,
        process=body.process,
        token=context.access.name,
    )


async def _claim_or_wait(
    context: RequestContext, offer: ClaimTerms, ask_for: ClaimOptions, waits: tuple[float, AsgiCall]
) -> list[Assignment]:
    """What is ready, or becomes ready while the call waits."""
    with rename_fields(lease="lease_seconds"):
        found = await context.async_service.claim(offer, ask_for)
    seconds, call = waits
    if found or not seconds or context.server_state.closing:
        return found
    waiter = context.server_state.long_polls.make_long_poll(offer, ask_for)
    waited = await wait_for_work(context.server_state, waiter, seconds, call)
    if waited is None:
        raise Problem(401, "unauthorized", REVOKED)
    return waited


async def _view_assignments(
    context: RequestContext, found: Sequence[Assignment], *, whole: bool
) -> list[View]:
    if whole and found:
        return await in_thread(context.service.protocol.view_whole_assignments, found)
    return [view_assignment(each) for each in found]


@table.route("POST", "/claims/renew", WORKER_ROLES, answers=responses.RenewResponse)
def renew(body: request_bodies.RenewBody, context: Context) -> JsonAnswer:
    """Keep leases, each for itself; one that is refused ends. Who keeps none is there too."""
    renewals = [
        Renewal(task_id=each.task_id, token=each.token, progress=each.progress, usage=each.usage)
        for each in body.leases
    ]
    told = None
    if body.worker is not None:
        told = context.server_state.remote_presence.note_renewal(
            body.worker, body.process, token=context.access.name
        )
    context.leave_out_of_audit()
    with rename_fields(lease="lease_seconds"):
        kept = context.service.protocol.renew_many(renewals, body.lease_seconds)
    _count_refused(context, kept["leases"])
    return JsonAnswer(kept | without_nulls(told=told))


@table.route("POST", "/claims/watch", WORKER_ROLES, answers=responses.WatchResponse)
async def watch(body: request_bodies.WatchBody, request: Request, context: Context) -> JsonAnswer:
    """Wait until an attempt is over, by a cancel, a lost lease or a report; tells all that are."""
    context.leave_out_of_audit()
    leases = [(each.task_id, each.token) for each in body.leases]
    attempts = await in_thread(context.service.protocol.read_attempts, leases)
    seconds = 0.0 if context.server_state.closing else body.wait_seconds or 0.0
    call = (request.scope, request.receive)
    over = await wait_for_end(context.server_state, attempts, seconds, call)
    if over is None:
        raise Problem(401, "unauthorized", REVOKED)
    return JsonAnswer({"ended": sorted({task_id for task_id, _ in over})})


@table.route("POST", "/claims/leave", WORKER_ROLES, answers=responses.ChangeResponse)
def leave(body: request_bodies.LeaveBody, context: Context) -> JsonAnswer:
    """Say that a worker is gone: it is listed no more. What it holds, it gives back before."""
    context.note(body.worker)
    known = context.server_state.remote_presence.forget_worker(
        body.worker, body.process, token=context.access.name
    )
    return JsonAnswer({"ok": True, "repeated": not known})


@table.route("POST", "/claims/complete", WORKER_ROLES, answers=responses.CompleteManyResponse)
def complete_many(body: request_bodies.CompleteManyBody, context: Context) -> JsonAnswer:
    """Report many results at once; each is told what became of it."""
    results = [_read_result(each.task_id, each) for each in body.results]
    told = context.service.protocol.complete_many(results)
    _count_refused(context, told["results"])
    return JsonAnswer(told)


def _read_result(task_id: str, body: request_bodies.CompleteBody) -> Completion:
    commit = None if body.commit is None else NewHead(**body.commit.model_dump())
    return Completion(
        task_id=task_id, token=body.token, output=body.output, usage=body.usage, commit=commit
    )


def _read_draft(body: request_bodies.DraftBody | None) -> Draft | None:
    return None if body is None else Draft(base=body.base, sha=body.sha)


def _count_refused(context: RequestContext, told: Sequence[View]) -> None:
    """Keep what was refused among others that were not, as what is refused alone is."""
    context.server_state.refused.update(str(each["reason"]) for each in told if not each["ok"])


@table.route("POST", "/claims/{task_id}/complete", WORKER_ROLES, answers=responses.ChangeResponse)
async def complete(
    task_id: TaskId, body: request_bodies.CompleteBody, context: Context
) -> JsonAnswer:
    """Report the result; the same again is a success, another is refused."""
    result = _read_result(task_id, body)
    return JsonAnswer(await context.async_service.complete(result))


@table.route("POST", "/claims/{task_id}/fail", WORKER_ROLES, answers=responses.ChangeResponse)
def fail(task_id: TaskId, body: request_bodies.FailBody, context: Context) -> JsonAnswer:
    """Report a failure, which is tried again while the budget lasts; a usage limit costs none."""
    protocol = context.service.protocol
    if body.limit_until is not None:
        until = read_moment(body.limit_until)
        with rename_fields(until="limit_until"):
            draft = _read_draft(body.draft)
            return JsonAnswer(protocol.reach_limit(task_id, body.token, until, body.usage, draft))
    told = protocol.fail(
        task_id,
        body.token,
        body.error,
        retryable=body.retryable is not False,
        usage=body.usage,
        left=_read_draft(body.left),
        anew=body.anew is True,
    )
    return JsonAnswer(told)


@table.route("POST", "/claims/{task_id}/release", WORKER_ROLES, answers=responses.ChangeResponse)
def release(task_id: TaskId, body: request_bodies.ReleaseBody, context: Context) -> JsonAnswer:
    """Give a task back: now, or until a time or a signal, if both the first; it costs nothing."""
    protocol = context.service.protocol
    until, notes, draft = read_moment(body.until), _list_notes(body.note), _read_draft(body.draft)
    if body.wait_for is not None:
        wait = WakeCondition(until=until, signals=(body.wait_for,))
        with _rename_note_fields(signal="wait_for"):
            return JsonAnswer(protocol.wait_for(task_id, body.token, wait, notes, draft))
    if body.note is None:
        return JsonAnswer(protocol.release(task_id, body.token, until, draft=draft))
    wait = WakeCondition(until=until)
    with _rename_note_fields():
        return JsonAnswer(protocol.suspend(task_id, body.token, wait, notes, draft))


@table.route("POST", "/claims/{task_id}/ask", WORKER_ROLES, answers=responses.ChangeResponse)
def ask(task_id: TaskId, body: request_bodies.AskBody, context: Context) -> JsonAnswer:
    """Give a task back until somebody answers."""
    notes, draft = _list_notes(body.note), _read_draft(body.draft)
    protocol = context.service.protocol
    with _rename_note_fields():
        return JsonAnswer(protocol.ask(task_id, body.token, body.question, notes, draft))


def _list_notes(body: request_bodies.EffectNoteBody | None) -> list[tuple[str, object]]:
    return [] if body is None else [(body.name, body.value)]


@table.route("POST", "/claims/lines", WORKER_ROLES, answers=responses.HostLinesResponse)
def lines_of_host(body: request_bodies.HostLinesBody, context: Context) -> JsonAnswer:
    """List the lines of commits of runs in the repositories of a host, whose branches it moves."""
    context.leave_out_of_audit()
    return JsonAnswer(context.service.protocol.lines_of_host(body.host))


@table.route("POST", "/claims/{task_id}/line", WORKER_ROLES, answers=responses.OpenedLineResponse)
def open_line(task_id: TaskId, body: request_bodies.OpenLineBody, context: Context) -> JsonAnswer:
    """Open the line of commits of a task; without a `line` in the answer, give it a `base`."""
    protocol = context.service.protocol
    told = protocol.open_line(task_id, body.token, body.base, body.repository, body.host)
    return JsonAnswer(told)


@table.route("POST", "/claims/{task_id}/aside", WORKER_ROLES, answers=responses.ChangeResponse)
def keep_aside(task_id: TaskId, body: request_bodies.KeepAsideBody, context: Context) -> JsonAnswer:
    """Record the commit of what a former attempt of the task left, once."""
    left = Draft(base=body.base, sha=body.sha)
    protocol = context.service.protocol
    return JsonAnswer(protocol.keep_aside(task_id, body.token, body.attempt, left))


@table.route("POST", "/claims/{task_id}/stop", WORKER_ROLES, answers=responses.ChangeResponse)
def note_stop(task_id: TaskId, body: request_bodies.NoteStopBody, context: Context) -> JsonAnswer:
    """Say that nothing of an attempt runs any more, whatever became of the attempt."""
    protocol = context.service.protocol
    return JsonAnswer(protocol.note_stop(task_id, body.token, ended=body.ended, left=body.left))


@table.route("POST", "/claims/{task_id}/guard", WORKER_ROLES, answers=responses.ChangeResponse)
def guard(task_id: TaskId, body: request_bodies.AttemptBody, context: Context) -> JsonAnswer:
    """Ask, before a side effect, whether the attempt may still act."""
    context.leave_out_of_audit()
    return JsonAnswer(context.service.protocol.guard(task_id, body.token))


@table.route("POST", "/claims/{task_id}/logs", WORKER_ROLES, answers=responses.LogWriteResponse)
def write_log(task_id: TaskId, body: request_bodies.LogBody, context: Context) -> JsonAnswer:
    """Add to the log of the attempt."""
    context.leave_out_of_audit()
    chunk = body.chunk.encode(errors="replace")
    return JsonAnswer(
        {"ok": True, "bytes": context.service.protocol.log(task_id, body.token, chunk)}
    )


@table.route(
    "POST", "/claims/{task_id}/effects", WORKER_ROLES, answers=responses.EffectOrPageResponse
)
def effect(task_id: TaskId, body: request_bodies.EffectBody, context: Context) -> JsonAnswer:
    """Remember what a side effect gave, the first under a name; without one, tell a page of all.

    With the first page comes what the signals said that it was given back for, by name.
    """
    protocol = context.service.protocol
    if body.name is None:
        return JsonAnswer(protocol.effects(task_id, body.token, body.after, body.limit))
    return JsonAnswer(protocol.record_effect(task_id, body.token, body.name, body.value))


@table.route(
    "POST", "/claims/{task_id}/artifacts", WORKER_ROLES, answers=responses.ArtifactResponse
)
def artifact(task_id: TaskId, body: request_bodies.ArtifactBody, context: Context) -> JsonAnswer:
    """Keep a file of the attempt, under a name of its own."""
    content = body.content.encode(errors="replace")
    if body.encoding == "base64":
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise InvalidInput("content", f"is no base64: {error}") from error
    protocol = context.service.protocol
    return JsonAnswer(protocol.keep_artifact(task_id, body.token, body.name, content))


@table.route(
    "POST",
    "/claims/{task_id}/children",
    WORKER_ROLES,
    answers=responses.SpawnResponse,
    status=201,
    also={200: {"description": "They were made before", "model": responses.SpawnResponse}},
)
def spawn(task_id: TaskId, body: request_bodies.SpawnChildrenBody, context: Context) -> JsonAnswer:
    """Make children of the running task, once under one name; answers them, and their ids.

    They are for the agent of that task, unless they name another. With a token of the role worker
    they name no function (`step`), and no agent that the token is not for.
    """
    wanted = [each.without_nulls() for each in body.tasks]
    name = body.name or "children"
    told = context.service.protocol.spawn(task_id, body.token, wanted, name)
    return JsonAnswer(told, 200 if told["repeated"] else 201)
