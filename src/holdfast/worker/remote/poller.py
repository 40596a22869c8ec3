"""Asks a server for work again and again, as long as there is room for some."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
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
from holdfast.worker.remote.assignment_format import Around, unpack
from holdfast.worker.remote.client import Client, TokenRefused
from holdfast.worker.remote.sender import Sending

# A worker that is told to go waits for its poll to end.
LONGEST = 2.0
LOOK_EVERY = 0.1
PAUSE = 1.0
SHOWN = 300

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class Received(Claimed):
    """What a server gave, read already."""

    assignments: Sequence[Assignment]

    def read(self) -> list[Assignment]:
        return list(self.assignments)


class Unreadable(StoreUnreachable):
    """The server gives work in a form that this release does not know."""


class Poller:
    """One standing claim, in a thread of its own."""

    def __init__(
        self, client: Client, sending: Sending, standing_claim: StandingClaim, threads: Threads
    ) -> None:
        self._client = client
        self._sending = sending
        self._standing_claim = standing_claim
        self._stopping = threads.event()
        # What kind of trouble was told of: each is told once, until the server has answered.
        self._troubled: set[type[Exception]] = set()
        self._proven = False
        # The same one again until it is answered: an answer may have been lost.
        self._request = uuid.uuid4().hex
        # Why nothing more will ever come: the server does not take this worker's token.
        self.refused: TokenRefused | None = None
        # Leases count from before a request, so that it may wait for a part of one alone.
        self._longest = min(LONGEST, standing_claim.lease / MICROSECONDS / 3)
        self._running = threads.start("holdfast-poll", self._poll)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        """Wait for the last answer, unless that one never comes to an end."""
        self._running.join(client.LONGEST_ANSWER)

    def _poll(self) -> None:
        while not self._stopping.is_set():
            try:
                self._take()
            except TokenRefused as error:
                self.refused = error
                return
            except Exception as error:  # noqa: BLE001 - nobody else would ask for work again
                self._wait(error)

    def _take(self) -> None:
        free = min(self._standing_claim.room(), self._standing_claim.most)
        if free <= 0:
            self._stopping.wait(LOOK_EVERY)
            return
        if not self._proven:
            self._client.prove()
            self._proven = True
        told = self._client.post("/claims", self._ask(free), assignments=list)
        read = self._read(told["assignments"], free)
        self._request = uuid.uuid4().hex
        self._troubled.clear()
        self._sending.hear(told)
        self._deliver(read)

    def _wait(self, error: Exception) -> None:
        if type(error) not in self._troubled:
            said = "cannot ask for work; trying again every %s s: %s"
            unforeseen = None if isinstance(error, HoldfastError) else error
            log.warning(
                said, PAUSE, error if unforeseen is None else repr(error), exc_info=unforeseen
            )
        self._troubled.add(type(error))
        self._stopping.wait(PAUSE)

    def _ask(self, free: int) -> dict[str, Any]:
        standing_claim = self._standing_claim
        return {
            "worker": standing_claim.worker,
            "process": self._sending.process,
            "agents": list(standing_claim.agents),
            "tags": json.loads(standing_claim.tags),
            "max": free,
            "wait_seconds": self._longest,
            "lease_seconds": standing_claim.lease / MICROSECONDS,
            "request_id": self._request,
            "passing": list(standing_claim.passed()),
            "whole": True,
        }

    def _read(self, told: Sequence[Any], free: int) -> list[tuple[Assignment, Around]]:
        """What was asked for, and no more than that."""
        if len(told) > free:
            raise Unreadable(f"{self._client.url} gives {len(told)} tasks where {free} are wanted")
        try:
            read = [unpack(each["whole"]) for each in told]
        except (LookupError, TypeError, ValueError, AttributeError, InvalidInput) as error:
            # Not as a whole: tokens are in it.
            said = f"{self._client.url} gives work that cannot be read here: {_shown(error)}"
            raise Unreadable(said) from error
        return self._fresh(read)

    def _fresh(self, read: Sequence[tuple[Assignment, Around]]) -> list[tuple[Assignment, Around]]:
        """Those that this worker never had: an attempt runs once, whoever gives it again."""
        found: dict[tuple[str, int], tuple[Assignment, Around]] = {}
        for assignment, around in read:
            key = (assignment.task_id, assignment.attempt)
            if self._sending.held.attempts([key]):
                log.warning("attempt %d of %s was given before, and is left alone", key[1], key[0])
            else:
                found[key] = (assignment, around)
        return list(found.values())

    def _deliver(self, read: Sequence[tuple[Assignment, Around]]) -> None:
        for assignment, around in read:
            self._sending.held.add(assignment, around)
        rows: list[Row] = [{} for _ in read]
        assignments = [assignment for assignment, _ in read]
        self._standing_claim.deliver(
            Received(secret=b"", rows=rows, given={}, runs={}, around={}, assignments=assignments)
        )


def _shown(error: Exception) -> str:
    """An error that may hold what a server said, on one line and short."""
    return ascii(error)[:SHOWN]
