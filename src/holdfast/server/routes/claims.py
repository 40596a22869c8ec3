"""The worker's protocol over HTTP: every report carries the token of its attempt."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import partial

from fastapi import Request

from holdfast.errors import InvalidInput
from holdfast.model.effect import WakeCondition
from holdfast.model.task import Assignment, Completion, Renewal
from holdfast.server.long_polls import (
    GONE,
    Call,
    given_back_unless_told,
    is_gone,
    wait_for_work,
)
from holdfast.server.problems import Answer, Problem
from holdfast.server.request_context import AsksAs, Door, TaskId, in_thread
from holdfast.server.route_table import WORKERS, Table
from holdfast.server.schemas import responses
from holdfast.service.commands import request_bodies
from holdfast.service.commands.request_errors import rename_fields
from holdfast.service.commands.task_fields import read_moment
from holdfast.service.protocol.long_polls import ClaimOptions
from holdfast.service.protocol.protocol import ClaimTerms, make_request_key, view_assignment
from holdfast.service.queries.views import View, without_nulls

table = Table(tag="claims")
LEASE = 30.0
# Of many, as many are named in the audit.
SHOWN = 8
_NOTED = partial(rename_fields, name="note.name", value="note.value")


@table.route("POST", "/claims", WORKERS, answers=responses.Assignments)
async def claim(body: request_bodies.ClaimBody, request: Request, asks: AsksAs) -> Answer:
    """Lease ready tasks, or wait for some; the same `request_id` gives the same again."""
    offer = _offer(body, asks)
    told = asks.serving.visitors.note_claim(offer, body.max or 1)
    known = None
    if body.request_id is not None:
        known = make_request_key(asks.access.name, body.worker, body.request_id)
    call = (request.scope, request.receive)
    if body.task_id is not None:
        named = body.task_id
        asks.note(body.worker, named)
        with rename_fields(lease="lease_seconds"):
            found = await in_thread(lambda: asks.service.protocol.claim_by_id(offer, named, known))
    elif told is not None and known is None:
        return Answer(without_nulls(assignments=[], told=told))
    else:
        ask_for = ClaimOptions(
            most=body.max or 1,
            request=known,
            passing=tuple(body.passing or ()),
            # Holdfast's own workers elsewhere have no functions, and run none that is not named.
            bare=not body.whole,
        )
        found = await _take(asks, offer, ask_for, (body.wait_seconds or 0.0, call))
        if found:
            asks.note(body.worker, *(each.task_id for each in found[:SHOWN]))
        else:
            asks.changed_nothing()
    with given_back_unless_told(asks.swift, found, kept=known is not None):
        assignments = await _tell(asks, found, whole=bool(body.whole and body.task_id is None))
        gone = bool(found) and known is None and await is_gone(call)
    if gone:
        asks.swift.release_unheard(found)
    return Answer(without_nulls(assignments=assignments, told=told))


def _offer(body: request_bodies.ClaimBody, asks: Door) -> ClaimTerms:
    return ClaimTerms(
        worker=body.worker,
        agents=asks.service.token_scope.choose_agents(body.agents),
        tags=body.tags or (),
        lease=LEASE if body.lease_seconds is None else body.lease_seconds,
        process=body.process,
        token=asks.access.name,
    )


async def _take(
    asks: Door, offer: ClaimTerms, ask_for: ClaimOptions, waits: tuple[float, Call]
) -> list[Assignment]:
    """What is ready, or becomes ready while the call waits."""
    with rename_fields(lease="lease_seconds"):
        found = await asks.swift.claim(offer, ask_for)
    seconds, call = waits
    if found or not seconds or asks.serving.closing:
        return found
    waiter = asks.serving.room.make_long_poll(offer, ask_for)
    waited = await wait_for_work(asks.serving, waiter, seconds, call)
    if waited is None:
        raise Problem(401, "unauthorized", GONE)
    return waited


async def _tell(asks: Door, found: Sequence[Assignment], *, whole: bool) -> list[View]:
    if whole and found:
        return await in_thread(asks.service.protocol.view_whole_assignments, found)
    return [view_assignment(each) for each in found]


@table.route("POST", "/claims/renew", WORKERS, answers=responses.Leases)
def renew(body: request_bodies.RenewBody, asks: AsksAs) -> Answer:
    """Keep leases, each for itself; one that is refused ends. Who keeps none is there too."""
    renewals = [
        Renewal(task_id=each.task_id, token=each.token, progress=each.progress, usage=each.usage)
        for each in body.leases
    ]
    told = None
    if body.worker is not None:
        told = asks.serving.visitors.note_renewal(body.worker, body.process, token=asks.access.name)
    asks.changed_nothing()
    with rename_fields(lease="lease_seconds"):
        kept = asks.service.protocol.renew_many(renewals, body.lease_seconds)
    _count(asks, kept["leases"])
    return Answer(kept | without_nulls(told=told))


@table.route("POST", "/claims/leave", WORKERS, answers=responses.Changed)
def leave(body: request_bodies.LeaveBody, asks: AsksAs) -> Answer:
    """Say that a worker is gone: it is listed no more. What it holds, it gives back before."""
    asks.note(body.worker)
    known = asks.serving.visitors.forget_worker(body.worker, body.process, token=asks.access.name)
    return Answer({"ok": True, "repeated": not known})


@table.route("POST", "/claims/complete", WORKERS, answers=responses.Results)
def complete_many(body: request_bodies.CompleteManyBody, asks: AsksAs) -> Answer:
    """Report many results at once; each is told what became of it."""
    results = [
        Completion(task_id=each.task_id, token=each.token, output=each.output, usage=each.usage)
        for each in body.results
    ]
    told = asks.service.protocol.complete_many(results)
    _count(asks, told["results"])
    return Answer(told)


def _count(asks: Door, told: Sequence[View]) -> None:
    """Keep what was refused among others that were not, as what is refused alone is."""
    asks.serving.refused.update(str(each["reason"]) for each in told if not each["ok"])


@table.route("POST", "/claims/{task_id}/complete", WORKERS, answers=responses.Changed)
async def complete(task_id: TaskId, body: request_bodies.CompleteBody, asks: AsksAs) -> Answer:
    """Report the result; the same again is a success, another is refused."""
    result = Completion(task_id=task_id, token=body.token, output=body.output, usage=body.usage)
    return Answer(await asks.swift.complete(result))


@table.route("POST", "/claims/{task_id}/fail", WORKERS, answers=responses.Changed)
def fail(task_id: TaskId, body: request_bodies.FailBody, asks: AsksAs) -> Answer:
    """Report a failure, which is tried again while the budget lasts; a usage limit costs none."""
    protocol = asks.service.protocol
    if body.limit_until is not None:
        until = read_moment(body.limit_until)
        with rename_fields(until="limit_until"):
            return Answer(protocol.reach_limit(task_id, body.token, until, body.usage))
    again = body.retryable is not False
    told = protocol.fail(task_id, body.token, body.error, retryable=again, usage=body.usage)
    return Answer(told)


@table.route("POST", "/claims/{task_id}/release", WORKERS, answers=responses.Changed)
def release(task_id: TaskId, body: request_bodies.ReleaseBody, asks: AsksAs) -> Answer:
    """Give a task back: now, or until a time or a signal, if both the first; it costs nothing."""
    protocol = asks.service.protocol
    until, notes = read_moment(body.until), _notes(body.note)
    if body.wait_for is not None:
        wait = WakeCondition(until=until, signals=(body.wait_for,))
        with _NOTED(signal="wait_for"):
            return Answer(protocol.wait_for(task_id, body.token, wait, notes))
    if body.note is None:
        return Answer(protocol.release(task_id, body.token, until))
    with _NOTED():
        return Answer(protocol.suspend(task_id, body.token, WakeCondition(until=until), notes))


@table.route("POST", "/claims/{task_id}/ask", WORKERS, answers=responses.Changed)
def ask(task_id: TaskId, body: request_bodies.AskBody, asks: AsksAs) -> Answer:
    """Give a task back until somebody answers."""
    notes = _notes(body.note)
    with _NOTED():
        return Answer(asks.service.protocol.ask(task_id, body.token, body.question, notes))


def _notes(body: request_bodies.EffectNoteBody | None) -> list[tuple[str, object]]:
    return [] if body is None else [(body.name, body.value)]


@table.route("POST", "/claims/{task_id}/stop", WORKERS, answers=responses.Changed)
def note_stop(task_id: TaskId, body: request_bodies.NoteStopBody, asks: AsksAs) -> Answer:
    """Say that nothing of an attempt runs any more, whatever became of the attempt."""
    protocol = asks.service.protocol
    return Answer(protocol.note_stop(task_id, body.token, ended=body.ended, left=body.left))


@table.route("POST", "/claims/{task_id}/guard", WORKERS, answers=responses.Changed)
def guard(task_id: TaskId, body: request_bodies.AttemptBody, asks: AsksAs) -> Answer:
    """Ask, before a side effect, whether the attempt may still act."""
    asks.changed_nothing()
    return Answer(asks.service.protocol.guard(task_id, body.token))


@table.route("POST", "/claims/{task_id}/logs", WORKERS, answers=responses.Written)
def write_log(task_id: TaskId, body: request_bodies.LogBody, asks: AsksAs) -> Answer:
    """Add to the log of the attempt."""
    chunk = body.chunk.encode(errors="replace")
    return Answer({"ok": True, "bytes": asks.service.protocol.log(task_id, body.token, chunk)})


@table.route("POST", "/claims/{task_id}/effects", WORKERS, answers=responses.Recalled)
def effect(task_id: TaskId, body: request_bodies.EffectBody, asks: AsksAs) -> Answer:
    """Remember what a side effect gave, the first under a name; without one, tell a page of all.

    With the first page comes what the signals said that it was given back for, by name.
    """
    protocol = asks.service.protocol
    if body.name is None:
        return Answer(protocol.effects(task_id, body.token, body.after, body.limit))
    return Answer(protocol.record_effect(task_id, body.token, body.name, body.value))


@table.route("POST", "/claims/{task_id}/artifacts", WORKERS, answers=responses.File)
def artifact(task_id: TaskId, body: request_bodies.ArtifactBody, asks: AsksAs) -> Answer:
    """Keep a file of the attempt, under a name of its own."""
    content = body.content.encode(errors="replace")
    if body.encoding == "base64":
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise InvalidInput("content", f"is no base64: {error}") from error
    protocol = asks.service.protocol
    return Answer(protocol.keep_artifact(task_id, body.token, body.name, content))


@table.route(
    "POST",
    "/claims/{task_id}/children",
    WORKERS,
    answers=responses.Spawned,
    status=201,
    also={200: {"description": "They were made before", "model": responses.Spawned}},
)
def spawn(task_id: TaskId, body: request_bodies.SpawnChildrenBody, asks: AsksAs) -> Answer:
    """Make children of the running task, once under one name; answers them, and their ids.

    They are for the agent of that task, unless they name another. With a token of the role worker
    they name no function (`step`), and no agent that the token is not for.
    """
    wanted = [each.without_nulls() for each in body.tasks]
    name = body.name or "children"
    told = asks.service.protocol.spawn(task_id, body.token, wanted, name)
    return Answer(told, 200 if told["repeated"] else 201)
