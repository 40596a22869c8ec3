"""Attempt context: what a step is given, and what its worker asks of it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from holdfast.engine.input.validation import JSON_SCALAR_LIMIT
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment
from holdfast.model.text import encode_json
from holdfast.model.workflow.line import Draft
from holdfast.worker.attempt.attempt_lease import AttemptEnded, AttemptLease
from holdfast.worker.attempt.durable import (
    Flow,
    TaskMemory,
    callee_of,
    parse_seconds,
    refuse_for_good,
)
from holdfast.worker.attempt.durable_flows import raise_again, run_in_coroutine, run_in_thread
from holdfast.worker.attempt.effect_names import SharedName
from holdfast.worker.attempt.json_values import decode_result, decode_signal
from holdfast.worker.attempt.step_context import AsyncContext, Context, Wait
from holdfast.worker.attempt.step_output import StepLog
from holdfast.worker.attempt.unawaited_calls import NotAwaited, UnawaitedCalls, noted_read
from holdfast.worker.attempt.waits import Suspended
from holdfast.worker.files.artifacts import Artifact
from holdfast.worker.files.attempt_log import append_to_log
from holdfast.worker.files.state_directory import StateDirectory, find_state_directory
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.secrets.secret_rules import Cleaner, WrittenKind, redact_or_refuse
from holdfast.worker.store_port import StorePort

logger = logging.getLogger("holdfast.worker")


_CLEANS_NOTHING = Cleaner()


class AttemptContext(Context, AsyncContext):
    """The context of one attempt, for its step and for the worker; a coroutine awaits operations.

    What it gives to a coroutine is a coroutine, as `AsyncContext` says.
    """

    asynchronous = False
    latest_progress: Any = None
    # What the step has used so far, as its record tells it.
    latest_usage: Any = None
    # The commit of what the attempt leaves, where it works in a workspace and is not done.
    draft: Draft | None = None
    _token_was_read = False
    _step_log: StepLog | None = None
    _log_is_closed = False
    # Called as soon as the attempt is over.
    interrupt: Callable[[], object] | None = None
    # Called when the step has a new progress to tell.
    on_progress: Callable[[], object] | None = None
    # Called when the step does something that shows that it goes on.
    on_active: Callable[[], object] | None = None

    def __init__(
        self,
        store: StorePort,
        assignment: Assignment,
        lease: AttemptLease,
        clean: Cleaner = _CLEANS_NOTHING,
    ) -> None:
        self._store = store
        self._assignment = assignment
        self._lease = lease
        self.clean = clean

    @cached_property
    def unawaited(self) -> UnawaitedCalls:
        """The operations that the function has called and not begun to await."""
        return UnawaitedCalls()

    @cached_property
    def _memory(self) -> TaskMemory:
        is_over, blocking = lambda: self.ended, not self.asynchronous
        refuse_secret = self._refuse_secret
        memory = TaskMemory(
            self._store, self._assignment, is_over, refuse_secret, blocking=blocking
        )
        memory.on_recorded = self.note_active
        return memory

    def _refuse_secret(self, kind: WrittenKind, value: object) -> None:
        """Refuse a value that code reads again, if it holds a secret."""
        redact_or_refuse(kind, value, self.clean)

    @cached_property
    def _directory(self) -> StateDirectory:
        return find_state_directory(self._store.settings.url)

    @property
    def task_id(self) -> str:
        return self._assignment.task_id

    @property
    def run_id(self) -> str | None:
        return self._assignment.run_id

    @property
    def attempt(self) -> int:
        return self._assignment.attempt

    @property
    def token(self) -> str:
        if not self._token_was_read:
            self._token_was_read = True
            self._keep_out_token()
        return self._assignment.token

    def _keep_out_token(self) -> None:
        """Redact the token too, from when the step has read it: earlier it cannot write it down."""
        own = Redaction({"HOLDFAST_ATTEMPT_TOKEN": self._assignment.token})
        self.clean = self.clean.with_redaction(own)

    @property
    def deadline(self) -> float:
        return self._lease.deadline

    @property
    def ended(self) -> bool:
        # The clock counts too: after a suspend the step may run before the heartbeat does.
        return self._lease.is_set() or self._store.clock.monotonic() >= self._lease.deadline

    @property
    def refusal(self) -> SharedName | None:
        """The shared name by which the step has failed, also when the step caught the error."""
        memory: TaskMemory | None = self.__dict__.get("_memory")
        return None if memory is None else memory.names.refusal

    @property
    def suspension(self) -> Suspended | None:
        """The wait for which the step was left, also when the step caught it."""
        memory: TaskMemory | None = self.__dict__.get("_memory")
        return None if memory is None else memory.suspension

    async def refuse_unawaited(self) -> None:
        """Raise `NotAwaited` if the function has returned with an operation that nobody awaits."""
        unawaited: UnawaitedCalls | None = self.__dict__.get("unawaited")
        if unawaited is not None and (call := await unawaited.close()) is not None:
            raise NotAwaited(call)

    async def end_effects(self) -> None:
        """Wait, once the function has raised, for the effects that are still under way beside it.

        The function is tried again, and its effects must not be done twice. An effect that takes
        longer than a lease is not waited for: nobody knows whether it will end.
        """
        self.unawaited.forget_all()
        memory: TaskMemory | None = self.__dict__.get("_memory")
        if memory is None or self.ended or memory.suspension is not None:
            return
        memory.closed = True
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(memory.waits.wait_until_quiet(), self._store.settings.lease)

    @noted_read
    def check(self) -> TransitionResult:
        """Ask the store whether this attempt may still act."""
        return self._store.work.guard(self.task_id, self.token)

    @noted_read
    def guard(self) -> None:
        """Call before a side effect; raises `AttemptEnded` when it must not happen."""
        if (left := self.suspension) is not None:
            raise left
        answer = self.check()
        if not answer.ok:
            self._lease.set()
            message = f"attempt {self.attempt} of {self.task_id} may not act: {answer.reason}"
            raise AttemptEnded(message)

    def progress(self, note: object) -> None:
        # Checked here, where the step sees the error: a bad note would fail the renewal of all
        # leases of the worker.
        with refuse_for_good():
            clean = redact_or_refuse(WrittenKind.PROGRESS, note, self.clean)
            text = encode_json("progress", clean, limit=JSON_SCALAR_LIMIT)
        self.note_progress(json.loads(text))

    def note_progress(self, note: object) -> None:
        """Have others told of a progress that may be shown."""
        self.latest_progress = note
        self.note_active()
        if self.on_progress is not None:
            self.on_progress()

    def note_active(self) -> None:
        """Note that the step goes on: it has said, done or asked something."""
        if self.on_active is not None:
            self.on_active()

    def log(self, text: object) -> None:
        if self.ended:
            raise AttemptEnded(f"attempt {self.attempt} of {self.task_id} has ended")
        if (log := self.open_step_log()) is not None:
            log.write_line(str(text))

    def open_step_log(self) -> StepLog | None:
        """The log of this attempt; None once it is closed, or where it can have none.

        Steps that are no functions write their logs themselves.
        """
        self.note_active()
        if self._assignment.work is None and self._step_log is None and not self._log_is_closed:
            try:
                path = self._directory.log(self.task_id, self.attempt)
            except HoldfastError as error:
                self._log_is_closed = True
                logger.warning("what a step writes is in no log: %s", error)
                return None
            # Threads of one step may come here at the same time.
            log: StepLog = self.__dict__.setdefault("_step_log", StepLog(path, self._cleaner))
            if self._log_is_closed:
                log.close()
        return self._step_log

    def close_step_log(self) -> None:
        """Write nothing more into the log, because the function has returned."""
        self._log_is_closed = True
        if (log := self.__dict__.pop("_step_log", None)) is not None:
            log.close()

    def log_end(self, text: str) -> None:
        """Add how the function has ended to its log, which is closed or still open."""
        try:
            path = self._directory.log(self.task_id, self.attempt)
            append_to_log(path, text.encode("utf-8", "replace"))
        except HoldfastError as error:
            logger.warning("how a step has ended is not in its log: %s", error)

    def _cleaner(self) -> Cleaner:
        return self.clean

    def artifact(self, name: str, content: str | bytes | Path) -> Any:  # noqa: ANN401
        return self._run_operation(
            "artifact", name, lambda memory: memory.artifact(self._make_artifact(name, content))
        )

    def _make_artifact(self, name: str, content: str | bytes | Path) -> Artifact:
        if isinstance(content, str):
            kept = _read_content(redact_or_refuse(WrittenKind.TEXT, content, self.clean))
        else:
            kept = redact_or_refuse(WrittenKind.FILE, _read_content(content), self.clean, "content")
        return Artifact(
            self._directory,
            self.task_id,
            redact_or_refuse(WrittenKind.NAME, name, self.clean),
            kept,
        )

    def lease(self, key: str, ttl: Wait) -> Any:  # noqa: ANN401
        return self._run_operation(
            "lease", key, lambda memory: memory.lease(key, parse_seconds("ttl", ttl))
        )

    def give_back_leases(self) -> None:
        """Let others have what the function held, now that it is left."""
        memory: TaskMemory | None = self.__dict__.get("_memory")
        if memory is not None:
            memory.give_back_leases()

    def effect(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self._run_operation(
            "effect",
            name,
            lambda memory: memory.effect(
                name,
                _bind_arguments(function, args, kwargs),
                lambda value: decode_result(function, value),
            ),
        )

    def effect_id(self, name: str) -> str:
        with refuse_for_good():
            effect_name = self._memory.names.find_effect_name(name)
        return f"{self.task_id}/{self._assignment.epoch}/{effect_name}"

    def sleep(self, duration: Wait, *, name: str | None = None) -> Any:  # noqa: ANN401
        return self._run_operation(
            "sleep",
            duration,
            lambda memory: memory.sleep(parse_seconds("duration", duration), name),
        )

    def wait_for(
        self,
        signal: str,
        *,
        type: Any = None,  # noqa: A002, ANN401 - as dataclasses and pydantic call it
        timeout: Wait | None = None,
        name: str | None = None,
    ) -> Any:  # noqa: ANN401 - awaited in a coroutine
        return self._run_operation(
            "wait_for",
            signal,
            lambda memory: _decode_signal(
                memory.wait_for(
                    signal, None if timeout is None else parse_seconds("timeout", timeout), name
                ),
                partial(decode_signal, signal, type, self.task_id),
            ),
        )

    def ask(self, question: object, *, name: str | None = None) -> Any:  # noqa: ANN401
        return self._run_operation("ask", question, lambda memory: memory.ask(question, name))

    def map(self, function: Any, /, *iterables: Iterable[Any], name: str | None = None) -> Any:  # noqa: ANN401
        return self._run_operation(
            "map",
            function,
            lambda memory: memory.map(callee_of(function), _zip_arguments(iterables), name),
        )

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self._run_operation(
            "call",
            function,
            lambda memory: memory.call(
                callee_of(function), callee_of(function).request(*args, **kwargs)
            ),
        )

    def spawn(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return self._run_operation(
            "spawn",
            function,
            lambda memory: _first_id(memory.spawn(callee_of(function).request(*args, **kwargs))),
        )

    def _run_operation(
        self, method: str, given: object, call: Callable[[TaskMemory], Flow[Any]]
    ) -> Any:  # noqa: ANN401 - or a coroutine
        """Run an operation; `method` and `given` say how the function called it."""
        self.note_active()
        memory, left = self._memory, self._memory.suspension
        # Checked before the operation takes a name: a function that was left takes none.
        if left is not None and self.asynchronous:
            return raise_again(left)
        if left is not None:
            raise left
        memory.refuse_after_raise()
        with refuse_for_good():
            flow = call(memory)
        if not self.asynchronous:
            return run_in_thread(flow, memory)
        return self.unawaited.call(method, given, partial(run_in_coroutine, flow, memory))


def _decode_signal(flow: Flow[Any], decode: Callable[[Any], Any]) -> Flow[Any]:
    return decode((yield from flow))


def _bind_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[[], Any]:
    if not callable(function):
        reason = f"{function!r} is no function; give the function, and its arguments after it"
        raise InvalidInput("effect", reason)
    return lambda: function(*args, **kwargs)


def _read_content(content: object) -> bytes:
    if isinstance(content, Path):
        return content.read_bytes()
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    kind = type(content).__name__
    raise InvalidInput("content", f"is {kind}: give text, bytes, or a Path to read it from")


def _zip_arguments(iterables: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    try:
        return zip(*iterables, strict=False)
    except TypeError as error:
        reason = f"{error}; give a list for each argument of the task"
        raise InvalidInput("map", reason) from error


def _first_id(flow: Flow[list[str]]) -> Flow[str]:
    ids = yield from flow
    return ids[0]
