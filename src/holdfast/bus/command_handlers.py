"""The engine's handlers of messages: commands, results, and claims by those who have only the bus.

Each message takes effect once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from holdfast.bus.envelope import Envelope
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.handler import Handler, Park
from holdfast.bus.offers import CLAIMED_AT_ONCE
from holdfast.bus.replies import MessageReply, Replies, make_report_reply, require_reply_to
from holdfast.engine.core.sync_async import map_future
from holdfast.engine.engine import Engine, EngineOwner, engine_of
from holdfast.engine.state.expected_version import VersionedCommand
from holdfast.engine.writer.caller_transaction import JoinedTransaction
from holdfast.errors import InvalidInput, KeyConflict, NotFound
from holdfast.model.moment import describe_moment
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import NewRun
from holdfast.model.task import Assignment, Renewal
from holdfast.model.text import clean_key, digest
from holdfast.model.workflow.graph import Workflow, read_workflow

logger = logging.getLogger(__name__)

ACTOR = "bus"
CLAIM, CLAIMED, REFUSED = "task.claim", "task.claimed", "task.refused"

Payload = Mapping[str, Any]
CommandFunction = Callable[[JoinedTransaction, str, Payload], TransitionResult]
ReportFunction = Callable[[JoinedTransaction, str, Payload], Future[TransitionResult]]
T = TypeVar("T")


def command_handler(store: EngineOwner) -> Handler:
    """The handler for `workflow.commands`: starts, cancels, retries, decisions, signals."""
    engine = engine_of(store)
    commands = {**_RUN_COMMANDS, **_TASK_COMMANDS}

    def handle(envelope: Envelope, connection: object, *, patient: bool = True) -> None:
        if envelope.type == "run.start":
            _start_runs(engine, [envelope], connection)
        elif _is_expected(engine, envelope, connection, patient=patient):
            _carry_out_command(engine, commands, envelope, connection)

    def start(envelopes: Sequence[Envelope], connection: object) -> None:
        _start_runs(engine, envelopes, connection)

    return Handler(
        name="commands",
        handle=_park_refused(handle),
        handle_all=_park_refused(start),
        types=frozenset({"run.start", *commands}),
        steers=True,
        at_last=_park_refused(partial(handle, patient=False)),
        # New runs have nothing in common and start together; other commands go one by one.
        apart=lambda envelope: envelope.message_id if envelope.type == "run.start" else None,
    )


def result_handler(store: EngineOwner, bus: RedisBus | None = None) -> Handler:
    """The handler for `agent.results`: reports of attempts, each fenced by its attempt's token.

    With a `bus`, senders that name a `reply_to` get a reply there.
    """
    engine = engine_of(store)
    replies = None if bus is None else Replies(engine, bus)

    def handle(envelopes: Sequence[Envelope], connection: object) -> object:
        about = [_require_id(each, "task_id") for each in envelopes]
        with engine.join_group(connection) as joined:
            answers = [
                _REPORTS[each.type](joined, task_id, _read_payload(each))
                for each, task_id in zip(envelopes, about, strict=True)
            ]
        for each, task_id, answer in zip(envelopes, about, answers, strict=True):
            _check_result(each, task_id, answer.result())
        told = zip(envelopes, answers, strict=True)
        return replies and replies.reply_after_commit(
            [make_report_reply(each, one.result()) for each, one in told]
        )

    return Handler(
        name="results",
        handle_all=_park_refused(handle),
        types=frozenset(_REPORTS),
        steers=True,
        apart=lambda envelope: envelope.task_id,
    )


class EarlyCommand(Exception):
    """A command expects a version of its run or task that has not come yet: it is tried again."""


def _is_expected(engine: Engine, envelope: Envelope, connection: object, *, patient: bool) -> bool:
    """Whether a command expects the current version; the row is locked until the commit."""
    expected = _read_payload(envelope).get("expected_version")
    target = _find_target(envelope)
    if expected is None or target is None:
        return True
    meant = VersionedCommand(
        name=envelope.type,
        expected_version=expected,
        actor=ACTOR,
        message_id=envelope.message_id,
        patient=patient,
    )
    found = engine.join(connection).expectations.check(target, meant)
    if found.early and patient:
        message = f"{target} is at version {found.version}, and {envelope.type} is for {expected}"
        raise EarlyCommand(message)
    if not found.met:
        logger.info("%s %s was refused: version_conflict", envelope.type, envelope.message_id)
    return found.met


def _find_target(envelope: Envelope) -> str | None:
    return envelope.task_id if envelope.type in _TASK_COMMANDS else envelope.run_id


def _park_refused(handle: Callable[[T, object], object]) -> Callable[[T, object], object]:
    """Park a message that can never be accepted, for a person to see, without another try."""

    def handle_or_park(told: T, connection: object) -> object:
        try:
            return handle(told, connection)
        except (InvalidInput, KeyConflict, NotFound) as error:
            raise Park(str(error)) from error

    return handle_or_park


def _start_runs(engine: Engine, envelopes: Sequence[Envelope], connection: object) -> None:
    known: dict[str, Workflow] = {}
    with engine.join_group(connection) as joined:
        started = []
        for envelope in envelopes:
            payload = _read_payload(envelope)
            # Any JSON can be here; anything but a text is refused when it is read.
            named = json.dumps([payload.get("workflow"), payload.get("version")])
            if named not in known:
                known[named] = _find_workflow(engine, payload, connection)
            run = _new_run(envelope, payload, known[named])
            started.append(joined.runs.start.submit(run, actor=ACTOR))
    for each in started:
        each.result()


def _new_run(envelope: Envelope, payload: Payload, workflow: Workflow) -> NewRun:
    return NewRun(
        workflow=workflow,
        input=payload.get("input"),
        key=payload.get("key"),
        priority=payload.get("priority", 0),
        scheduled_for=payload.get("scheduled_for"),
        labels=payload.get("labels") or {},
        trace=envelope.trace,
    )


def _find_workflow(engine: Engine, payload: Payload, connection: object) -> Workflow:
    """The newest version of the workflow that the payload names, or the version it asks for."""
    name = payload.get("workflow")
    if not isinstance(name, str):
        raise InvalidInput("workflow", "must be the name of a workflow that the store knows")
    rows = engine.database.join(connection).read("versions_of_workflow", name=name)
    wanted = payload.get("version")
    if wanted is not None and not isinstance(wanted, str):
        raise InvalidInput("version", "must be a version of the workflow, as a text")
    for row in rows:
        if wanted in {None, row["version"]}:
            return read_workflow(row["definition"])
    raise NotFound(name if wanted is None else f"{name} {wanted}", "workflow")


def _carry_out_command(
    engine: Engine, commands: Mapping[str, CommandFunction], envelope: Envelope, connection: object
) -> None:
    identifier = _require_id(envelope, "task_id" if envelope.type in _TASK_COMMANDS else "run_id")
    answer = commands[envelope.type](engine.join(connection), identifier, _read_payload(envelope))
    _check_result(envelope, identifier, answer)


def _require_id(envelope: Envelope, field: str) -> str:
    identifier: str | None = getattr(envelope, field)
    if identifier is None:
        raise InvalidInput(field, f"is missing, and {envelope.type} is about one")
    return identifier


def _check_result(envelope: Envelope, identifier: str, answer: TransitionResult) -> None:
    if answer.reason is Refusal.NOT_FOUND:
        raise NotFound(identifier)
    if not answer.ok:
        # A refusal is an answer, and no failure: what is late, or decided already, stays so.
        logger.info("%s %s was refused: %s", envelope.type, envelope.message_id, answer.reason)


def _read_payload(envelope: Envelope) -> Payload:
    payload = {} if envelope.payload is None else envelope.payload
    if not isinstance(payload, Mapping):
        raise InvalidInput("payload", f"must be an object, not {type(payload).__name__}")
    return payload


def _require_field(payload: Payload, field: str) -> Any:  # noqa: ANN401 - whatever the message says
    if field not in payload:
        raise InvalidInput(f"payload.{field}", "is missing")
    return payload[field]


def _renew_attempt(to: JoinedTransaction, task: str, payload: Payload) -> Future[TransitionResult]:
    renewal = Renewal(
        task_id=task,
        token=_require_field(payload, "token"),
        progress=payload.get("progress"),
        usage=payload.get("usage"),
    )
    return map_future(
        to.work.renew.submit([renewal], lease=payload.get("lease_seconds")),
        lambda answers: answers[0],
    )


_RUN_COMMANDS: dict[str, CommandFunction] = {
    "run.cancel": lambda to, run, _: to.runs.cancel(run, actor=ACTOR),
    "run.pause": lambda to, run, _: to.runs.pause(run, actor=ACTOR),
    "run.resume": lambda to, run, _: to.runs.resume(run, actor=ACTOR),
    "run.retry": lambda to, run, payload: to.runs.retry(run, step=payload.get("step"), actor=ACTOR),
    "run.signal": lambda to, run, payload: to.signals.send(
        run,
        _require_field(payload, "name"),
        payload.get("payload"),
        key=payload.get("key"),
        actor=ACTOR,
    ),
}
_TASK_COMMANDS: dict[str, CommandFunction] = {
    "task.cancel": lambda to, task, _: to.tasks.cancel(task, actor=ACTOR),
    "task.retry": lambda to, task, _: to.tasks.retry(task, actor=ACTOR),
    "task.approve": lambda to, task, payload: to.tasks.approve(
        task, payload.get("note"), actor=ACTOR
    ),
    "task.reject": lambda to, task, payload: to.tasks.reject(
        task, payload.get("reason"), comments=payload.get("comments", ()), actor=ACTOR
    ),
    "task.answer": lambda to, task, payload: to.tasks.answer(
        task, _require_field(payload, "answer"), actor=ACTOR
    ),
}
_REPORTS: dict[str, ReportFunction] = {
    "attempt.completed": lambda to, task, payload: to.work.complete.submit(
        task, _require_field(payload, "token"), payload.get("output"), usage=payload.get("usage")
    ),
    "attempt.failed": lambda to, task, payload: to.work.fail.submit(
        task,
        _require_field(payload, "token"),
        payload.get("error"),
        retryable=payload.get("retryable", True),
        usage=payload.get("usage"),
    ),
    "attempt.renewed": _renew_attempt,
    "attempt.released": lambda to, task, payload: to.work.release.submit(
        task, _require_field(payload, "token")
    ),
}


def claim_handler(store: EngineOwner, bus: RedisBus) -> Handler:
    """The handler for `task.claim` on `workflow.commands`; its reply goes where the claim says."""
    engine = engine_of(store)
    replies = Replies(engine, bus)

    def handle(envelopes: Sequence[Envelope], connection: object) -> object:
        try:
            with engine.join_group(connection) as joined:
                asked = [(each, _submit_claim(joined, each)) for each in envelopes]
        except InvalidInput as error:
            raise Park(str(error)) from error
        return replies.reply_after_commit(
            [_make_claim_reply(each, claimed.result()) for each, claimed in asked]
        )

    return Handler(
        name="claims",
        handle_all=handle,
        types=frozenset({CLAIM}),
        steers=True,
        apart=lambda envelope: envelope.task_id,
        most=CLAIMED_AT_ONCE,
    )


def _submit_claim(joined: JoinedTransaction, envelope: Envelope) -> Future[list[Assignment]]:
    worker = require_reply_to(envelope)
    if envelope.task_id is None:
        raise InvalidInput("task_id", "is missing, and a claim is of one")
    payload = envelope.payload
    request = clean_key("request", payload.get("request", envelope.message_id))
    return joined.work.claim_by_id.submit(
        envelope.task_id,
        payload.get("worker", worker),
        agents=payload.get("agents", [envelope.agent or "default"]),
        tags=payload.get("tags", ()),
        lease=payload.get("lease_seconds"),
        # A sender that got no reply asks again with this request, and is given the same attempt.
        request=digest("bus", worker, envelope.task_id, request),
    )


def _make_claim_reply(envelope: Envelope, claimed: Sequence[Assignment]) -> MessageReply:
    if not claimed:
        reason = "not ready, or not for these agents and tags, or another's by now"
        return MessageReply(to=envelope, type=REFUSED, payload={"reason": reason})
    return MessageReply(to=envelope, type=CLAIMED, payload=_show_assignment(claimed[0]))


def _show_assignment(assignment: Assignment) -> dict[str, Any]:
    return {
        "attempt": assignment.attempt,
        "token": assignment.token,
        "lease_expires_at": describe_moment(assignment.expires_at),
        "title": assignment.task.title,
        "given": assignment.payload_with_context,
    }
