"""What a worker elsewhere lets a server have it do: the commands and addresses it was told of."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from holdfast.clock import Clock
from holdfast.errors import HoldfastError, StoreUnreachable
from holdfast.model.task import Assignment
from holdfast.model.work import Work
from holdfast.worker.context import Context
from holdfast.worker.execution import Functions, Invocation, UnknownFunction
from holdfast.worker.executors import Executors
from holdfast.worker.problem import Reply
from holdfast.worker.remote.client import Client
from holdfast.worker.remote.office import RemoteOffice
from holdfast.worker.secrets import Secrets
from holdfast.worker.state import State

CHUNK = 1_000_000
PAUSE = 0.5
# Not what its commands have under HOLDFAST_TOKEN.
TOKEN = "WORKER_TOKEN"  # noqa: S105 - a name

log = logging.getLogger("holdfast.worker")


class NotAllowed(UnknownFunction):
    """Not for this worker to run; another may."""


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """The first word of a command, as it is written, or the beginning of a URL."""

    names: frozenset[str] = frozenset()
    anything: bool = False

    def check(self, work: Work) -> None:
        if self.anything:
            return
        if work.command is not None and work.command[0] not in self.names:
            raise self._refuse(work.command[0], "command")
        if work.http is not None and not self._leads(work):
            raise self._refuse(work.http.url, "address")

    def _leads(self, work: Work) -> bool:
        url = "" if work.http is None else work.http.url
        whole = "http.url" not in work.later
        return whole and any(_is_under(url, each) for each in self.names if "://" in each)

    def _refuse(self, what: str, kind: str) -> NotAllowed:
        return NotAllowed(
            f"the {kind} {what!r} is not among those that this worker was told to allow, and is "
            f"left to others; holdfast worker --server … --allow {what}"
        )


def _is_under(url: str, allowed: str) -> bool:
    """Whether a URL leads to the very host of another, and begins with all of it."""
    given, leading = urlsplit(url), urlsplit(allowed)
    same = (given.scheme, given.netloc) == (leading.scheme, leading.netloc)
    return same and url.startswith(allowed)


class NoFunctions:
    """A worker elsewhere has no program: what wants a function is left to others."""

    def bind(self, *_: object) -> Invocation:
        raise UnknownFunction("it is neither a command nor a call, and is left to others")

    def knows(self, *_: str | None) -> bool:
        return False


class ServerCalls:
    """Takes the calls of commands on to the server, with the token of the worker."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def carry(self, task_id: str, verb: str, body: dict[str, Any]) -> Reply:
        path = "/claims/renew" if verb == "renew" else f"/claims/{task_id}/{verb}"
        return self._client.carry(path, body)


class RemoteExecutors(Executors):
    def __init__(self, office: RemoteOffice, allowed: Allowed, state: State) -> None:
        functions: Functions = NoFunctions()
        url, own = office.settings.url, {TOKEN: office.token}
        carrier = ServerCalls(office.client)
        super().__init__(
            office, functions, lambda _: carrier, state=state, secrets=Secrets(url, own=own)
        )
        self._office = office
        self._client = office.client
        self._allowed = allowed
        self._state = state

    def bind(self, assignment: Assignment, context: Context) -> Invocation:
        work = assignment.work
        if work is not None:
            self._check(assignment, work)
        made = super().bind(assignment, context)
        if made.asynchronous:
            return made
        return made._replace(function=self._with_log(made, assignment, context))

    def _check(self, assignment: Assignment, work: Work) -> None:
        """Leave to others what is not allowed here; whoever looks for it finds why in its log."""
        try:
            self._allowed.check(work)
        except NotAllowed as refused:
            said = {"token": assignment.token, "chunk": f"{refused}\n"}
            self._client.transition(f"/claims/{assignment.task_id}/logs", said, bytes=int)
            raise

    def _with_log(self, made: Invocation, assignment: Assignment, context: Context) -> Logged:
        clock = self._office.clock
        return Logged(made, self._client, self._state, (assignment, context), clock=clock)


class Logged:
    """A step whose log goes to the server too, before its report does."""

    def __init__(
        self,
        made: Invocation,
        client: Client,
        state: State,
        attempt: tuple[Assignment, Context],
        *,
        clock: Clock,
    ) -> None:
        self._made = made
        self._client = client
        self._state = state
        self._assignment, self._context = attempt
        self._clock = clock

    def __call__(self) -> object:
        try:
            return self._made.function()
        finally:
            if not self._context.ended:
                self._send()

    def _send(self) -> None:
        assignment = self._assignment
        path = self._state.log(assignment.task_id, assignment.attempt)
        text = path.read_bytes() if path.exists() else b""
        for chunk in _chunks(text):
            self._tell({"token": assignment.token, "chunk": chunk.decode(errors="replace")})

    def _tell(self, said: dict[str, str]) -> None:
        """Send a piece, again while the server is away: what becomes of it is not the step's."""
        task_id = self._assignment.task_id
        while not self._context.ended:
            try:
                self._client.transition(f"/claims/{task_id}/logs", said, bytes=int)
            except StoreUnreachable:
                self._clock.sleep(PAUSE)
            except HoldfastError as error:
                log.warning("the log of %s is kept here alone: %s", task_id, error)
                return
            else:
                return


def _chunks(text: bytes) -> Sequence[bytes]:
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]
