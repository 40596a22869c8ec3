"""The worker's protocol for front ends, carried out by a server instead of the store itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from holdfast.errors import HoldfastError
from holdfast.model.task import Renewal
from holdfast.model.units import Moment
from holdfast.service.commands.request_errors import Refused, require_accepted
from holdfast.service.protocol.protocol import ClaimTerms
from holdfast.service.queries.views import View, without_nulls
from holdfast.worker.remote.client import CallRefused, ServerClient


class RemoteProtocol:
    """The methods of `Protocol` that scripts use, as HTTP calls; a refusal raises `Refused`."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client

    def claim(self, terms: ClaimTerms, *, most: int = 1, task_id: str | None = None) -> View:
        body = without_nulls(
            worker=terms.worker,
            agents=None if terms.agents is None else list(terms.agents),
            tags=list(terms.tags) or None,
            lease_seconds=terms.lease,
            max=most,
            task_id=task_id,
        )
        post = partial(self._client.post, "/claims", body, assignments=list)
        return self._post(task_id or "the claim", post)

    def renew(self, renewal: Renewal, lease: float | None = None) -> View:
        lease_body = without_nulls(
            task_id=renewal.task_id,
            token=renewal.token,
            progress=renewal.progress,
            usage=renewal.usage,
        )
        (answer,) = self._client.renew([lease_body], lease)
        if isinstance(answer, HoldfastError):
            raise answer
        require_accepted(renewal.task_id, answer)
        return self.guard(renewal.task_id, renewal.token)

    def complete(self, task_id: str, token: str, output: object, usage: object = None) -> View:
        return self._report(task_id, "complete", token, output=output, usage=usage)

    def fail(self, task_id: str, token: str, error: object, *, retryable: bool = True) -> View:
        return self._report(task_id, "fail", token, error=error, retryable=retryable)

    def reach_limit(self, task_id: str, token: str, until: Moment) -> View:
        return self._report(task_id, "fail", token, limit_until=_write_moment(until))

    def release(self, task_id: str, token: str, until: Moment | None = None) -> View:
        return self._report(task_id, "release", token, until=_write_moment(until))

    def guard(self, task_id: str, token: str) -> View:
        return self._report(task_id, "guard", token)

    def log(self, task_id: str, token: str, chunk: bytes) -> int:
        text = chunk.decode(errors="replace")
        body = {"token": token, "chunk": text}
        post = partial(self._client.post, f"/claims/{task_id}/logs", body, bytes=int)
        return int(self._post(task_id, post)["bytes"])

    def _report(self, task_id: str, verb: str, token: str, **said: object) -> View:
        body = {"token": token, **without_nulls(**said)}
        path = f"/claims/{task_id}/{verb}"
        return self._post(task_id, partial(self._client.post, path, body, task=dict))

    def _post(self, identifier: str, post: Callable[[], View]) -> View:
        try:
            return post()
        except CallRefused as refused:
            raise Refused(identifier, refused.answer) from refused


def _write_moment(moment: Moment | None) -> object:
    return moment.isoformat() if isinstance(moment, datetime) else moment
