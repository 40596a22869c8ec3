"""Poller: asks a server for work in long polls, as long as the worker has room."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.engine.claims.picker import Claimed
from holdfast.engine.claims.standing_claims import StandingClaim
from holdfast.errors import HoldfastError, InvalidInput, StoreUnreachable
from holdfast.model.retry import MICROSECONDS
from holdfast.model.task import Assignment
from holdfast.store.database import Row
from holdfast.threads import Threads
from holdfast.worker.remote import client
from holdfast.worker.remote.assignment_format import Prefetch, unpack_assignment
from holdfast.worker.remote.client import ServerClient, TokenRefused
from holdfast.worker.remote.sender import OperationSender

# A long poll is short, because a worker that is told to go waits for its end.
LONGEST_POLL = 2.0
LOOK_EVERY = 0.1
PAUSE = 1.0
SHOWN = 300

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class ReceivedClaim(Claimed):
    """Assignments from a server, read already."""

    assignments: Sequence[Assignment]

    def read(self) -> list[Assignment]:
        return list(self.assignments)


class UnreadableWork(StoreUnreachable):
    """The server gives work in a form that this release cannot read."""


class Poller:
    """The long polls of one standing claim, in a thread of their own."""

    def __init__(
        self,
        client: ServerClient,
        sender: OperationSender,
        standing_claim: StandingClaim,
        threads: Threads,
        *,
        on_assigned: Callable[[Mapping[tuple[str, int], str]], object],
    ) -> None:
        self._on_assigned = on_assigned
        self._client = client
        self._sender = sender
        self._standing_claim = standing_claim
        self._stopping = threads.event()
        # The kinds of errors that were logged: each is logged once until the server has answered.
        self._told_errors: set[type[Exception]] = set()
        self._token_checked = False
        # The same request id until an answer comes, because an answer may have been lost.
        self._request = uuid.uuid4().hex
        # The refusal of this worker's token, after which no more work comes.
        self.refused: TokenRefused | None = None
        # Leases count from before a request, so a request may wait only for a part of a lease.
        self._longest_poll = min(LONGEST_POLL, standing_claim.lease / MICROSECONDS / 3)
        self._thread = threads.start("holdfast-poll", self._poll)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        """Wait for the last answer, but no longer than an answer may take."""
        self._thread.join(client.LONGEST_ANSWER)

    def _poll(self) -> None:
        while not self._stopping.is_set():
            try:
                self._poll_once()
            except TokenRefused as error:
                self.refused = error
                return
            except Exception as error:  # noqa: BLE001 - nobody else would ask for work again
                self._wait_after(error)

    def _poll_once(self) -> None:
        free = min(self._standing_claim.room(), self._standing_claim.most)
        if free <= 0:
            self._stopping.wait(LOOK_EVERY)
            return
        if not self._token_checked:
            self._client.check_role()
            self._token_checked = True
        told = self._client.post("/claims", self._make_request(free), assignments=list)
        read = self._read(told["assignments"], free)
        self._request = uuid.uuid4().hex
        self._told_errors.clear()
        self._sender.note_stop_command(told)
        self._deliver(read)

    def _wait_after(self, error: Exception) -> None:
        if type(error) not in self._told_errors:
            said = "cannot ask for work; trying again every %s s: %s"
            unforeseen = None if isinstance(error, HoldfastError) else error
            log.warning(
                said, PAUSE, error if unforeseen is None else repr(error), exc_info=unforeseen
            )
        self._told_errors.add(type(error))
        self._stopping.wait(PAUSE)

    def _make_request(self, free: int) -> dict[str, Any]:
        standing_claim = self._standing_claim
        # Left out where there is none, because a server of an earlier release does not know it.
        own = {"equipped": list(standing_claim.equipped)} if standing_claim.equipped else {}
        return own | {
            "worker": standing_claim.worker,
            "process": self._sender.process,
            "agents": list(standing_claim.agents),
            "tags": json.loads(standing_claim.tags),
            "max": free,
            "wait_seconds": self._longest_poll,
            "lease_seconds": standing_claim.lease / MICROSECONDS,
            "request_id": self._request,
            "passing": list(standing_claim.passed()),
            "whole": True,
        }

    def _read(self, told: Sequence[Any], free: int) -> list[tuple[Assignment, Prefetch]]:
        """The assignments of an answer, which may not be more than were asked for."""
        if len(told) > free:
            raise UnreadableWork(
                f"{self._client.url} gives {len(told)} tasks where {free} are wanted"
            )
        try:
            read = [unpack_assignment(each["whole"]) for each in told]
        except (LookupError, TypeError, ValueError, AttributeError, InvalidInput) as error:
            # The answer itself is not shown, because it holds tokens.
            said = f"{self._client.url} gives work that cannot be read here: {_shorten(error)}"
            raise UnreadableWork(said) from error
        return self._drop_repeated(read)

    def _drop_repeated(
        self, read: Sequence[tuple[Assignment, Prefetch]]
    ) -> list[tuple[Assignment, Prefetch]]:
        """The attempts that this worker never had: no attempt runs twice."""
        found: dict[tuple[str, int], tuple[Assignment, Prefetch]] = {}
        for assignment, prefetch in read:
            key = (assignment.task_id, assignment.attempt)
            if self._sender.held.find_held([key]):
                log.warning("attempt %d of %s was given before, and is left alone", key[1], key[0])
            else:
                found[key] = (assignment, prefetch)
        return list(found.values())

    def _deliver(self, read: Sequence[tuple[Assignment, Prefetch]]) -> None:
        for assignment, prefetch in read:
            self._sender.held.add(assignment, prefetch)
        rows: list[Row] = [{} for _ in read]
        assignments = [assignment for assignment, _ in read]
        self._standing_claim.deliver(
            ReceivedClaim(
                secret=b"", rows=rows, given={}, runs={}, around={}, assignments=assignments
            )
        )
        if assignments:
            self._on_assigned({(each.task_id, each.attempt): each.token for each in assignments})


def _shorten(error: Exception) -> str:
    """An error, which may hold a server's text, as one short line."""
    return ascii(error)[:SHOWN]
