"""Attempt pipe: the calls by which a function in a process of its own reaches its worker.

The process of the function is as trusted as the worker: it is the same program of the same user.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from holdfast.engine.state.reports import FinalReport
from holdfast.errors import ShuttingDown
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment, NamedLease
from holdfast.settings import Settings
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import PreparedReport
from holdfast.worker.attempt.function_options import FunctionCall, FunctionOptions
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.store_port import StorePort

# Calls by which a function only looks at its attempt; they are no sign that it goes on.
LOOKS = frozenset({"now", "task", "deadline"})
REPORT, ENDED, BROKEN = "report", "ended", "broken"


@dataclass(frozen=True, kw_only=True)
class FunctionJob:
    """All that the process of a function is told before it begins."""

    call: FunctionCall
    options: FunctionOptions
    settings: Settings
    store: str
    file: Any
    # The fields of the assignment that are JSON.
    assignment: Mapping[str, Any]
    redactions: tuple[Redaction, ...]
    log_level: int


class PipedCall(NamedTuple):
    number: int
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class PipedError(NamedTuple):
    """An error as it crosses the pipe: many classes could not be made from their `args` alone."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    fields: dict[str, Any]

    @classmethod
    def of(cls, error: BaseException) -> PipedError:
        return cls(type(error), error.args, dict(error.__dict__))

    def make(self) -> BaseException:
        made = self.kind.__new__(self.kind, *self.args)
        made.__dict__.update(self.fields)
        return made


class PipedReply(NamedTuple):
    number: int
    value: Any
    error: PipedError | None


class PipeServer:
    """The worker's end of the pipe: it carries out the calls of one attempt, one after the other.

    The report that the function ends with is kept, and the worker sends it once nothing of the
    function runs any more.
    """

    def __init__(
        self,
        store: StorePort,
        assignment: Assignment,
        context: AttemptContext,
        on_call: Callable[[], object],
    ) -> None:
        self._on_call = on_call
        self.report: PreparedReport | None = None
        # Whether the function has heard that its attempt is over.
        self.ended = False
        self.broken: str | None = None
        work = store.work
        self._leases = store.leases
        # The named leases that the function has, which its process may be killed with.
        self._held: list[NamedLease] = []
        self._calls: Mapping[str, Callable[..., Any]] = {
            "now": store.now,
            "task": lambda: assignment.task,
            "deadline": lambda: context.deadline,
            "log": context.log,
            "log_end": context.log_end,
            "progress": context.progress,
            "guard": work.guard,
            "effects": work.effects,
            "children": work.children,
            "check_room": work.check_room,
            "trace_of": work.trace_of,
            "record_effect": work.record_effect,
            "take_signal": work.take_signal,
            "spawn": work.spawn,
            "acquire": self._acquire,
            "release": self._release,
            REPORT: self._keep_report,
            ENDED: self._note_end,
            BROKEN: self._note_broken,
        }

    def serve(self, connection: Connection) -> None:
        """Answer calls until the process of the function has gone, and give back its leases."""
        try:
            self._answer_calls(connection)
        finally:
            with suppress(ShuttingDown):
                for lease in self._held:
                    self._leases.release.submit(lease.key, lease.token)

    def _acquire(self, key: str, name: str, *, ttl: float) -> NamedLease | None:
        lease = self._leases.acquire(key, name, ttl=ttl)
        if lease is not None:
            self._held.append(lease)
        return lease

    def _release(self, key: str, token: str) -> TransitionResult:
        self._held = [each for each in self._held if each.token != token]
        return self._leases.release(key, token)

    def _answer_calls(self, connection: Connection) -> None:
        while True:
            try:
                call = connection.recv()
            except (EOFError, OSError):
                return
            except Exception as error:  # noqa: BLE001 - it is the step's to fail with
                self.broken = f"it has said what its worker cannot read: {error!r}"
                return
            if call.name not in LOOKS:
                self._on_call()
            try:
                value = self._calls[call.name](*call.args, **call.kwargs)
                reply = PipedReply(call.number, value, None)
            except BaseException as error:  # noqa: BLE001 - it is the function's to see
                reply = PipedReply(call.number, None, PipedError.of(error))
            try:
                connection.send(reply)
            except OSError:
                return

    def _keep_report(self, report: FinalReport, raised: str | None, shown: str | None) -> None:
        self.report = PreparedReport(report, raised, shown)

    def _note_end(self) -> None:
        self.ended = True

    def _note_broken(self, why: str) -> None:
        self.broken = why


class PipeClient:
    """The function's end of the pipe; several threads may call at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._numbers = count()
        self._replies: dict[int, Future[Any]] = {}
        self._gone = False
        threading.Thread(name="holdfast-pipe", target=self._receive, daemon=True).start()

    def submit(self, name: str, /, *args: Any, **kwargs: Any) -> Future[Any]:
        reply: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            self._replies[number] = reply
            try:
                self._connection.send(PipedCall(number, name, args, kwargs))
            except OSError:
                self._gone = True
            except BaseException:
                # It cannot be written down for another process.
                del self._replies[number]
                raise
        if self._gone:
            self._fail_all()
        return reply

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store gives
        return self.submit(name, *args, **kwargs).result()

    def _receive(self) -> None:
        try:
            while True:
                reply = self._connection.recv()
                error = None if reply.error is None else reply.error.make()
                found = self._replies.pop(reply.number)
                if error is None:
                    found.set_result(reply.value)
                else:
                    found.set_exception(error)
        except Exception:  # noqa: BLE001 - nobody hears of replies that cannot be read either
            self._gone = True
            self._fail_all()

    def _fail_all(self) -> None:
        """Fail the calls that nobody answers any more."""
        while self._replies:
            _, waiting = self._replies.popitem()
            waiting.set_exception(AttemptEnded("the worker of this function is gone"))
