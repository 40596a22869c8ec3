"""Threads for plain functions: kept between steps, and more of them as they get busy."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from holdfast.threads import Running, Threads

T = TypeVar("T")
U = TypeVar("U")
IDLE = 10.0

log = logging.getLogger("holdfast.worker")


class Crew(Generic[T]):
    """Whoever takes a job first calls somebody for the next.

    So a step that blocks holds up no other, and a thousand that do not block share a few threads.
    """

    def __init__(self, threads: Threads, name: str, work: Callable[[T], None]) -> None:
        self._threads = threads
        self._name = name
        self._work = work
        self._changed = threads.condition()
        self._jobs: deque[T] = deque()
        self._idle = 0
        self._called = 0
        self._starting = False
        self._closed = False
        self._members: list[Running] = []

    def run(self, jobs: Sequence[T]) -> None:
        """Have jobs done; raises when a thread is wanted for them and cannot be had."""
        with self._changed:
            self._jobs.extend(jobs)
        self._call_somebody()

    def offer(self, job: T) -> bool:
        """Have a job done by somebody who has nothing to do; whether there was anybody."""
        with self._changed:
            if not self._idle or self._called or self._closed:
                return False
            self._jobs.appendleft(job)
            self._called = 1
            self._changed.notify()
        return True

    def take_back(self, jobs: Sequence[U]) -> list[U]:
        """Those of some jobs that nobody has begun, and nobody will."""
        with self._changed:
            found = [job for job in jobs if job in self._jobs]
            self._jobs = deque(job for job in self._jobs if job not in found)
        return found

    def close(self) -> None:
        """Let the threads go, once they have done what they have begun."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for member in self._members:
            member.join()

    def _call_somebody(self) -> None:
        with self._changed:
            if not self._jobs or self._starting or self._called:
                return
            if self._idle:
                # Counted, because one that gives up waiting just now may miss the call itself.
                self._called = 1
                self._changed.notify()
                return
            self._starting = True
        try:
            member = self._threads.start(self._name, self._live)
            self._members = [*(each for each in self._members if each.is_alive()), member]
        except BaseException:
            self._starting = False
            raise

    def _live(self) -> None:
        self._starting = False
        while self._wait():
            self._take()

    def _take(self) -> None:
        with self._changed:
            if not self._jobs:
                return
            job = self._jobs.popleft()
        try:
            self._call_somebody()
        except RuntimeError as error:
            log.warning("no thread for the next step, which waits for one that is busy: %s", error)
        # What a step leaves in its context is not for the next one.
        Context().run(self._work, job)

    def _wait(self) -> bool:
        """Whether there may be something to do; not when nothing came for long."""
        with self._changed:
            if self._jobs:
                return True
            if self._closed:
                return False
            self._idle += 1
            self._changed.wait(IDLE)
            self._idle -= 1
            called, self._called = self._called, 0
            return bool(called or self._jobs)
