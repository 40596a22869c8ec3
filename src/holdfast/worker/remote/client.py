"""Talks to a server: one request, one answer, and what is refused told as the engine tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx

from holdfast.errors import HoldfastError, InvalidInput, NotFound, StoreBusy, StoreUnreachable
from holdfast.model.access import Role
from holdfast.model.result import Refusal, TransitionResult
from holdfast.tracing import write_header
from holdfast.worker.hushed import hushed
from holdfast.worker.problem import PROBLEM, Reply
from holdfast.worker.remote.wire import AWAY, INVALID

CONNECT = 10.0
# Beyond what the server itself waits.
READ = 30.0
SHOWN = 200
# Whatever the environment says of proxies: a token for a server here is not for them to see.
NO_PROXY = ("all://127.0.0.1", "all://localhost", "all://[::1]")
_DONE = frozenset({200, 201})
_REFUSED = frozenset(each.value for each in HTTPStatus if each >= HTTPStatus.BAD_REQUEST)
_REFUSALS = {each.value: each for each in Refusal}


class Client:
    """Safe to use from several threads."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        timeout = httpx.Timeout(READ, connect=CONNECT)
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
        """What there is to see; raises as `post` does."""
        return self._call("GET", path, None, shape)

    def post(self, path: str, body: dict[str, Any], /, **shape: type) -> dict[str, Any]:
        """What a call answers; raises `Refusing` where it is refused as it stands.

        The shape is what the answer must hold, each with its type: one that does not is not
        Holdfast's, and raises `Strange`.
        """
        return self._call("POST", path, body, shape)

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, shape: Mapping[str, type]
    ) -> dict[str, Any]:
        answer = self._request(method, path, body)
        told = _read(answer)
        if told is not None and answer.is_success and _fits(told, shape):
            return told
        if told is None or answer.is_success or not _is_problem(told):
            raise self.strange(answer.text, answer.status_code)
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise TokenRefused(self.url, str(told.get("detail")))
        raise _error(answer.status_code, told)

    def carry(self, path: str, body: dict[str, Any]) -> Reply:
        """What a call answers, refused or not, for somebody who is told it as it is."""
        answer = self._request("POST", path, body)
        told = _read(answer)
        status = answer.status_code
        refused = status in _REFUSED and told is not None and _is_problem(told)
        if told is None or not (refused or status in _DONE):
            raise self.strange(answer.text, status)
        return Reply(status=status, body=told)

    def _request(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        place = write_header()
        headers = None if place is None else {"traceparent": place}
        try:
            with hushed():
                return self._http.request(method, path, json=body, headers=headers)
        except (httpx.RequestError, ValueError) as error:
            raise StoreUnreachable(f"{self.url} does not answer: {_said(error)}") from error

    def strange(self, told: object, status: int = 200) -> Strange:
        """What to raise of an answer that cannot be a Holdfast server's."""
        # A gateway may give back what it was sent.
        shown = str(told).replace(self._token, "…")[:SHOWN]
        return Strange(f"{self.url} does not answer as a Holdfast server does: {status} {shown!r}")

    def prove(self) -> None:
        """Refuse a token that commands may not have: theirs is what the worker has."""
        role = self.get("/session", role=str)["role"]
        if role != Role.WORKER:
            raise TokenUnfit(self.url, role)

    def transition(self, path: str, body: dict[str, Any], /, **shape: type) -> TransitionResult:
        """What becomes of a report."""
        try:
            told = self.post(path, body, ok=bool, **shape)
        except Refusing as refused:
            return refused.answer
        status = told.get("task", {}).get("status")
        return TransitionResult(ok=True, repeated=bool(told.get("repeated")), status=status)

    def renew(
        self, leases: Sequence[Mapping[str, Any]], seconds: float | None
    ) -> list[TransitionResult | HoldfastError]:
        """What becomes of each of several leases; of one, the error that there is instead."""
        asked = {"leases": list(leases), "lease_seconds": seconds}
        told = self.post("/claims/renew", asked, leases=list)["leases"]
        try:
            return [_kept(each, lease) for each, lease in zip(told, leases, strict=True)]
        except (LookupError, TypeError, ValueError) as error:
            raise self.strange(told) from error

    def close(self) -> None:
        self._http.close()


class Strange(StoreUnreachable):
    """Something answers that is no Holdfast server: as good as no answer at all."""


class TokenRefused(InvalidInput):
    """The token is not good, or not for this; to ask again would be told the same."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__("token", f"{url} does not take it: {detail}")


class TokenUnfit(TokenRefused):
    """The token may do more than a worker, and so might whatever the worker runs."""

    def __init__(self, url: str, role: str) -> None:
        reason = (
            f"that for {url} has the role {role}, and every command that this worker runs could "
            "read it; `holdfast token create NAME --role worker` makes one for HOLDFAST_TOKEN"
        )
        InvalidInput.__init__(self, "token", reason)


class Refusing(HoldfastError):
    """Refused as it stands; `answer` is what the engine said."""

    def __init__(self, answer: TransitionResult) -> None:
        super().__init__(f"{answer.reason}: {answer.detail}")
        self.answer = answer


def _read(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        told = answer.json()
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _fits(told: Mapping[str, Any], shape: Mapping[str, type]) -> bool:
    return all(isinstance(told.get(name), kind) for name, kind in shape.items())


def _is_problem(told: Mapping[str, Any]) -> bool:
    return str(told.get("type")) == f"{PROBLEM}{told.get('code')}"


def _kept(told: Mapping[str, Any], lease: Mapping[str, Any]) -> TransitionResult | HoldfastError:
    if told["task_id"] != lease["task_id"]:
        raise ValueError(told)
    if told["ok"] is True:
        return TransitionResult(ok=True)
    reason, detail = told["reason"], str(told.get("detail"))
    if reason == AWAY:
        return StoreBusy(detail)
    if reason == INVALID:
        field, _, said = detail.partition(": ")
        return InvalidInput(field, said)
    return TransitionResult(ok=False, reason=Refusal(reason))


def _said(error: Exception) -> str:
    """What went wrong; some errors of the network have a name and no words."""
    return str(error) or type(error).__name__


def _error(status: int, told: dict[str, Any]) -> HoldfastError:
    code, detail = str(told.get("code")), str(told.get("detail"))
    if code in _REFUSALS:
        reason = _REFUSALS[code]
        current = told.get("current")
        return Refusing(TransitionResult(ok=False, reason=reason, detail=detail, status=current))
    if status == httpx.codes.NOT_FOUND:
        return NotFound(detail)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
        return StoreUnreachable(f"the server cannot answer: {detail}")
    return InvalidInput(str(told.get("field", "request")), detail)
