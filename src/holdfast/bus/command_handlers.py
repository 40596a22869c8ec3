"""What the engine does with messages: commands carried out, and results reported, each once.

Claims by message: who has nothing but the bus asks for a task, and hears of it there.
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
from holdfast.bus.offers import AT_ONCE
from holdfast.bus.replies import Replies, Reply, answer_to, need_reply_to
from holdfast.engine.core.sync_async import then
from holdfast.engine.engine import Engine
from holdfast.engine.state.expected_version import VersionedCommand
from holdfast.engine.writer.caller_transaction import Joined
from holdfast.errors import InvalidInput, KeyConflict, NotFound
from holdfast.model.frozen_record import describe_moment
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import NewRun
from holdfast.model.task import Assignment, Renewal
from holdfast.model.text import clean_key, digest
from holdfast.model.workflow.graph import Workflow, read_workflow

logger = logging.getLogger(__name__)

ACTOR = "bus"

Told = Mapping[str, Any]
Order = Callable[[Joined, str, Told], TransitionResult]
Report = Callable[[Joined, str, Told], Future[TransitionResult]]
T = TypeVar("T")


def command_handler(engine: Engine) -> Handler:
    """For `workflow.commands`: starts, cancels, retries, decisions of people, signals."""
    orders = {**_RUN_ORDERS, **_TASK_ORDERS}

    def handle(envelope: Envelope, connection: object, *, patient: bool = True) -> None:
        if envelope.type == "run.start":
            _start(engine, [envelope], connection)
        elif _is_expected(engine, envelope, connection, patient=patient):
            _carry_out(engine, orders, envelope, connection)

    def start(envelopes: Sequence[Envelope], connection: object) -> None:
        _start(engine, envelopes, connection)

    return Handler(
        name="commands",
        handle=_parking(handle),
        handle_all=_parking(start),
        types=frozenset({"run.start", *orders}),
        steers=True,
        at_last=_parking(partial(handle, patient=False)),
        # Runs that are new have nothing in common; what is there already is steered one by one.
        apart=lambda envelope: envelope.message_id if envelope.type == "run.start" else None,
    )


def result_handler(engine: Engine, bus: RedisBus | None = None) -> Handler:
    """For `agent.results`: what agents tell of their attempts, fenced by the token of each.

    With a `bus` whoever names a `reply_to` is answered there.
    """
    replies = None if bus is None else Replies(engine, bus)

    def handle(envelopes: Sequence[Envelope], connection: object) -> object:
        about = [_about(each, "task_id") for each in envelopes]
        with engine.join_group(connection) as joined:
            answers = [
                _RESULTS[each.type](joined, task_id, _told(each))
                for each, task_id in zip(envelopes, about, strict=True)
            ]
        for each, task_id, answer in zip(envelopes, about, answers, strict=True):
            _hear(each, task_id, answer.result())
        told = zip(envelopes, answers, strict=True)
        return replies and replies.after([answer_to(each, one.result()) for each, one in told])

    return Handler(
        name="results",
        handle_all=_parking(handle),
        types=frozenset(_RESULTS),
        steers=True,
        apart=lambda envelope: envelope.task_id,
    )


class Early(Exception):
    """A command is for a version of its run or task that has not come yet: it is tried again."""


def _is_expected(engine: Engine, envelope: Envelope, connection: object, *, patient: bool) -> bool:
    """Whether a command is for the version there is; the row is held still until the commit."""
    expected = _told(envelope).get("expected_version")
    target = _target(envelope)
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
        raise Early(message)
    if not found.met:
        logger.info("%s %s was refused: version_conflict", envelope.type, envelope.message_id)
    return found.met


def _target(envelope: Envelope) -> str | None:
    return envelope.task_id if envelope.type in _TASK_ORDERS else envelope.run_id


def _parking(handle: Callable[[T, object], object]) -> Callable[[T, object], object]:
    """Leave what can never be accepted to people, without trying it again."""

    def handle_or_park(told: T, connection: object) -> object:
        try:
            return handle(told, connection)
        except (InvalidInput, KeyConflict, NotFound) as error:
            raise Park(str(error)) from error

    return handle_or_park


def _start(engine: Engine, envelopes: Sequence[Envelope], connection: object) -> None:
    known: dict[str, Workflow] = {}
    with engine.join_group(connection) as joined:
        started = []
        for envelope in envelopes:
            told = _told(envelope)
            # Whatever it says: an object, or a list, is refused where it is read.
            named = json.dumps([told.get("workflow"), told.get("version")])
            if named not in known:
                known[named] = _workflow(engine, told, connection)
            run = _new_run(envelope, told, known[named])
            started.append(joined.runs.start.submit(run, actor=ACTOR))
    for each in started:
        each.result()


def _new_run(envelope: Envelope, told: Told, workflow: Workflow) -> NewRun:
    return NewRun(
        workflow=workflow,
        input=told.get("input"),
        key=told.get("key"),
        priority=told.get("priority", 0),
        trace=envelope.trace,
    )


def _workflow(engine: Engine, told: Told, connection: object) -> Workflow:
    """The newest version of the workflow that is named, or the one that is asked for."""
    name = told.get("workflow")
    if not isinstance(name, str):
        raise InvalidInput("workflow", "must be the name of a workflow that the store knows")
    rows = engine.database.join(connection).read("versions_of_workflow", name=name)
    wanted = told.get("version")
    if wanted is not None and not isinstance(wanted, str):
        raise InvalidInput("version", "must be a version of the workflow, as a text")
    for row in rows:
        if wanted in {None, row["version"]}:
            return read_workflow(row["definition"])
    raise NotFound(name if wanted is None else f"{name} {wanted}", "workflow")


def _carry_out(
    engine: Engine, orders: Mapping[str, Order], envelope: Envelope, connection: object
) -> None:
    identifier = _about(envelope, "task_id" if envelope.type in _TASK_ORDERS else "run_id")
    answer = orders[envelope.type](engine.join(connection), identifier, _told(envelope))
    _hear(envelope, identifier, answer)


def _about(envelope: Envelope, field: str) -> str:
    identifier: str | None = getattr(envelope, field)
    if identifier is None:
        raise InvalidInput(field, f"is missing, and {envelope.type} is about one")
    return identifier


def _hear(envelope: Envelope, identifier: str, answer: TransitionResult) -> None:
    if answer.reason is Refusal.NOT_FOUND:
        raise NotFound(identifier)
    if not answer.ok:
        # An answer, and no failure: what is late or decided already stays as it is.
        logger.info("%s %s was refused: %s", envelope.type, envelope.message_id, answer.reason)


def _told(envelope: Envelope) -> Told:
    payload = {} if envelope.payload is None else envelope.payload
    if not isinstance(payload, Mapping):
        raise InvalidInput("payload", f"must be an object, not {type(payload).__name__}")
    return payload


def _need(told: Told, field: str) -> Any:  # noqa: ANN401 - whatever the message says
    if field not in told:
        raise InvalidInput(f"payload.{field}", "is missing")
    return told[field]


def _renew(to: Joined, task: str, told: Told) -> Future[TransitionResult]:
    renewal = Renewal(
        task_id=task,
        token=_need(told, "token"),
        progress=told.get("progress"),
        usage=told.get("usage"),
    )
    return then(
        to.work.renew.submit([renewal], lease=told.get("lease_seconds")), lambda answers: answers[0]
    )


_RUN_ORDERS: dict[str, Order] = {
    "run.cancel": lambda to, run, _: to.runs.cancel(run, actor=ACTOR),
    "run.pause": lambda to, run, _: to.runs.pause(run, actor=ACTOR),
    "run.resume": lambda to, run, _: to.runs.resume(run, actor=ACTOR),
    "run.retry": lambda to, run, told: to.runs.retry(run, step=told.get("step"), actor=ACTOR),
    "run.signal": lambda to, run, told: to.signals.send(
        run, _need(told, "name"), told.get("payload"), key=told.get("key"), actor=ACTOR
    ),
}
_TASK_ORDERS: dict[str, Order] = {
    "task.cancel": lambda to, task, _: to.tasks.cancel(task, actor=ACTOR),
    "task.retry": lambda to, task, _: to.tasks.retry(task, actor=ACTOR),
    "task.approve": lambda to, task, told: to.tasks.approve(task, told.get("note"), actor=ACTOR),
    "task.reject": lambda to, task, told: to.tasks.reject(task, told.get("reason"), actor=ACTOR),
    "task.answer": lambda to, task, told: to.tasks.answer(task, _need(told, "answer"), actor=ACTOR),
}
_RESULTS: dict[str, Report] = {
    "attempt.completed": lambda to, task, told: to.work.complete.submit(
        task, _need(told, "token"), told.get("output"), usage=told.get("usage")
    ),
    "attempt.failed": lambda to, task, told: to.work.fail.submit(
        task,
        _need(told, "token"),
        told.get("error"),
        retryable=told.get("retryable", True),
        usage=told.get("usage"),
    ),
    "attempt.renewed": _renew,
    "attempt.released": lambda to, task, told: to.work.release.submit(task, _need(told, "token")),
}

CLAIM, CLAIMED, REFUSED = "task.claim", "task.claimed", "task.refused"


def claim_handler(engine: Engine, bus: RedisBus) -> Handler:
    """For `workflow.commands`: claims a task by its id, and answers where the claim says."""
    replies = Replies(engine, bus)

    def handle(envelopes: Sequence[Envelope], connection: object) -> object:
        try:
            with engine.join_group(connection) as joined:
                asked = [(each, _ask(joined, each)) for each in envelopes]
        except InvalidInput as error:
            raise Park(str(error)) from error
        return replies.after([_answer(each, claimed.result()) for each, claimed in asked])

    return Handler(
        name="claims",
        handle_all=handle,
        types=frozenset({CLAIM}),
        steers=True,
        apart=lambda envelope: envelope.task_id,
        most=AT_ONCE,
    )


def _ask(joined: Joined, envelope: Envelope) -> Future[list[Assignment]]:
    worker = need_reply_to(envelope)
    if envelope.task_id is None:
        raise InvalidInput("task_id", "is missing, and a claim is of one")
    told = envelope.payload
    request = clean_key("request", told.get("request", envelope.message_id))
    return joined.work.claim_by_id.submit(
        envelope.task_id,
        told.get("worker", worker),
        agents=told.get("agents", [envelope.agent or "default"]),
        tags=told.get("tags", ()),
        lease=told.get("lease_seconds"),
        # Who was not answered asks again for the same task, and is given the same.
        request=digest("bus", worker, envelope.task_id, request),
    )


def _answer(envelope: Envelope, claimed: Sequence[Assignment]) -> Reply:
    if not claimed:
        reason = "not ready, or not for these agents and tags, or another's by now"
        return Reply(to=envelope, type=REFUSED, payload={"reason": reason})
    return Reply(to=envelope, type=CLAIMED, payload=_show(claimed[0]))


def _show(assignment: Assignment) -> dict[str, Any]:
    return {
        "attempt": assignment.attempt,
        "token": assignment.token,
        "lease_expires_at": describe_moment(assignment.expires_at),
        "title": assignment.task.title,
        "given": assignment.payload_with_context,
    }
