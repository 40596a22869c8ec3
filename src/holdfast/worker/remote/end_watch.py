"""End watch: long polls by which a worker elsewhere hears at once that an attempt of it is over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.errors import StoreUnreachable
from holdfast.threads import Threads
from holdfast.worker.remote.client import ServerClient, UnexpectedAnswer

# Attempts that came while so many polls wait are asked about when the first of these ends.
MOST_POLLS = 8
LONGEST_POLL = 5.0
SHORTEST_POLL = 0.05
PAUSE = 1.0

AttemptKey = tuple[str, int]

log = logging.getLogger("holdfast.worker")


class EndWatch:
    """Asks a server about the attempts of this worker until each of them is over.

    Without an answer, and for attempts that a server refuses to watch, the next renewal of the
    lease tells the same. A later attempt at a task by this worker means that the one before is
    over; a server tells tasks alone, so that it is never asked about two attempts at one.
    """

    def __init__(self, client: ServerClient, threads: Threads) -> None:
        self._client = client
        self._threads = threads
        self._lock = threads.lock()
        self._closed = threads.event()
        self._polls = 0
        self._new: dict[AttemptKey, str] = {}
        self._tell: Callable[[Sequence[AttemptKey]], object] = _do_nothing

    def subscribe(self, tell: Callable[[Sequence[AttemptKey]], object]) -> Callable[[], None]:
        """Have a function told of attempts that are over, until the subscription is ended."""
        self._tell = tell
        return self.close

    def add(self, tokens: Mapping[AttemptKey, str]) -> None:
        """Ask about some more attempts, by their tokens."""
        with self._lock:
            self._new |= tokens
            begins = self._polls < MOST_POLLS and not self._closed.is_set()
            self._polls += begins
        if begins:
            self._threads.start("holdfast-ends", self._poll)

    def close(self) -> None:
        self._tell = _do_nothing
        self._closed.set()

    def _poll(self) -> None:
        watched: dict[AttemptKey, str] = {}
        while self._take_new(watched):
            try:
                told = self._client.post("/claims/watch", _ask(watched), ended=list)["ended"]
            except Exception as error:  # noqa: BLE001 - renewals go on, and tell the same later
                log.debug("the server tells of no ends: %s", error)
                if not _is_away(error):
                    watched.clear()
                self._closed.wait(PAUSE)
                continue
            self._end(watched, [key for key in watched if key[0] in told])
            # A server that answers without waiting is not asked without a pause.
            self._closed.wait(SHORTEST_POLL)

    def _take_new(self, watched: dict[AttemptKey, str]) -> bool:
        """Take over what nobody asks about; gives whether there is anything to ask about."""
        with self._lock:
            watched |= self._new
            self._new = {}
            goes_on = bool(watched) and not self._closed.is_set()
            self._polls -= not goes_on
        latest: dict[str, int] = {}
        for task_id, attempt in watched:
            latest[task_id] = max(attempt, latest.get(task_id, 0))
        self._end(watched, [key for key in watched if key[1] < latest[key[0]]])
        return goes_on

    def _end(self, watched: dict[AttemptKey, str], over: Sequence[AttemptKey]) -> None:
        for key in over:
            del watched[key]
        if over:
            self._tell(over)


def _is_away(error: Exception) -> bool:
    """Whether the same may be asked again: nothing has answered, as far as that is known."""
    return isinstance(error, StoreUnreachable) and not isinstance(error, UnexpectedAnswer)


def _ask(watched: Mapping[AttemptKey, str]) -> dict[str, Any]:
    leases = [{"task_id": task_id, "token": token} for (task_id, _), token in watched.items()]
    return {"leases": leases, "wait_seconds": LONGEST_POLL}


def _do_nothing(*_: object) -> None:
    pass
