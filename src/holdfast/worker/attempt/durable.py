"""How a function is durable: what it did, slept and heard is remembered, and it runs again.

Each operation is a generator that yields what it waits for: a future, an awaitable, or a call that
reads the store. One edge waits in a thread, another in a coroutine.

How what an effect gave is remembered: in JSON, by the type it has.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter

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
from holdfast.worker.attempt.attempt_lease import AttemptEnded, insist
from holdfast.worker.attempt.effect_names import Places, SharedName
from holdfast.worker.attempt.waits import Asking, Suspended, Waits
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.secrets.secret_rules import Kind
from holdfast.worker.store_port import Office

_AS_IT_IS = frozenset({type(None), bool, int, float, str})

PLAIN = "text, numbers, lists, dicts, a dataclass or a pydantic model"


class InvalidEffect(InvalidInput):
    """What an effect gave cannot be remembered; as it was done, it is not tried again."""

    def __init__(self, name: str, reason: str, give: str = PLAIN) -> None:
        advice = f"it was done, so it is not tried again: have it give {give}"
        super().__init__(f"effect {name!r}", f"{reason}; {advice}")


def encode_effect(name: str, value: object) -> object:
    """The JSON form of what an effect gave; raises `InvalidEffect` where it has none."""
    if type(value) in _AS_IT_IS:
        return value
    try:
        # By its own type: what a function promises to give, nobody has checked here.
        return TypeAdapter(type(value)).dump_python(value, mode="json", warnings="none")
    except Exception as error:
        kind = type(value).__name__
        raise InvalidEffect(name, f"it gave a {kind}, which is not JSON: {error}") from error


LONGEST = 200 * 365 * 86_400
_OF_CHILD = tuple(each.name for each in fields(NewTask))

T = TypeVar("T")
Asked = Future[Any] | Awaitable[Any] | Callable[[], Any]
Flow = Generator[Asked, Any, T]


def feedback_before(effects: Mapping[str, Any], feedback: object) -> object:
    """The feedback of a function that has asked since: an answer takes its place in the task."""
    asked = (effects[name] for name in effects if re.match(r"ask( .*)? asked\Z", name))
    first = next(asked, None)
    return feedback if first is None else first["feedback"]


class InvalidCall(InvalidInput):
    """What a function says itself cannot be taken, whatever the store holds."""

    def __init__(self, field: str, reason: str) -> None:
        advice = "it would be said again, so it is not tried again: change the function, then retry"
        super().__init__(field, f"{reason}; {advice}")


@contextmanager
def as_said() -> Iterator[None]:
    """Have what a function says itself, and cannot be taken, refused for good."""
    try:
        yield
    except (SharedName, InvalidCall):
        raise
    except InvalidInput as error:
        raise InvalidCall(error.field, error.reason) from error


class InvalidWait(WrongThread):
    """A function would wait for a transaction that it has open itself, in every attempt."""

    def __init__(self, name: str, file: object) -> None:
        reason = f"ctx.{name}(…) would wait for the transaction that this step has open on {file}"
        advice = "call it before the transaction begins or after it has ended"
        super().__init__(f"{reason}, and is not tried again; {advice}, then retry")


class SignalTimeout(TimeoutError):
    """No signal came in time: that is remembered, and so in every attempt from then on."""

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


class Memory:
    """What one task remembers, and the flows that add to it while its attempt is not `over`.

    Each has its place from when it is called, before anybody awaits it: what comes after it in the
    function is the next, whichever goes on first.
    """

    # Whether the function has raised: its branches begin nothing more.
    closed = False

    def __init__(
        self,
        engine: Office,
        assignment: Assignment,
        over: Callable[[], bool],
        keep: Callable[[Kind, object], None],
        *,
        blocking: bool = True,
    ) -> None:
        self._engine = engine
        self._over = over
        self._keep = keep
        self._blocking = blocking
        self._assignment = assignment
        self._name = (assignment.task_id, assignment.token)
        self._target = assignment.run_id or assignment.task_id
        self._known: dict[str, Any] = {}
        self._read = assignment.attempt == 1
        self.places = Places()
        self.waits = Waits()
        # Held until the function is left, or they have run out.
        self._leases: list[NamedLease] = []
        self._gave_back = False

    @property
    def left(self) -> Suspended | None:
        """The wait for which the effect around what asks, or else the function, was left by now."""
        return self.waits.left(self.places.effects_around())

    def effect(self, name: str, call: Callable[[], Any]) -> Flow[Any]:
        self._keep(Kind.NAME, name)
        return self._effect(name, self.places.take_effect(name), call)

    def _effect(self, name: str, place: str, call: Callable[[], Any]) -> Flow[Any]:
        known = yield from self._remembered()
        if place in known:
            return known[place]
        self._refuse_to_wait("effect")
        yield from self._guard()
        with self.waits.around(place), self.places.under_way(name, place):
            result = call()
            if inspect.isawaitable(result):
                result = yield result
        plain = encode_effect(place, result)
        try:
            self._keep(Kind.EFFECT, plain)
        except InvalidInput as error:
            give = "what stands for the secret instead"
            raise InvalidEffect(place, f"what it gave {error.reason}", give) from error
        try:
            return (yield from self._remember(place, plain))
        except InvalidInput as error:
            raise InvalidEffect(place, f"what it gave {error.reason}") from error

    def _take_place(self, what: str, name: object) -> str:
        self._keep(Kind.NAME, [what, name])
        return self.places.take(what, name)

    def sleep(self, seconds: float, name: str | None = None) -> Flow[None]:
        return self._sleep(self._take_place("sleep", name), seconds)

    def _sleep(self, place: str, seconds: float) -> Flow[None]:
        known = yield from self._remembered()
        now = yield self._engine.now
        if place not in known:
            until = now + int(seconds * MICROSECONDS)
            raise Suspended(WakeCondition(until=until), (place, until))
        if now < known[place]:
            raise Suspended(WakeCondition(until=known[place]))

    def wait_for(self, signal: str, timeout: float | None, name: str | None = None) -> Flow[Any]:
        known = clean_name("signal", signal)
        return self._wait_for(self._take_place(f"wait {known}", name), known, timeout)

    def _wait_for(self, place: str, signal: str, timeout: float | None) -> Flow[Any]:
        known = yield from self._remembered()
        if place not in known:
            self._refuse_to_wait("wait_for")
            yield from self._listen(place, signal, timeout)
        heard = known[place]
        if "signal" not in heard:
            raise SignalTimeout(signal, self._assignment.task_id)
        return heard["signal"]

    def _listen(self, place: str, signal: str, timeout: float | None) -> Flow[None]:
        known = yield from self._remembered()
        asked = self._engine.work.take_signal.submit
        taken = yield from self._tell(asked, self._target, signal, name=place)
        if taken.found:
            known[place] = taken.value
            return
        until, notes = known.get(f"{place} until"), []
        now = yield self._engine.now
        if until is None and timeout is not None:
            until = now + int(timeout * MICROSECONDS)
            notes = [(f"{place} until", until)]
        if until is None or now < until:
            raise Suspended(
                WakeCondition(until=until, target=self._target, signals=(signal,)), *notes
            )
        yield from self._remember(place, {"timeout": True})

    def ask(self, question: object, name: str | None = None) -> Flow[Any]:
        return self._ask(self._take_place("ask", name), question)

    def _ask(self, place: str, question: object) -> Flow[Any]:
        known = yield from self._remembered()
        if place in known:
            return known[place]
        self._refuse_to_wait("ask")
        # A question that still stands was not answered: its hold was lifted in another way.
        if f"{place} asked" not in known or (yield self._read_task).question is not None:
            note = {"question": question, "feedback": self._assignment.feedback}
            raise Asking(question, (f"{place} asked", note))
        return (yield from self._remember(place, self._assignment.own_feedback))

    def spawn(self, task: NewTask) -> Flow[list[str]]:
        return self._spawn("spawn", self.places.take_spawn(task.title), [task])

    def _spawn(self, name: str, place: str, tasks: list[NewTask]) -> Flow[list[str]]:
        known = yield from self._remembered()
        if place not in known:
            self._refuse_to_wait(name)
            for task in tasks:
                with as_said():
                    self._keep(Kind.CHILD, [getattr(task, each) for each in _OF_CHILD])
            with as_said():
                made = yield from self._tell(self._engine.work.spawn.submit, tasks, name=place)
            known[place] = made.value
        ids: list[str] = known[place]
        return ids

    def map(
        self, callee: Callee, calls: Iterable[tuple[Any, ...]], name: str | None = None
    ) -> Flow[list[Any]]:
        requests = [callee.request(*each) for each in calls]
        if len(requests) > MAX_BATCH:
            reason = f"{len(requests)} items are more than the {MAX_BATCH} of one map; map a part"
            raise InvalidInput("map", f"{reason} of them at a time")
        if not requests:
            return _nothing()
        place = self._take_place(f"map {requests[0].title}", name)
        return self._map(callee, self._spawn("map", place, requests))

    def _map(self, callee: Callee, spawned: Flow[list[str]]) -> Flow[list[Any]]:
        ids = yield from spawned
        children = yield lambda: self._engine.work.children(self._name[0], ids)
        if not all(child.status in _ENDED for child in children):
            raise Suspended(WakeCondition(children=True))
        return [_output(child, callee) for child in children]

    def artifact(self, artifact: Artifact) -> Flow[Path]:
        known = yield from self._remembered()
        self._refuse_to_wait("artifact")
        yield from self._guard()
        size = artifact.told["bytes"]
        yield lambda: self._engine.work.check_room(*self._name, artifact.effect, size)
        try:
            yield lambda: artifact.lay_aside(self._engine.store)
            kept = known.get(artifact.effect)
            if kept is None:
                kept = yield from self._remember(artifact.effect, artifact.told, beside=size)
            if kept != artifact.told:
                advice = "give each its own name, or make what it holds in an effect"
                raise InvalidCall("artifact", f"{artifact.conflict}; {advice}")
            yield artifact.put_in_place
        finally:
            artifact.discard()
        return artifact.path

    def lease(self, key: str, ttl: float) -> Flow[NamedLease | None]:
        self._refuse_to_wait("lease")
        with as_said():
            self._keep(Kind.NAME, key)
        yield from self._guard()
        with as_said():
            acquired = self._engine.leases.acquire.submit(key, self._name[0], ttl=ttl)
        acquired.add_done_callback(self._hold)
        lease: NamedLease | None = yield acquired
        return lease

    def _hold(self, acquired: Future[NamedLease | None]) -> None:
        """Note what was acquired, though whoever asked for it may be cancelled or gone by now."""
        if acquired.cancelled() or acquired.exception() is not None:
            return
        if (lease := acquired.result()) is not None:
            self._leases.append(lease)
        if self._gave_back:
            self.give_back_leases()

    def give_back_leases(self) -> None:
        """Let others have what was held; what cannot be given back runs out."""
        self._gave_back = True
        # Taken out one by one: what comes late is given back in the thread that brings it.
        with suppress(IndexError, ShuttingDown):
            while True:
                lease = self._leases.pop()
                self._engine.leases.release.submit(lease.key, lease.token)

    def refuse_late(self) -> None:
        """Refuse what a function that has raised would begin, but for what is of its effects."""
        if self.closed and not self.places.effects_around():
            raise AttemptEnded(f"this attempt of {self._name[0]} has raised by now")

    def _guard(self) -> Flow[None]:
        self._demand((yield lambda: self._engine.work.guard(*self._name)))

    def _refuse_to_wait(self, name: str) -> None:
        """Before anything is done that could not be remembered."""
        file = self._engine.file
        if would_deadlock(file, blocking=self._blocking):
            raise InvalidWait(name, file)

    def _read_task(self) -> Task:
        return self._assignment.task

    def _remembered(self) -> Flow[dict[str, Any]]:
        if not self._read:
            # Added to, and never another: a branch beside this one may have read it by now.
            self._known |= yield lambda: self._engine.work.effects(self._name[0])
            self._read = True
        return self._known

    def _remember(self, place: str, value: object, **more: int) -> Flow[Any]:
        submit = self._engine.work.record_effect.submit
        kept = yield from self._tell(submit, place, value, **more)
        known = yield from self._remembered()
        known[place] = kept.value
        return kept.value

    def _tell(
        self, send: Callable[..., Future[EffectRecord]], *said: object, **options: object
    ) -> Flow[EffectRecord]:
        """What was done is not done again because the store could not be told at once."""
        told: EffectRecord = yield insist(lambda: send(*self._name, *said, **options), self._over)
        self._demand(told.answer)
        return told

    def _demand(self, answer: TransitionResult) -> None:
        if not answer.ok:
            task_id, _ = self._name
            raise AttemptEnded(f"this attempt of {task_id} may not act: {answer.reason}")


def _nothing() -> Flow[list[Any]]:
    yield from ()
    return []


_ENDED = {Status.DONE, Status.FAILED, Status.CANCELLED}


def _output(child: Child, callee: Callee) -> object:
    if child.status is not Status.DONE:
        raise TaskFailed(child.id, child.status, child.error)
    return callee.read_output(child.output)


def seconds(field: str, value: float | str) -> float:
    found = parse_duration(field, value)
    # Said this way round, because what is no number is neither less nor more.
    if not abs(found) <= LONGEST:
        raise InvalidInput(field, f"{value!r} cannot be waited for; at most 200 years can")
    return found


def callee_of(function: object) -> Callee:
    if not hasattr(function, "request") or not hasattr(function, "read_output"):
        raise InvalidInput("function", f"{function!r} is no task; put @hf.task above it")
    found: Callee = function
    return found
