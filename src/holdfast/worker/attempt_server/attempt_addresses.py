"""Attempt addresses: the URL and token by which a running command reaches its store."""

from __future__ import annotations

import hashlib
import secrets as random_secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.model.task import Assignment
from holdfast.threads import Threads
from holdfast.worker.attempt.execution import GivenBack
from holdfast.worker.attempt_server.attempt_listener import AnswerRequest, AttemptListener
from holdfast.worker.attempt_server.attempt_requests import AttemptRequests, CallForwarder
from holdfast.worker.secrets.redaction import Redaction
from holdfast.worker.secrets.secrets import Secrets

BYTES = 32
# Attempt tokens begin so too. A line of the log that ends like the beginning of a secret is held
# back; this prefix adds no further lines to those.
PREFIX = "1-"


class AttemptAddress:
    """The environment variables of one attempt's command, and the redaction of what it writes."""

    def __init__(self, assignment: Assignment, url: str, token: str, secrets: Secrets) -> None:
        self.variables = {"HOLDFAST_SERVER": url, "HOLDFAST_TOKEN": token}
        own = {"HOLDFAST_ATTEMPT_TOKEN": assignment.token, "HOLDFAST_TOKEN": token}
        self.current_redaction: Callable[[], Redaction] = secrets.make_redaction_with(own)


class AttemptAddresses:
    """The listener for all commands of a worker, which exists while any of them runs.

    A token leads to one attempt, and is good until that attempt has ended.
    """

    def __init__(
        self, threads: Threads, make_forwarder: Callable[[], CallForwarder], secrets: Secrets
    ) -> None:
        self._threads = threads
        self._make_forwarder = make_forwarder
        self._forwarder: CallForwarder | None = None
        self._secrets = secrets
        self._lock = threads.lock()
        self._listener: AttemptListener | None = None
        self._url = ""
        self._answers: dict[bytes, AnswerRequest] = {}

    @contextmanager
    def open(self, assignment: Assignment) -> Iterator[AttemptAddress]:
        token = f"{PREFIX}{random_secrets.token_urlsafe(BYTES)}"
        with self._lock:
            forwarder = self._forwarder = self._forwarder or self._make_forwarder()
            url = self._listen()
            address = AttemptAddress(assignment, url, token, self._secrets)
            lock = self._threads.lock()
            requests = AttemptRequests(assignment, forwarder, address.current_redaction, lock)
            self._answers[_digest(token)] = requests.answer
        try:
            yield address
        finally:
            requests.end()
            self._close_address(token)

    def _listen(self) -> str:
        if self._listener is None:
            try:
                listener = AttemptListener(self._threads, self._find_answer)
                self._url = listener.start()
            except OSError as error:
                reason = f"its command cannot have an address: {error.strerror}"
                raise GivenBack(reason) from error
            self._listener = listener
        return self._url

    def _close_address(self, token: str) -> None:
        idle = None
        with self._lock:
            del self._answers[_digest(token)]
            if not self._answers:
                idle, self._listener = self._listener, None
        if idle is not None:
            idle.stop()

    def _find_answer(self, token: str) -> AnswerRequest | None:
        return self._answers.get(_digest(token))


def _digest(token: str) -> bytes:
    """Tokens are looked up by digest, so that the time of a lookup tells nothing of a token."""
    return hashlib.sha256(token.encode()).digest()
