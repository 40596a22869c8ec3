"""Periodic loops, which step in a thread until they are closed, and the lease of their leader."""

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

logger = logging.getLogger(__name__)

_LOOKS_PER_TTL = 3
_SHORTEST, _OFTEN, _LONGEST = 0.01, 0.02, 0.5
_LONGEST_TROUBLE = 2.0


class LeaderLease:
    """A lease that makes one of many loops the leader; `on_begin` is called with each new lease."""

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
        """Whether this loop is the leader; the lease is asked for, or renewed, when that is due."""
        now = self._engine.clock.monotonic()
        if self._asked is None or now - self._asked >= self._ttl / _LOOKS_PER_TTL:
            self._asked = now
            self._ask()
        return self._token is not None

    def step_down(self) -> None:
        """Release the lease, so that another loop, or this one again, becomes the leader."""
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
    """The owner's name of a lease, which is only shown."""
    return f"{socket.gethostname()}:{os.getpid()}"


class PeriodicLoop(ABC):
    """A loop that steps in a thread until the end of a `with` block, or when `step` is called."""

    # Whether a step waits by itself when there is nothing to do.
    waits_in_step = False
    # The seconds of rest after each step, so that what comes meanwhile is done in one step.
    rest_after_step = 0.0
    # The seconds of frequent steps after one that did something, where no hint tells of more.
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
        # Leases and connections that are given back at the end.
        self._closing = ExitStack()
        if leader_lease is not None:
            self._closing.callback(leader_lease.step_down)

    @abstractmethod
    def step(self, wait: float = 0.0) -> int:
        """Do what there is to do now; the result is how much that was."""

    def drain(self) -> int:
        """Step until nothing is left to do."""
        total = 0
        while done := self.step():
            total += done
        return total

    def start(self) -> None:
        self._thread = self._engine.threads.start(f"holdfast-{self._name}"[:60], self._run)

    def close(self) -> None:
        """End after the current step, and release the lease."""
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
            except Exception as error:  # noqa: BLE001 - after any error the next step may go well
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
        """Log each trouble once while it lasts; an unforeseen error with its traceback."""
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
