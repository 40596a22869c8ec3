"""What the engine does with messages: commands carried out, and results reported, each once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from holdfast.bus.envelope import Envelope
from holdfast.bus.handler import Handler, Park
from holdfast.engine.engine import Engine
from holdfast.engine.expect_operations import Meant
from holdfast.engine.joined import Joined
from holdfast.errors import InvalidInput, KeyConflict, NotFound
from holdfast.model.graph import Workflow, read_workflow
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import NewRun

logger = logging.getLogger(__name__)

ACTOR = "bus"

Told = Mapping[str, Any]
Order = Callable[[Joined, str, Told], TransitionResult]


def command_handler(engine: Engine) -> Handler:
    """For `workflow.commands`: starts, cancels, retries, decisions of people, signals."""
    orders = {**_RUN_ORDERS, **_TASK_ORDERS}

    def handle(envelope: Envelope, connection: object, *, patient: bool = True) -> None:
        if envelope.type == "run.start":
            _start(engine, envelope, connection)
        elif _is_expected(engine, envelope, connection, patient=patient):
            _carry_out(engine, orders, envelope, connection)

    return Handler(
        name="commands",
        handle=_parking(handle),
        types=frozenset({"run.start", *orders}),
        steers=True,
        at_last=_parking(partial(handle, patient=False)),
    )


def result_handler(engine: Engine) -> Handler:
    """For `agent.results`: what agents tell of their attempts, fenced by the token of each."""

    def handle(envelope: Envelope, connection: object) -> None:
        _carry_out(engine, _RESULTS, envelope, connection)

    types = frozenset(_RESULTS)
    return Handler(name="results", handle=_parking(handle), types=types, steers=True)


class Early(Exception):
    """A command is for a version of its run or task that has not come yet: it is tried again."""


def _is_expected(engine: Engine, envelope: Envelope, connection: object, *, patient: bool) -> bool:
    """Whether a command is for the version there is; the row is held still until the commit."""
    expected = _told(envelope).get("expected_version")
    target = _target(envelope)
    if expected is None or target is None:
        return True
    meant = Meant(
        asked=envelope.type,
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


def _parking(handle: Callable[[Envelope, object], None]) -> Callable[[Envelope, object], None]:
    """Leave what can never be accepted to people, without trying it again."""

    def handle_or_park(envelope: Envelope, connection: object) -> None:
        try:
            handle(envelope, connection)
        except (InvalidInput, KeyConflict, NotFound) as error:
            raise Park(str(error)) from error

    return handle_or_park


def _start(engine: Engine, envelope: Envelope, connection: object) -> None:
    told = _told(envelope)
    run = NewRun(
        workflow=_workflow(engine, told, connection),
        input=told.get("input"),
        key=told.get("key"),
        priority=told.get("priority", 0),
        trace=envelope.trace,
    )
    engine.join(connection).runs.start(run, actor=ACTOR)


def _workflow(engine: Engine, told: Told, connection: object) -> Workflow:
    """The newest version of the workflow that is named, or the one that is asked for."""
    name = told.get("workflow")
    if not isinstance(name, str):
        raise InvalidInput("workflow", "must be the name of a workflow that the store knows")
    rows = engine.database.join(connection).read("versions_of_workflow", name=name)
    wanted = told.get("version")
    for row in rows:
        if wanted in {None, row["version"]}:
            return read_workflow(row["definition"])
    raise NotFound(name if wanted is None else f"{name} {wanted}", "workflow")


def _carry_out(
    engine: Engine, orders: Mapping[str, Order], envelope: Envelope, connection: object
) -> None:
    kind = envelope.type
    field = "task_id" if orders is _RESULTS or kind in _TASK_ORDERS else "run_id"
    identifier = getattr(envelope, field)
    if identifier is None:
        raise InvalidInput(field, f"is missing, and {kind} is about one")
    answer = orders[kind](engine.join(connection), identifier, _told(envelope))
    if answer.reason is Refusal.NOT_FOUND:
        raise NotFound(identifier)
    if not answer.ok:
        # An answer, and no failure: what is late or decided already stays as it is.
        logger.info("%s %s was refused: %s", kind, envelope.message_id, answer.reason)


def _told(envelope: Envelope) -> Told:
    payload = {} if envelope.payload is None else envelope.payload
    if not isinstance(payload, Mapping):
        raise InvalidInput("payload", f"must be an object, not {type(payload).__name__}")
    return payload


def _need(told: Told, field: str) -> Any:  # noqa: ANN401 - whatever the message says
    if field not in told:
        raise InvalidInput(f"payload.{field}", "is missing")
    return told[field]


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
_RESULTS: dict[str, Order] = {
    "attempt.completed": lambda to, task, told: to.work.complete(
        task, _need(told, "token"), told.get("output"), usage=told.get("usage")
    ),
    "attempt.failed": lambda to, task, told: to.work.fail(
        task,
        _need(told, "token"),
        told.get("error"),
        retryable=told.get("retryable", True),
        usage=told.get("usage"),
    ),
    "attempt.released": lambda to, task, told: to.work.release(task, _need(told, "token")),
}
