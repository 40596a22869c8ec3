"""What a running step can ask and tell."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from holdfast.engine.core.sync_async import reading
from holdfast.engine.input.validation import JSON_SCALAR_LIMIT
from holdfast.errors import InvalidInput, StoreUnwritable
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment
from holdfast.model.text import encode_json
from holdfast.worker.attempt.attempt_lease import AttemptEnded, Tenure
from holdfast.worker.attempt.durable import Flow, Memory, as_said, callee_of, seconds
from holdfast.worker.attempt.durable_flows import await_here, leave_again, wait_here
from holdfast.worker.attempt.effect_names import SharedName
from holdfast.worker.attempt.waits import Suspended
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.files.attempt_log import append
from holdfast.worker.files.state_directory import State, state_of
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.secrets.secret_rules import Kind, admit, cleaner
from holdfast.worker.store_port import Office

logger = logging.getLogger("holdfast.worker")


def _as_it_is(value: object) -> object:
    return value


class Context:
    """One attempt, as its step sees it."""

    asynchronous = False
    noted: Any = None
    _told_token = False
    # What is to be done, besides, as soon as the attempt is over.
    interrupt: Callable[[], object] | None = None

    def __init__(
        self,
        engine: Office,
        assignment: Assignment,
        ended: Tenure,
        clean: Callable[[Any], Any] = _as_it_is,
    ) -> None:
        self._engine = engine
        self._assignment = assignment
        self._ended = ended
        self.clean = clean

    @cached_property
    def _memory(self) -> Memory:
        over, blocking = lambda: self.ended, not self.asynchronous
        keep = self._keep
        return Memory(self._engine, self._assignment, over, keep, blocking=blocking)

    def _keep(self, kind: Kind, value: object) -> None:
        """Refuse a secret in what code reads again."""
        admit(kind, value, self.clean)

    @cached_property
    def _state(self) -> State:
        return state_of(self._engine.settings.url)

    @property
    def task_id(self) -> str:
        """The id of the task that is being worked on."""
        return self._assignment.task_id

    @property
    def run_id(self) -> str | None:
        """The id of its run, if it is part of one."""
        return self._assignment.run_id

    @property
    def attempt(self) -> int:
        """The fence: it grows with every lease of this task."""
        return self._assignment.attempt

    @property
    def token(self) -> str:
        """The secret of this attempt, which every write under its lease carries."""
        if not self._told_token:
            self._told_token = True
            self._keep_out_token()
        return self._assignment.token

    def _keep_out_token(self) -> None:
        """Only who has asked for the token can write it down."""
        others = self.clean
        own = Redaction({"HOLDFAST_ATTEMPT_TOKEN": self._assignment.token})
        without_own = cleaner(lambda: own)
        self.clean = lambda value: without_own(others(value))

    @property
    def deadline(self) -> float:
        """Until when the lease lasts as far as is known, on a clock that counts suspend."""
        return self._ended.deadline

    @property
    def ended(self) -> bool:
        """Whether this attempt is known to be over: cancelled, lost or out of time."""
        # By the clock too: after a suspend the step may be awake before the heartbeat is.
        return self._ended.is_set() or self._engine.clock.monotonic() >= self._ended.deadline

    @property
    def refusal(self) -> SharedName | None:
        """What the step was refused and has failed by, whatever it makes of that."""
        memory: Memory | None = self.__dict__.get("_memory")
        return None if memory is None else memory.places.refusal

    @property
    def left(self) -> Suspended | None:
        """The wait that the step was left for, whatever it makes of that."""
        memory: Memory | None = self.__dict__.get("_memory")
        return None if memory is None else memory.left

    async def end_effects(self) -> None:
        """Once the function has raised, let the effects that are under way beside that end.

        It is tried again, and they are not to be done twice. Of one that goes on for longer than a
        lease nobody knows whether it will end.
        """
        memory: Memory | None = self.__dict__.get("_memory")
        if memory is None or self.ended or memory.left is not None:
            return
        memory.closed = True
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(memory.waits.quiet(), self._engine.settings.lease)

    @reading
    def check(self) -> TransitionResult:
        """Ask the store whether this attempt may still act."""
        return self._engine.work.guard(self.task_id, self.token)

    @reading
    def guard(self) -> None:
        """Call before a side effect; raises `AttemptEnded` when it must not happen."""
        if (left := self.left) is not None:
            raise left
        answer = self.check()
        if not answer.ok:
            self._ended.set()
            message = f"attempt {self.attempt} of {self.task_id} may not act: {answer.reason}"
            raise AttemptEnded(message)

    def progress(self, note: object) -> None:
        """Say how far the step is; it is stored with the next renewal of the lease."""
        # Refused here, where the step sees it: one bad note would spoil the renewal of all leases.
        with as_said():
            clean = admit(Kind.PROGRESS, note, self.clean)
            text = encode_json("progress", clean, limit=JSON_SCALAR_LIMIT)
        self.noted = json.loads(text)

    def log(self, text: object) -> None:
        """Add a line to the log of this attempt, which `holdfast logs` shows.

        That it cannot be written is told, and is no reason for a step to fail.
        """
        if self.ended:
            raise AttemptEnded(f"attempt {self.attempt} of {self.task_id} has ended")
        line = str(admit(Kind.LOG, str(text), self.clean))
        ending = "" if line.endswith("\n") else "\n"
        path = self._state.log(self.task_id, self.attempt)
        try:
            append(path, f"{line}{ending}".encode("utf-8", "replace"))
        except StoreUnwritable as error:
            logger.warning("a line of a step is not in its log: %s", error)

    def artifact(self, name: str, content: str | bytes | Path) -> Any:  # noqa: ANN401
        """Keep a file under a name, and give its path; the content, or where to read it.

        The same again is the same, and another content under that name is refused.
        """
        return self._edge(lambda memory: memory.artifact(self._artifact(name, content)))

    def _artifact(self, name: str, content: str | bytes | Path) -> Artifact:
        if isinstance(content, str):
            kept = _content_of(admit(Kind.TEXT, content, self.clean))
        else:
            kept = admit(Kind.FILE, _content_of(content), self.clean, "content")
        return Artifact(self._state, self.task_id, admit(Kind.NAME, name, self.clean), kept)

    def lease(self, key: str, ttl: float | str) -> Any:  # noqa: ANN401
        """Hold a name that nobody else holds, and give its lease; None when somebody does.

        It is given back when the function is left, also for a wait, or ends after its `ttl`. Pass
        its `fence` on to whatever is done under it.
        """
        return self._edge(lambda memory: memory.lease(key, seconds("ttl", ttl)))

    def give_back_leases(self) -> None:
        """Let others have what the function held, now that it is left."""
        memory: Memory | None = self.__dict__.get("_memory")
        if memory is not None:
            memory.give_back_leases()

    def effect(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Do something once and remember what it gave, however often the step runs.

        Between doing and remembering it can be done again: pass `effect_id(name)` on as the
        idempotency key where that matters.
        """
        return self._edge(lambda memory: memory.effect(name, _call_of(function, args, kwargs)))

    def effect_id(self, name: str) -> str:
        """The id of the effect under way, inside its function; else of the next of that name.

        It is the same in every attempt, another after a re-open.
        """
        with as_said():
            place = self._memory.places.effect_here(name)
        return f"{self.task_id}/{self._assignment.epoch}/{place}"

    def sleep(self, duration: float | str, *, name: str | None = None) -> Any:  # noqa: ANN401
        """Go on later; meanwhile no worker is held, and the step then runs again from its top.

        A `name` tells it from the sleeps of other branches of the function.
        """
        return self._edge(lambda memory: memory.sleep(seconds("duration", duration), name))

    def wait_for(
        self, signal: str, *, timeout: float | str | None = None, name: str | None = None
    ) -> Any:  # noqa: ANN401 - awaited in a coroutine
        """Wait for `hf.signal(…)` and give its payload; holds no worker meanwhile.

        A `name` tells it from where other branches of the function wait for the same signal.
        """
        return self._edge(
            lambda memory: memory.wait_for(
                signal, None if timeout is None else seconds("timeout", timeout), name
            )
        )

    def ask(self, question: object, *, name: str | None = None) -> Any:  # noqa: ANN401
        """Ask a person and give the answer of `hf.answer(…)`; holds no worker meanwhile.

        A `name` tells it from what other branches of the function ask.
        """
        return self._edge(lambda memory: memory.ask(question, name))

    def map(self, function: Any, *iterables: Iterable[Any], name: str | None = None) -> Any:  # noqa: ANN401
        """Call a task function once for each item, each a task of its own; gives the results.

        A `name` tells it from where other branches of the function map the same task.
        """
        return self._edge(
            lambda memory: memory.map(callee_of(function), _side_by_side(iterables), name)
        )

    def spawn(self, function: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Enqueue a child and give its id, without waiting for it; once, however often it runs.

        A title, `function.using(title=…)`, tells it from what other branches of the function
        spawn: a `name` here is an argument of the child.
        """
        return self._edge(
            lambda memory: _first(memory.spawn(callee_of(function).request(*args, **kwargs)))
        )

    def _edge(self, call: Callable[[Memory], Flow[Any]]) -> Any:  # noqa: ANN401 - or a coroutine
        memory, left = self._memory, self._memory.left
        # Before it has a place: what only a function that was left comes to is nobody's.
        if left is not None and self.asynchronous:
            return leave_again(left)
        if left is not None:
            raise left
        memory.refuse_late()
        with as_said():
            flow = call(memory)
        return await_here(flow, memory) if self.asynchronous else wait_here(flow, memory)


def _call_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[[], Any]:
    if not callable(function):
        reason = f"{function!r} is no function; give the function, and its arguments after it"
        raise InvalidInput("effect", reason)
    return lambda: function(*args, **kwargs)


def _content_of(content: object) -> bytes:
    if isinstance(content, Path):
        return content.read_bytes()
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    kind = type(content).__name__
    raise InvalidInput("content", f"is {kind}: give text, bytes, or a Path to read it from")


def _side_by_side(iterables: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    try:
        return zip(*iterables, strict=False)
    except TypeError as error:
        reason = f"{error}; give a list for each argument of the task"
        raise InvalidInput("map", reason) from error


def _first(flow: Flow[list[str]]) -> Flow[str]:
    ids = yield from flow
    return ids[0]
