"""HTTP steps: a call with a fence and an idempotency key, whose answer is the output."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from holdfast.clock import MICROSECONDS
from holdfast.errors import InvalidInput
from holdfast.model.effect import WakeCondition
from holdfast.model.json_schema import find_misfits
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import HttpCall, StepWork
from holdfast.tracing import write_traceparent
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import StepFailed
from holdfast.worker.attempt.waits import Suspended
from holdfast.worker.secrets.redaction import Redaction, quiet_httpx
from holdfast.worker.steps.answer_bytes import ACCEPTED, AnswerBytes
from holdfast.worker.steps.step_resources import (
    InvalidOutput,
    StepResources,
    give_back_on_store_error,
    read_questions,
)

CONNECT_SECONDS = 10.0
LONGEST_WAIT = 86_400.0
SHOWN = 500
_RETRYABLE_STATUSES = frozenset({408, 425, 429})
_CLIENT_ERRORS = range(300, 500)
_UNSENDABLE = httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError


class HttpFailed(StepFailed):
    """The call got no answer, or one with an error status."""


class HttpStep:
    """One attempt of a step that is an HTTP call."""

    def __init__(
        self,
        resources: StepResources,
        assignment: Assignment,
        context: AttemptContext,
        work: StepWork,
    ) -> None:
        self._resources = resources
        self._assignment = assignment
        self._context = context
        self._work = work

    async def run(self) -> Any:  # noqa: ANN401 - JSON is any value
        first = self._assignment.attempt == 1
        with give_back_on_store_error():
            effects = self._resources.store.work.effects
            known = {} if first else await effects.aio(self._context.task_id)
            questions = read_questions(self._assignment, known)
            number = len(questions.asked)
            name = "http" if number == 0 else f"http {number + 1}"
            # An effect, so that the call is not repeated after a crash before the report.
            output = await self._context.effect(name, self._call, name)
        if isinstance(output, dict) and output.keys() == {"question"}:
            raise questions.suspend_for(output["question"])
        outputs = self._work.outputs
        wrong = [] if outputs is None else find_misfits(outputs, output, "the output")
        if wrong:
            # Not retryable, because the call was done, and would get the same answer again.
            raise InvalidOutput("; ".join(wrong), retryable=False)
        return output

    async def _call(self, name: str) -> Any:  # noqa: ANN401 - JSON is any value
        call = self._resources.permit(self._work).http
        if call is None:
            raise InvalidInput("work", "is no HTTP call")
        try:
            status, headers, body = await self._send(call, name)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            final = isinstance(error, _UNSENDABLE)
            told = str(error) or type(error).__name__
            raise HttpFailed(f"{call.method} {call.url}: {told}", retryable=not final) from error
        clean = self._resources.secrets.redaction
        if httpx.codes.is_success(status):
            return _read_output(body, clean)
        self._wait_if_told(status, headers)
        final = status in _CLIENT_ERRORS and status not in _RETRYABLE_STATUSES
        said = clean.clean(body).decode("utf-8", "replace")[:SHOWN].strip()
        message = f"{call.method} {call.url} answered {status}" + (f": {said}" if said else "")
        raise HttpFailed(message, retryable=not final)

    async def _send(self, call: HttpCall, name: str) -> tuple[int, httpx.Headers, bytes]:
        limit = self._resources.store.settings.max_output
        timeout = httpx.Timeout(self._work.idle_timeout, connect=CONNECT_SECONDS)
        with quiet_httpx():
            async with (
                httpx.AsyncClient(timeout=timeout) as client,
                client.stream(
                    call.method,
                    call.url,
                    headers=self._make_headers(call, name),
                    content=None if call.body is None else json.dumps(call.body).encode(),
                ) as response,
            ):
                received = AnswerBytes(response.headers, limit)
                async for piece in response.aiter_raw():
                    if not received.add(piece):
                        message = f"{call.method} {call.url} answered more than {limit} bytes"
                        raise HttpFailed(message, retryable=False)
                return response.status_code, response.headers, bytes(received.content)

    def _make_headers(self, call: HttpCall, name: str) -> httpx.Headers:
        headers = httpx.Headers(dict(call.headers))
        headers.setdefault("Accept-Encoding", ACCEPTED)
        if call.body is not None:
            headers.setdefault("Content-Type", "application/json")
        headers["Idempotency-Key"] = self._context.effect_id(name)
        headers["Holdfast-Task"] = self._context.task_id
        headers["Holdfast-Attempt"] = str(self._context.attempt)
        if self._context.run_id is not None:
            headers["Holdfast-Run"] = self._context.run_id
        if (header := write_traceparent()) is not None:
            headers["traceparent"] = header
        return headers

    def _wait_if_told(self, status: int, headers: httpx.Headers) -> None:
        """Release the task until the time in `Retry-After`, which counts as no failure."""
        if status not in {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}:
            return
        seconds = _parse_retry_after(headers.get("Retry-After", ""))
        if seconds is not None:
            now = self._resources.store.now()
            until = now + int(min(max(seconds, 1.0), LONGEST_WAIT) * MICROSECONDS)
            raise Suspended(WakeCondition(until=until))


def _read_output(body: bytes, clean: Redaction) -> Any:  # noqa: ANN401 - JSON is any value
    """The output in an answer, redacted: its JSON, or its text if it is no JSON."""
    if not body.strip():
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        # Redacted before it is decoded, because a secret in UTF-16 is not found afterwards.
        text = clean.clean(body).decode("utf-8", "replace").replace("\x00", "�")
        return {"text": text}
    return clean.value(found)


def _parse_retry_after(told: str) -> float | None:
    """The seconds to wait by a `Retry-After` header, which holds a number or a date."""
    try:
        return float(int(told))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(told)
    except ValueError:
        return None
    return (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds()
