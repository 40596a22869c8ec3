"""Durable operations: what a function did, slept and received is remembered when it runs again.

Each operation is a generator that yields what it waits for: a future, an awaitable, or a call that
reads the store. `durable_flows` runs it in a thread or in a coroutine. Results are kept as JSON.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from holdfast.clock import MICROSECONDS
from holdfast.engine.input.validation import MAX_BATCH
from holdfast.errors import InvalidInput, ShuttingDown, TaskFailed, WrongThread
from holdfast.model.effect import Child, EffectRecord, WakeCondition
from holdfast.model.result import TransitionResult
from holdfast.model.status import Status
from holdfast.model.task import Assignment, NamedLease, NewTask, Task
from holdfast.model.text import clean_name
from holdfast.model.units import parse_duration
from holdfast.store.deadlocks import would_deadlock
from holdfast.worker.attempt.attempt_lease import AttemptEnded, send_until_over
from holdfast.worker.attempt.effect_names import EffectNames, SharedName
from holdfast.worker.attempt.json_values import InvalidEffect, encode_effect
from holdfast.worker.attempt.waits import FunctionWaits, Suspended, SuspendedForAnswer
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.secrets.secret_rules import WrittenKind
from holdfast.worker.store_port import StorePort

LONGEST_WAIT = 200 * 365 * 86_400
_ENDED_STATUSES = {Status.DONE, Status.FAILED, Status.CANCELLED}
_CHILD_FIELDS = tuple(each.name for each in fields(NewTask))

T = TypeVar("T")
Pending = Future[Any] | Awaitable[Any] | Callable[[], Any]
Flow = Generator[Pending, Any, T]


def feedback_before(effects: Mapping[str, Any], feedback: object) -> object:
    """The feedback from before a function asked: an answer replaces the feedback of its task."""
    asked = (effects[name] for name in effects if re.match(r"ask( .*)? asked\Z", name))
    first = next(asked, None)
    return feedback if first is None else first["feedback"]


class InvalidCall(InvalidInput):
    """The function itself gave an argument that is refused whatever the store holds."""

    def __init__(self, field: str, reason: str) -> None:
        advice = "it would be said again, so it is not tried again: change the function, then retry"
        super().__init__(field, f"{reason}; {advice}")


@contextmanager
def refuse_for_good() -> Iterator[None]:
    """Raise `InvalidCall` for arguments of the function itself, so that it is not tried again."""
    try:
        yield
    except (SharedName, InvalidCall):
        raise
    except InvalidInput as error:
        raise InvalidCall(error.field, error.reason) from error


class InvalidWait(WrongThread):
    """The function would wait for a transaction that it has open itself, in every attempt."""

    def __init__(self, name: str, file: object) -> None:
        reason = f"ctx.{name}(…) would wait for the transaction that this step has open on {file}"
        advice = "call it before the transaction begins or after it has ended"
        super().__init__(f"{reason}, and is not tried again; {advice}, then retry")


class SignalTimeout(TimeoutError):
    """No signal came in time. That is remembered, so every later attempt raises it again."""

    def __init__(self, signal: str, task_id: str) -> None:
        reason = f"no signal {signal!r} came in time, which is remembered and not tried again"
        again = "or have it begin anew, its effects too"
        advice = f"{again}: `holdfast retry --again {task_id}`"
        super().__init__(f"{reason}: catch TimeoutError, {advice}")


class Callee(Protocol):
    """A function that was made a task: what `map` and `spawn` can call."""

    def request(self, *args: Any, **kwargs: Any) -> NewTask:
        """The task that stands for one call."""

    def read_output(self, output: object) -> Any:  # noqa: ANN401 - what its annotation says
        """The result of a call, from its JSON."""


class TaskMemory:
    """The effects that a task remembers, and the flows that add to them until the attempt is over.

    An operation takes its name when it is called, before it is awaited: so the order of the calls
    decides the names, and not the order in which the operations go on.
    """

    # Whether the function has raised: its branches begin nothing more.
    closed = False
    # Called when something of the function was recorded.
    on_recorded: Callable[[], object] | None = None

    def __init__(
        self,
        store: StorePort,
        assignment: Assignment,
        is_over: Callable[[], bool],
        refuse_secret: Callable[[WrittenKind, object], None],
        *,
        blocking: bool = True,
    ) -> None:
        self._store = store
        self._is_over = is_over
        self._refuse_secret = refuse_secret
        self._blocking = blocking
        self._assignment = assignment
        self._task_and_token = (assignment.task_id, assignment.token)
        self._target = assignment.run_id or assignment.task_id
        self._effects: dict[str, Any] = {}
        self._effects_are_read = assignment.attempt == 1
        self.names = EffectNames()
        self.waits = FunctionWaits()
        # Held until the function is left, or until they run out.
        self._leases: list[NamedLease] = []
        self._leases_given_back = False

    @property
    def suspension(self) -> Suspended | None:
        """The wait for which the effect around the caller was left, or else the function."""
        return self.waits.suspension(self.names.list_effects_under_way())

    def effect(self, name: str, call: Callable[[], Any], decode: Callable[[Any], Any]) -> Flow[Any]:
        self._refuse_secret(WrittenKind.NAME, name)
        return self._decode_effect(
            self._effect(name, self.names.take_effect_name(name), call), decode
        )

    def _decode_effect(self, flow: Flow[Any], decode: Callable[[Any], Any]) -> Flow[Any]:
        return decode((yield from flow))

    def _effect(self, given: str, name: str, call: Callable[[], Any]) -> Flow[Any]:
        known = yield from self._read_effects()
        if name in known:
            return known[name]
        self._refuse_own_transaction("effect")
        yield from self._guard()
        with self.waits.inside_effect(name), self.names.effect_under_way(given, name):
            result = call()
            if inspect.isawaitable(result):
                result = yield result
        plain = encode_effect(name, result)
        try:
            self._refuse_secret(WrittenKind.EFFECT, plain)
        except InvalidInput as error:
            give = "what stands for the secret instead"
            raise InvalidEffect(name, f"what it gave {error.reason}", give) from error
        try:
            return (yield from self._record_effect(name, plain))
        except InvalidInput as error:
            raise InvalidEffect(name, f"what it gave {error.reason}") from error

    def _take_name(self, what: str, name: object) -> str:
        self._refuse_secret(WrittenKind.NAME, [what, name])
        return self.names.take_name(what, name)

    def sleep(self, seconds: float, name: str | None = None) -> Flow[None]:
        return self._sleep(self._take_name("sleep", name), seconds)

    def _sleep(self, name: str, seconds: float) -> Flow[None]:
        known = yield from self._read_effects()
        now = yield self._store.now
        if name not in known:
            until = now + int(seconds * MICROSECONDS)
            raise Suspended(WakeCondition(until=until), (name, until))
        if now < known[name]:
            raise Suspended(WakeCondition(until=known[name]))

    def wait_for(self, signal: str, timeout: float | None, name: str | None = None) -> Flow[Any]:
        known = clean_name("signal", signal)
        return self._wait_for(self._take_name(f"wait {known}", name), known, timeout)

    def _wait_for(self, name: str, signal: str, timeout: float | None) -> Flow[Any]:
        known = yield from self._read_effects()
        if name not in known:
            self._refuse_own_transaction("wait_for")
            yield from self._take_signal(name, signal, timeout)
        heard = known[name]
        if "signal" not in heard:
            raise SignalTimeout(signal, self._assignment.task_id)
        return heard["signal"]

    def _take_signal(self, name: str, signal: str, timeout: float | None) -> Flow[None]:
        known = yield from self._read_effects()
        asked = self._store.work.take_signal.submit
        taken = yield from self._send(asked, self._target, signal, name=name)
        if taken.found:
            known[name] = taken.value
            return
        until, notes = known.get(f"{name} until"), []
        now = yield self._store.now
        if until is None and timeout is not None:
            until = now + int(timeout * MICROSECONDS)
            notes = [(f"{name} until", until)]
        if until is None or now < until:
            raise Suspended(
                WakeCondition(until=until, target=self._target, signals=(signal,)), *notes
            )
        yield from self._record_effect(name, {"timeout": True})

    def ask(self, question: object, name: str | None = None) -> Flow[Any]:
        return self._ask(self._take_name("ask", name), question)

    def _ask(self, name: str, question: object) -> Flow[Any]:
        known = yield from self._read_effects()
        if name in known:
            return known[name]
        self._refuse_own_transaction("ask")
        # A question that still stands was not answered: its hold was lifted in another way, so the
        # function asks again.
        if f"{name} asked" not in known or (yield self._read_task).question is not None:
            note = {"question": question, "feedback": self._assignment.feedback}
            raise SuspendedForAnswer(question, (f"{name} asked", note))
        return (yield from self._record_effect(name, self._assignment.own_feedback))

    def spawn(self, task: NewTask) -> Flow[list[str]]:
        return self._spawn("spawn", self.names.take_spawn_name(task.title), [task])

    def _spawn(self, method: str, name: str, tasks: list[NewTask]) -> Flow[list[str]]:
        known = yield from self._read_effects()
        if name not in known:
            self._refuse_own_transaction(method)
            for task in tasks:
                with refuse_for_good():
                    self._refuse_secret(
                        WrittenKind.CHILD, [getattr(task, each) for each in _CHILD_FIELDS]
                    )
            with refuse_for_good():
                made = yield from self._send(self._store.work.spawn.submit, tasks, name=name)
            known[name] = made.value
        ids: list[str] = known[name]
        return ids

    def call(self, callee: Callee, request: NewTask) -> Flow[Any]:
        spawned = self._spawn("call", self.names.take_call_name(request.title), [request])
        return self._call(self._map(callee, spawned))

    def _call(self, mapped: Flow[list[Any]]) -> Flow[Any]:
        (result,) = yield from mapped
        return result

    def map(
        self, callee: Callee, calls: Iterable[tuple[Any, ...]], name: str | None = None
    ) -> Flow[list[Any]]:
        requests = [callee.request(*each) for each in calls]
        if len(requests) > MAX_BATCH:
            reason = f"{len(requests)} items are more than the {MAX_BATCH} of one map; map a part"
            raise InvalidInput("map", f"{reason} of them at a time")
        if not requests:
            return _map_of_nothing()
        taken_name = self._take_name(f"map {requests[0].title}", name)
        return self._map(callee, self._spawn("map", taken_name, requests))

    def _map(self, callee: Callee, spawned: Flow[list[str]]) -> Flow[list[Any]]:
        ids = yield from spawned
        children = yield lambda: self._store.work.children(self._task_and_token[0], ids)
        if not all(child.status in _ENDED_STATUSES for child in children):
            raise Suspended(WakeCondition(children=True))
        return [_read_child_output(child, callee) for child in children]

    def artifact(self, artifact: Artifact) -> Flow[Path]:
        known = yield from self._read_effects()
        self._refuse_own_transaction("artifact")
        yield from self._guard()
        size = artifact.description["bytes"]
        yield lambda: self._store.work.check_room(*self._task_and_token, artifact.effect, size)
        try:
            yield lambda: artifact.write_temporary(self._store.store)
            kept = known.get(artifact.effect)
            if kept is None:
                kept = yield from self._record_effect(
                    artifact.effect, artifact.description, beside=size
                )
            if kept != artifact.description:
                advice = "give each its own name, or make what it holds in an effect"
                raise InvalidCall("artifact", f"{artifact.conflict}; {advice}")
            yield artifact.put_in_place
        finally:
            artifact.discard()
        return artifact.path

    def lease(self, key: str, ttl: float) -> Flow[NamedLease | None]:
        self._refuse_own_transaction("lease")
        with refuse_for_good():
            self._refuse_secret(WrittenKind.NAME, key)
        yield from self._guard()
        with refuse_for_good():
            acquired = self._store.leases.acquire.submit(key, self._task_and_token[0], ttl=ttl)
        acquired.add_done_callback(self._note_lease)
        lease: NamedLease | None = yield acquired
        return lease

    def _note_lease(self, acquired: Future[NamedLease | None]) -> None:
        """Note an acquired lease, also when the branch that asked for it has been cancelled."""
        if acquired.cancelled() or acquired.exception() is not None:
            return
        if (lease := acquired.result()) is not None:
            self._leases.append(lease)
        if self._leases_given_back:
            self.give_back_leases()

    def give_back_leases(self) -> None:
        """Release the leases that the function held; a lease that cannot be released runs out."""
        self._leases_given_back = True
        # `pop` one by one: a lease that arrives late is released by the thread that brings it.
        with suppress(IndexError, ShuttingDown):
            while True:
                lease = self._leases.pop()
                self._store.leases.release.submit(lease.key, lease.token)

    def refuse_after_raise(self) -> None:
        """Refuse operations that begin after the function has raised, except within its effects."""
        if self.closed and not self.names.list_effects_under_way():
            raise AttemptEnded(f"this attempt of {self._task_and_token[0]} has raised by now")

    def _guard(self) -> Flow[None]:
        self._raise_unless_ok((yield lambda: self._store.work.guard(*self._task_and_token)))

    def _refuse_own_transaction(self, name: str) -> None:
        """Refuse to wait for a transaction that this thread has open, before anything is done."""
        file = self._store.file
        if would_deadlock(file, blocking=self._blocking):
            raise InvalidWait(name, file)

    def _read_task(self) -> Task:
        return self._assignment.task

    def _read_effects(self) -> Flow[dict[str, Any]]:
        if not self._effects_are_read:
            # Updated in place: another branch may have read this dictionary by now.
            self._effects |= yield lambda: self._store.work.effects(self._task_and_token[0])
            self._effects_are_read = True
        return self._effects

    def _record_effect(self, name: str, value: object, **more: int) -> Flow[Any]:
        submit = self._store.work.record_effect.submit
        kept = yield from self._send(submit, name, value, **more)
        known = yield from self._read_effects()
        known[name] = kept.value
        if self.on_recorded is not None:
            self.on_recorded()
        return kept.value

    def _send(
        self, send: Callable[..., Future[EffectRecord]], *said: object, **options: object
    ) -> Flow[EffectRecord]:
        """Send an operation, again while the store is away, and raise unless it was accepted."""
        told: EffectRecord = yield send_until_over(
            lambda: send(*self._task_and_token, *said, **options), self._is_over
        )
        self._raise_unless_ok(told.answer)
        return told

    def _raise_unless_ok(self, answer: TransitionResult) -> None:
        if not answer.ok:
            task_id, _ = self._task_and_token
            raise AttemptEnded(f"this attempt of {task_id} may not act: {answer.reason}")


def _map_of_nothing() -> Flow[list[Any]]:
    yield from ()
    return []


def _read_child_output(child: Child, callee: Callee) -> object:
    if child.status is not Status.DONE:
        raise TaskFailed(child.id, child.status, child.error)
    return callee.read_output(child.output)


def parse_seconds(field: str, value: float | str | timedelta) -> float:
    found = parse_duration(field, value)
    # `not <=` instead of `>`, because a comparison with NaN is always false.
    if not abs(found) <= LONGEST_WAIT:
        raise InvalidInput(field, f"{value!r} cannot be waited for; at most 200 years can")
    return found


def callee_of(function: object) -> Callee:
    if not hasattr(function, "request") or not hasattr(function, "read_output"):
        raise InvalidInput("function", f"{function!r} is no task; put @hf.task above it")
    found: Callee = function
    return found
