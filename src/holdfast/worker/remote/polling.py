"""Asks a server for work again and again, as long as there is room for some."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.engine.picker import Claimed
from holdfast.engine.taking import Taker
from holdfast.errors import HoldfastError
from holdfast.model.access import Role
from holdfast.model.retry import MICROSECONDS
from holdfast.model.task import Assignment
from holdfast.store.database import Row
from holdfast.threads import Threads
from holdfast.worker.remote.client import Client, TokenRefused, TokenUnfit
from holdfast.worker.remote.desk import Sending
from holdfast.worker.remote.wire import unpack

# A worker that is told to go waits for its poll to end.
LONGEST = 2.0
LOOK_EVERY = 0.1
PAUSE = 1.0

log = logging.getLogger("holdfast.worker")


@dataclass(frozen=True, kw_only=True)
class Received(Claimed):
    """What a server gave, read already."""

    assignments: Sequence[Assignment]

    def read(self) -> list[Assignment]:
        return list(self.assignments)


class Poller:
    """One standing claim, in a thread of its own."""

    def __init__(self, client: Client, sending: Sending, taker: Taker, threads: Threads) -> None:
        self._client = client
        self._sending = sending
        self._taker = taker
        self._stopping = threads.event()
        self._away = False
        # Why nothing more will ever come: the server does not take this worker's token.
        self.refused: TokenRefused | None = None
        # Leases count from before a request, so that it may wait for a part of one alone.
        self._longest = min(LONGEST, taker.lease / MICROSECONDS / 3)
        self._running = threads.start("holdfast-poll", self._poll)

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    def join(self) -> None:
        self._running.join()

    def _poll(self) -> None:
        # The same one again until it is answered: an answer may have been lost.
        request, proven = uuid.uuid4().hex, False
        while not self._stopping.is_set():
            free = min(self._taker.room(), self._taker.most)
            if free <= 0:
                self._stopping.wait(LOOK_EVERY)
                continue
            try:
                proven = proven or self._prove()
                told = self._client.post("/claims", self._ask(free, request))
            except TokenRefused as error:
                self.refused = error
                return
            except HoldfastError as error:
                self._wait(error)
                continue
            self._away = False
            request = uuid.uuid4().hex
            self._sending.hear(told)
            self._deliver(told["assignments"])

    def _prove(self) -> bool:
        """That the token is one that commands may have: theirs is what the worker has."""
        role = self._client.get("/session")["role"]
        if role != Role.WORKER:
            raise TokenUnfit(self._client.url, role)
        return True

    def _wait(self, error: HoldfastError) -> None:
        if not self._away:
            log.warning("cannot ask for work; trying again every %s s: %s", PAUSE, error)
        self._away = True
        self._stopping.wait(PAUSE)

    def _ask(self, free: int, request: str) -> dict[str, Any]:
        taker = self._taker
        return {
            "worker": taker.worker,
            "process": self._sending.process,
            "agents": list(taker.agents),
            "tags": json.loads(taker.tags),
            "max": free,
            "wait_seconds": self._longest,
            "lease_seconds": taker.lease / MICROSECONDS,
            "request_id": request,
            "passing": list(taker.passed()),
            "whole": True,
        }

    def _deliver(self, told: Sequence[dict[str, Any]]) -> None:
        read = [unpack(each["whole"]) for each in told]
        for assignment, around in read:
            self._sending.held.add(assignment, around)
        rows: list[Row] = [{} for _ in read]
        assignments = [assignment for assignment, _ in read]
        self._taker.deliver(
            Received(secret=b"", rows=rows, given={}, runs={}, around={}, assignments=assignments)
        )
