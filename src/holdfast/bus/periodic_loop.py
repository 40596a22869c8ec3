"""What is done again and again, in a thread or step by step, until it is closed.

One of many: who holds a named lease does the work, and another within seconds of its end.
"""

from __future__ import annotations

import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.threads import RunningThread

_LOOKS_PER_TTL = 3


class LeaderLease:
    """Asks for the lease, or renews it, as often as is needed; `begun` is called when it is new."""

    def __init__(
        self, engine: Engine, key: str, *, ttl: float, on_begin: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._key = key
        self._ttl = ttl
        self._on_begin = on_begin
        self._token: str | None = None
        self._asked: float | None = None

    def is_leader(self) -> bool:
        """Whether it is this one's turn."""
        now = self._engine.clock.monotonic()
        if self._asked is None or now - self._asked >= self._ttl / _LOOKS_PER_TTL:
            self._asked = now
            self._ask()
        return self._token is not None

    def step_down(self) -> None:
        """Let whoever can go on; it may be this one, with a fresh look."""
        token, self._token, self._asked = self._token, None, None
        if token is not None:
            self._engine.leases.release(self._key, token)

    def _ask(self) -> None:
        leases = self._engine.leases
        if self._token is not None and leases.renew(self._key, self._token, ttl=self._ttl).ok:
            return
        lease = leases.acquire(self._key, _describe_process(), ttl=self._ttl)
        self._token = None if lease is None else lease.token
        if lease is not None:
            self._on_begin()


def _describe_process() -> str:
    """Who holds a turn, for whoever asks: nothing is told from the name."""
    return f"{socket.gethostname()}:{os.getpid()}"


logger = logging.getLogger(__name__)

_SHORTEST, _OFTEN, _LONGEST = 0.01, 0.02, 0.5
_LONGEST_TROUBLE = 2.0


class PeriodicLoop(ABC):
    """`with` it, a thread steps until the end of the block; a test or a program may step itself."""

    # Whether a step that finds nothing to do waits by itself.
    waits_in_step = False
    # How long it rests after each step, so that what comes meanwhile is one step.
    rest_after_step = 0.0
    # For how long after something was done it looks often, where nothing tells it of more.
    alert_seconds = 0.0

    def __init__(self, engine: Engine, name: str, leader_lease: LeaderLease | None = None) -> None:
        self._engine = engine
        self._name = name
        self._stopped = engine.threads.event()
        self._hinted = engine.threads.event()
        self._unsubscribe = engine.notifier.subscribe(self._hinted.set)
        self._thread: RunningThread | None = None
        self._lease = leader_lease
        self._trouble: str | None = None
        # What is given back in the end, so that others may have it at once.
        self._closing = ExitStack()
        if leader_lease is not None:
            self._closing.callback(leader_lease.step_down)

    @abstractmethod
    def step(self, wait: float = 0.0) -> int:
        """Look once at what there is to do; how much was done."""

    def drain(self) -> int:
        """Step until there is nothing left that could be done now."""
        total = 0
        while done := self.step():
            total += done
        return total

    def start(self) -> None:
        self._thread = self._engine.threads.start(f"holdfast-{self._name}"[:60], self._run)

    def close(self) -> None:
        """End after the step under way, and let others go on at once."""
        self._stopped.set()
        self._hinted.set()
        self._unsubscribe()
        if self._thread is not None:
            self._thread.join()
        self._closing.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        pause = delay = _SHORTEST
        alert_until = 0.0
        while not self._stopped.is_set():
            self._hinted.clear()
            try:
                done = self.step(pause)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round may go
                self._log_trouble(error)
                self._recover(delay)
                delay = min(_LONGEST_TROUBLE, delay * 2)
                continue
            delay = _SHORTEST
            if self.rest_after_step:
                self._stopped.wait(self.rest_after_step)
            if not done and not self.waits_in_step:
                self._hinted.wait(pause)
            now = self._engine.clock.monotonic()
            if done:
                alert_until = now + self.alert_seconds
                self._trouble = None
            longest = _OFTEN if now < alert_until else _LONGEST
            pause = _SHORTEST if done else min(longest, pause * 2)

    def _log_trouble(self, error: Exception) -> None:
        """Say of one trouble once that it is there; of what nobody foresaw, where it came from."""
        told, self._trouble = self._trouble, str(error)
        if told == self._trouble:
            return
        foreseen = isinstance(error, HoldfastError)
        message = "%s could not go on; it or another tries again: %s"
        logger.warning(message, self._name, error, exc_info=None if foreseen else error)

    def _recover(self, delay: float) -> None:
        try:
            if self._lease is not None:
                self._lease.step_down()
        except HoldfastError:
            logger.debug("%s could not step down", self._name, exc_info=True)
        self._stopped.wait(delay * (0.5 + self._engine.randomness.random()))
