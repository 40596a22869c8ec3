"""Talks to a server: one request, one answer, and what is refused told as the engine tells it."""

from __future__ import annotations

from typing import Any

import httpx

from holdfast.errors import HoldfastError, InvalidInput, NotFound, StoreUnreachable
from holdfast.model.result import Refusal, TransitionResult
from holdfast.tracing import write_header
from holdfast.worker.hushed import hushed

CONNECT = 10.0
# Beyond what the server itself waits.
READ = 30.0
_REFUSALS = {each.value: each for each in Refusal}


class Client:
    """Safe to use from several threads."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        timeout = httpx.Timeout(READ, connect=CONNECT)
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1", headers=headers, timeout=timeout, limits=limits
        )

    def get(self, path: str) -> dict[str, Any]:
        """What there is to see; raises as `post` does."""
        return self._call("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a call answers; raises `Refusing` where it is refused as it stands."""
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        place = write_header()
        headers = None if place is None else {"traceparent": place}
        try:
            with hushed():
                answer = self._http.request(method, path, json=body, headers=headers)
            told = answer.json()
        except (httpx.TransportError, ValueError) as error:
            raise StoreUnreachable(f"{self.url} does not answer: {error!r}") from error
        if answer.is_success:
            return dict(told)
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise TokenRefused(self.url, str(told.get("detail")))
        raise _error(answer.status_code, told)

    def transition(self, path: str, body: dict[str, Any]) -> TransitionResult:
        """What becomes of a report."""
        try:
            told = self.post(path, body)
        except Refusing as refused:
            return refused.answer
        status = told.get("task", {}).get("status")
        return TransitionResult(ok=True, repeated=bool(told.get("repeated")), status=status)

    def close(self) -> None:
        self._http.close()


class TokenRefused(InvalidInput):
    """The token is not good, or not for this; to ask again would be told the same."""

    def __init__(self, url: str, detail: str) -> None:
        super().__init__("token", f"{url} does not take it: {detail}")


class TokenUnfit(TokenRefused):
    """The token may do more than a worker, and so might whatever the worker runs."""

    def __init__(self, url: str, role: str) -> None:
        reason = (
            f"that for {url} has the role {role}, and every command that this worker runs would "
            "have it; `holdfast token create NAME --role worker` makes one for HOLDFAST_TOKEN"
        )
        InvalidInput.__init__(self, "token", reason)


class Refusing(HoldfastError):
    """Refused as it stands; `answer` is what the engine said."""

    def __init__(self, answer: TransitionResult) -> None:
        super().__init__(f"{answer.reason}: {answer.detail}")
        self.answer = answer


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
