"""Server client: one request and one answer; refusals become the engine's results and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx

from holdfast.errors import HoldfastError, InvalidInput, NotFound, StoreBusy, StoreUnreachable
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.status import Status
from holdfast.model.token import Role
from holdfast.tracing import write_traceparent
from holdfast.worker.problem import PROBLEM, HttpReply
from holdfast.worker.remote.assignment_format import INVALID_CODE, UNAVAILABLE_CODE
from holdfast.worker.secrets.redaction import quiet_httpx
from holdfast.worker.steps.answer_bytes import ACCEPTED, AnswerBytes

CONNECT_SECONDS = 10.0
# Longer than the server itself waits.
READ_SECONDS = 30.0
SHOWN = 200
LONGEST_LINE = 1_000
# One answer may have so many bytes, and take so many seconds to arrive.
MOST_BYTES = 64 * 2**20
LONGEST_ANSWER = 60.0
# No proxy of the environment is used for these hosts, because it would see the token.
NO_PROXY = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_DONE = frozenset({200, 201})
_REFUSED = frozenset(each.value for each in HTTPStatus if each >= HTTPStatus.BAD_REQUEST)
_REFUSALS = {each.value: each for each in Refusal}
_STATUSES = {each.value: each for each in Status}


class ServerClient:
    """A client of one server, which several threads may use."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": ACCEPTED}
        timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        self.url = url.rstrip("/").removesuffix("/api/v1")
        self._token = token
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers=headers,
            timeout=timeout,
            limits=limits,
            mounts=dict.fromkeys(NO_PROXY),
        )

    def get(self, path: str, /, **shape: type) -> dict[str, Any]:
        """The answer to a GET request; raises as `post` does."""
        return self._call("GET", path, None, shape)

    def post(self, path: str, body: dict[str, Any], /, **shape: type) -> dict[str, Any]:
        """The answer to a POST request; raises `CallRefused` if the engine refuses it.

        `shape` names the fields that the answer must hold, with their types. Any other answer does
        not come from a Holdfast server, and raises `UnexpectedAnswer`.
        """
        return self._call("POST", path, body, shape)

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, shape: Mapping[str, type]
    ) -> dict[str, Any]:
        status, content = self._request(method, path, body)
        told = _read_object(content)
        success = httpx.codes.is_success(status)
        if told is not None and success and _has_shape(told, shape):
            return told
        if told is None or success or not _is_problem(told):
            raise self.make_unexpected(content[: 2 * SHOWN].decode(errors="replace"), status)
        detail = self._read_line(told.get("detail"))
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise TokenRefused(self.url, detail)
        raise _make_error(status, told, detail)

    def forward(self, path: str, body: dict[str, Any]) -> HttpReply:
        """The answer to a call, refused or not, to be passed on unchanged."""
        status, content = self._request("POST", path, body)
        told = _read_object(content)
        refused = status in _REFUSED and told is not None and _is_problem(told)
        if told is None or not (refused or status in _DONE):
            raise self.make_unexpected(content[: 2 * SHOWN].decode(errors="replace"), status)
        return HttpReply(status=status, body=told)

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        """The status and the body of an answer; an answer that never ends raises an error."""
        header = write_traceparent()
        headers = None if header is None else {"traceparent": header}
        try:
            with (
                quiet_httpx(),
                self._http.stream(method, path, json=body, headers=headers) as answer,
            ):
                return answer.status_code, self._receive(answer)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise StoreUnreachable(
                f"{self.url} does not answer: {_describe_network_error(error)}"
            ) from error

    def _receive(self, answer: httpx.Response) -> bytes:
        until, received = time.monotonic() + LONGEST_ANSWER, AnswerBytes(answer.headers, MOST_BYTES)
        # Read as it comes: waiting for a chunk of some size never ends on an answer that drips.
        for piece in answer.iter_raw():
            if not received.add(piece) or time.monotonic() > until:
                raise self.make_unexpected(
                    f"an answer of more than {MOST_BYTES} bytes or {LONGEST_ANSWER:g} s",
                    answer.status_code,
                )
        return bytes(received.content)

    def make_unexpected(self, told: str, status: int = 200) -> UnexpectedAnswer:
        """The error for an answer that cannot come from a Holdfast server."""
        said = repr(self._hide_token(told)[:SHOWN])
        return UnexpectedAnswer(
            f"{self.url} does not answer as a Holdfast server does: {status} {said}"
        )

    def _read_line(self, told: object) -> str:
        """The detail of a refusal in a form that is safe in a line of a log."""
        said = (
            self._hide_token(told)[:LONGEST_LINE]
            if isinstance(told, str)
            else "no reason was given"
        )
        return _printable(said)

    def _hide_token(self, told: str) -> str:
        # A gateway may echo the request.
        return told.replace(self._token, "…")

    def check_role(self) -> None:
        """Refuse a token of another role than worker, because commands could read it."""
        role = self.get("/session", role=str)["role"]
        if role != Role.WORKER:
            raise TokenUnfit(self.url, self._read_line(role))

    def transition(self, path: str, body: dict[str, Any], /, **shape: type) -> TransitionResult:
        """The result of a report."""
        try:
            told = self.post(path, body, ok=bool, **shape)
        except CallRefused as refused:
            return refused.answer
        task = told.get("task")
        status = task.get("status") if isinstance(task, dict) else None
        known = _STATUSES.get(status) if isinstance(status, str) else None
        return TransitionResult(ok=True, repeated=told.get("repeated") is True, status=known)

    def renew(
        self, leases: Sequence[Mapping[str, Any]], seconds: float | None
    ) -> list[TransitionResult | HoldfastError]:
        """The result of each of several renewals, or the error of a failed one."""
        asked = {"leases": list(leases), "lease_seconds": seconds}
        told = self.post("/claims/renew", asked, leases=list)["leases"]
        try:
            return [
                self._read_renewal(each, lease) for each, lease in zip(told, leases, strict=True)
            ]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self.make_unexpected("leases other than those that were asked for") from error

    def _read_renewal(
        self, told: Mapping[str, Any], lease: Mapping[str, Any]
    ) -> TransitionResult | HoldfastError:
        if told["task_id"] != lease["task_id"]:
            raise ValueError(told["task_id"])
        if told["ok"] is True:
            return TransitionResult(ok=True)
        reason, detail = told["reason"], self._read_line(told.get("detail"))
        if reason == UNAVAILABLE_CODE:
            return StoreBusy(detail)
        if reason == INVALID_CODE:
            field, _, said = detail.partition(": ")
            return InvalidInput(field, said)
        return TransitionResult(ok=False, reason=Refusal(reason))

    def close(self) -> None:
        self._http.close()


class UnexpectedAnswer(StoreUnreachable):
    """The answer does not come from a Holdfast server, which counts as no answer."""


class TokenRefused(InvalidInput):
    """The server refuses the token, and would refuse it again."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__("token", f"{url} does not take it: {detail}")


class TokenUnfit(TokenRefused):
    """The token may do more than a worker, and so could every command of the worker."""

    def __init__(self, url: str, role: str) -> None:
        reason = (
            f"that for {url} has the role {role}, and every command that this worker runs could "
            "read it; `holdfast token create NAME --role worker` makes one for HOLDFAST_TOKEN"
        )
        InvalidInput.__init__(self, "token", reason)


class CallRefused(HoldfastError):
    """The engine refused a call; `answer` is its result."""

    def __init__(self, answer: TransitionResult) -> None:
        super().__init__(f"{answer.reason}: {answer.detail}")
        self.answer = answer


def _read_object(content: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _has_shape(told: Mapping[str, Any], shape: Mapping[str, type]) -> bool:
    return all(isinstance(told.get(name), kind) for name, kind in shape.items())


def _is_problem(told: Mapping[str, Any]) -> bool:
    return str(told.get("type")) == f"{PROBLEM}{told.get('code')}"


def _describe_network_error(error: Exception) -> str:
    """The text of a network error, or its class if it has no text."""
    return _printable(str(error)[:LONGEST_LINE]) or type(error).__name__


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


def _make_error(status: int, told: Mapping[str, Any], detail: str) -> HoldfastError:
    code, current = told.get("code"), told.get("current")
    if isinstance(code, str) and code in _REFUSALS:
        known = _STATUSES.get(current) if isinstance(current, str) else None
        return CallRefused(
            TransitionResult(ok=False, reason=_REFUSALS[code], detail=detail, status=known)
        )
    if status == httpx.codes.NOT_FOUND:
        return NotFound(detail)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
        return StoreUnreachable(f"the server cannot answer: {detail}")
    field = told.get("field")
    return InvalidInput(
        field if isinstance(field, str) and field.isidentifier() else "request", detail
    )
