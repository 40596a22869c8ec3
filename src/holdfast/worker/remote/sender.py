"""Operation sender: operations sent to a server, and the attempts that a worker elsewhere holds."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.core.operation import Complete, Fail, Operation, Release
from holdfast.engine.lines import KeepAside, OpenLine
from holdfast.engine.state.durable import AskQuestion, Notes, RecordEffect, Suspend
from holdfast.engine.surroundings.workers import AnnounceWorker, ForgetWorker, NoteStop
from holdfast.errors import InvalidInput, StoreUnreachable
from holdfast.model.effect import EffectRecord
from holdfast.model.result import TransitionResult
from holdfast.model.task import Assignment, Renewal
from holdfast.model.trace import derive_trace_id
from holdfast.model.worker import DRAIN, EVICT
from holdfast.model.workflow.line import Draft, OpenedLine
from holdfast.store.group_commit.entries import Entry
from holdfast.worker.remote.assignment_format import Prefetch
from holdfast.worker.remote.client import CallRefused, ServerClient
from holdfast.worker.remote.line_format import pack_draft, pack_new_head, unpack_line

MOST_HELD = 10_000
# So many reports may be on their way at once.
REPORTS_AT_ONCE = 16
PAUSE = 0.5
# The orders that a worker may get: to leave when its attempts are done, or at once.
STOP_COMMANDS = frozenset({DRAIN, EVICT})

SentReport = Complete | Fail | Release | AskQuestion | Suspend | KeepAside | NoteStop

log = logging.getLogger("holdfast.worker")


class HeldAttempts:
    """The assignments of a worker elsewhere; those used least recently are forgotten."""

    def __init__(self) -> None:
        self._by_attempt: dict[tuple[str, int], tuple[Assignment, Prefetch]] = {}
        # Moving an entry to the end takes it out for a moment.
        self._lock = threading.RLock()

    def add(self, assignment: Assignment, prefetch: Prefetch) -> None:
        with self._lock:
            self._by_attempt[assignment.task_id, assignment.attempt] = (assignment, prefetch)
            while len(self._by_attempt) > MOST_HELD:
                del self._by_attempt[next(iter(self._by_attempt))]

    def token(self, task_id: str, fence: int) -> str:
        with self._lock:
            found = self._by_attempt.get((task_id, fence))
        if found is None:
            raise InvalidInput("token", "this worker does not hold that attempt")
        return found[0].token

    def find_newest_token(self, task_id: str) -> str:
        """The token of the latest held attempt of a task."""
        return self.token(task_id, max(self._list_attempts(task_id), default=0))

    def find_prefetch(self, task_id: str) -> Prefetch:
        with self._lock:
            return self._by_attempt[task_id, max(self._list_attempts(task_id))][1]

    def find_trace(self, root: str) -> str:
        """The trace of the run or task that a held attempt belongs to."""
        for assignment, prefetch in reversed(self._list_all()):
            if root in {assignment.run_id, assignment.task_id}:
                return prefetch.trace_id
        return derive_trace_id(root)

    def find_held(self, wanted: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
        """The given attempts that are held here; asking keeps long-running attempts held."""
        with self._lock:
            found = {each for each in wanted if each in self._by_attempt}
            self._by_attempt |= {each: self._by_attempt.pop(each) for each in found}
        return found

    def secrets(self, workflow: str, version: str) -> frozenset[str]:
        """The names of the secrets that a version of a workflow names."""
        for assignment, prefetch in reversed(self._list_all()):
            if (assignment.workflow, assignment.workflow_version) == (workflow, version):
                return prefetch.secrets
        return frozenset()

    def _list_all(self) -> list[tuple[Assignment, Prefetch]]:
        with self._lock:
            return list(self._by_attempt.values())

    def _list_attempts(self, task_id: str) -> list[int]:
        with self._lock:
            return [attempt for task, attempt in self._by_attempt if task == task_id]


class OperationSender:
    """Sends operations from threads of its own, and gives futures as the writer does."""

    def __init__(self, client: ServerClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._threads = ThreadPoolExecutor(REPORTS_AT_ONCE, "holdfast-remote")
        self.held = HeldAttempts()
        self.process: str | None = None
        self._stop_command: str | None = None

    def submit(self, operation: Operation) -> Future[Any]:
        return self._threads.submit(self._send, operation)

    def renew_each(self, renewals: Sequence[Renewal], seconds: float) -> list[Future[Any]]:
        """Renew leases with one call; gives a future for each."""
        replies: list[Future[Any]] = [Future() for _ in renewals]
        self._threads.submit(self._renew, renewals, seconds, replies)
        return replies

    def enter(self, entry: Entry[Operation], entered: Callable[[], None]) -> None:
        entered()
        # The caller's context, so that the request belongs to the caller's span.
        self._threads.submit(copy_context().run, self._send_entry, entry)

    def note_stop_command(self, answer: Mapping[str, Any]) -> None:
        """Keep an order to go, because the next answer may come from another server."""
        told = answer.get("told")
        if isinstance(told, str) and told in STOP_COMMANDS:
            self._stop_command = told

    def close(self) -> None:
        self._threads.shutdown()

    def _send_entry(self, entry: Entry[Operation]) -> None:
        try:
            reply: object = self._send(entry.operation)
        except Exception as error:  # noqa: BLE001 - it is the report's to hear
            reply = error
            if isinstance(error, StoreUnreachable):
                # The receiver of this error sends the entry again at once.
                self._clock.sleep(PAUSE)
        entry.deliver(reply)

    def _renew(
        self, renewals: Sequence[Renewal], seconds: float, replies: Sequence[Future[Any]]
    ) -> None:
        answers: Sequence[object]
        try:
            answers = self._client.renew([_encode_renewal(each) for each in renewals], seconds)
        except Exception as error:  # noqa: BLE001 - whoever asked hears of it
            answers = [error] * len(replies)
        for reply, answer in zip(replies, answers, strict=True):
            if isinstance(answer, Exception):
                reply.set_exception(answer)
            else:
                reply.set_result(answer)

    def _send(self, operation: Any) -> object:  # noqa: ANN401 - one of the writer's
        if isinstance(operation, AnnounceWorker):
            return self._announce(operation.name)
        if isinstance(operation, ForgetWorker):
            left = {"worker": operation.name, "process": self.process}
            return self._client.transition("/claims/leave", left)
        if isinstance(operation, RecordEffect):
            return self._record(operation)
        if isinstance(operation, OpenLine):
            return self._open_line(operation)
        if isinstance(operation, SentReport):
            verb, said = _encode_report(operation)
            body = {"token": self._find_token(operation), **said}
            shape = {} if isinstance(operation, NoteStop) else {"task": dict}
            return self._client.transition(f"/claims/{operation.task_id}/{verb}", body, **shape)
        return TransitionResult(ok=True)

    def _announce(self, worker: str) -> dict[str, Any]:
        """Show a worker without room as live, and get its orders, by a renewal of no leases."""
        asked: dict[str, Any] = {"worker": worker, "process": self.process, "leases": []}
        self.note_stop_command(self._client.post("/claims/renew", asked, leases=list))
        return {"told": self._stop_command}

    def _open_line(self, operation: OpenLine) -> OpenedLine:
        body = _without_nulls(
            token=self._find_token(operation),
            base=operation.base,
            repository=operation.repository,
            host=operation.host,
        )
        try:
            told = self._client.post(f"/claims/{operation.task_id}/line", body, ok=bool)
        except CallRefused as refused:
            return OpenedLine(answer=refused.answer)
        line = None if told.get("line") is None else unpack_line(told["line"])
        return OpenedLine(answer=TransitionResult(ok=True), line=line)

    def _record(self, operation: RecordEffect) -> EffectRecord:
        path = f"/claims/{operation.task_id}/effects"
        body = {"token": self._find_token(operation), "name": operation.name}
        try:
            told = self._client.post(
                path, {**body, "value": _decode_json(operation.value)}, name=str
            )
        except CallRefused as refused:
            return EffectRecord(answer=refused.answer, found=False)
        return EffectRecord(answer=TransitionResult(ok=True), value=told.get("value"))

    def _find_token(self, operation: Any) -> str:  # noqa: ANN401 - a report
        return self.held.token(operation.task_id, operation.fence)


def _encode_report(operation: SentReport) -> tuple[str, Any]:
    """The verb of a report, and its body without the token."""
    match operation:
        case Complete() | Fail():
            return _encode_result(operation)
        case Release():
            return _encode_release(operation)
        case AskQuestion():
            return "ask", {
                "question": _decode_json(operation.question),
                **_encode_notes(operation.notes),
                **_encode_draft(operation.draft),
            }
        case Suspend():
            noted = _encode_notes(operation.notes) | _encode_draft(operation.draft)
            return "release", {"until": operation.until, **noted}
        case KeepAside():
            told = {"base": operation.base, "sha": operation.sha}
            return "aside", {"attempt": operation.former, **told}
        case NoteStop():
            return "stop", {"ended": operation.ended, "left": operation.left}


def _encode_result(operation: Complete | Fail) -> tuple[str, Any]:
    usage = _decode_json(operation.usage)
    if isinstance(operation, Complete):
        commit = None if operation.head is None else pack_new_head(operation.head)
        output = _decode_json(operation.output)
        return "complete", {"output": output, "usage": usage, **_without_nulls(commit=commit)}
    left = None if operation.left is None else pack_draft(operation.left)
    more = _without_nulls(left=left, anew=operation.anew or None)
    said = {"error": _decode_json(operation.error), "retryable": operation.retryable}
    return "fail", {**said, "usage": usage, **more}


def _encode_renewal(renewal: Renewal) -> dict[str, Any]:
    return _without_nulls(
        task_id=renewal.task_id,
        token=renewal.token,
        progress=renewal.progress,
        usage=renewal.usage,
    )


def _encode_release(operation: Release) -> tuple[str, Any]:
    if operation.limit is None:
        return "release", _without_nulls(until=operation.until) | _encode_draft(operation.draft)
    usage = _decode_json(operation.usage)
    said = _without_nulls(limit_until=operation.limit, usage=usage)
    return "fail", said | _encode_draft(operation.draft)


def _encode_draft(draft: Draft | None) -> dict[str, Any]:
    return {} if draft is None else {"draft": pack_draft(draft)}


def _encode_notes(notes: Notes) -> dict[str, Any]:
    if not notes:
        return {}
    # Only functions wait for several things at once, and no function runs elsewhere.
    ((name, value),) = notes
    return {"note": {"name": name, "value": _decode_json(value)}}


def _decode_json(text: str | None) -> Any:  # noqa: ANN401 - JSON is any value
    return None if text is None else json.loads(text)


def _without_nulls(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
