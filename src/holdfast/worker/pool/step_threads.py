"""Threads for plain functions: kept between steps, and more of them as they get busy."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from holdfast.threads import RunningThread, Threads

T = TypeVar("T")
U = TypeVar("U")
IDLE = 10.0
# A job that takes longer than this holds up those behind it; it halves with each that is found.
QUICK = 0.001
HALVINGS = 6

log = logging.getLogger("holdfast.worker")


class Crew(Generic[T]):
    """Whoever takes a job and leaves others behind has somebody stand by for them.

    Who stands by takes a job when nobody has begun one for a moment. So a step that blocks holds up
    no other for long, and a thousand that do not block are done by one thread after the other.
    """

    def __init__(self, threads: Threads, name: str, work: Callable[[T], None]) -> None:
        self._threads = threads
        self._name = name
        self._work = work
        self._changed = threads.condition()
        self._jobs: deque[T] = deque()
        self._busy = 0
        self._idle = 0
        self._begun = 0
        self._stuck = 0
        self._called = False
        self._standing = False
        self._starting = False
        self._closed = False
        self._members: list[RunningThread] = []
        self._here = threading.local()

    def run(self, jobs: Sequence[T]) -> None:
        """Have jobs done; raises when a thread is wanted for them and cannot be had."""
        with self._changed:
            self._jobs.extend(jobs)
            start = self._call_somebody()
        if start:
            self._start()

    def offer(self, job: T, *, free: bool = False) -> bool:
        """Have a job done next by one of those who are here; false when nobody can.

        One of them who is about to be `free` does it without another being woken.
        """
        with self._changed:
            if self._closed or not (free or self._idle or self._standing):
                return False
            self._jobs.appendleft(job)
            if not free:
                self._call_somebody()
        return True

    def has_member_here(self) -> bool:
        return getattr(self._here, "member", False)

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
        # One that was waited for may have started another before it went.
        while left := [each for each in self._members if each.is_alive()]:
            for member in left:
                member.join()

    def _call_somebody(self) -> bool:
        """Have somebody there for the next job; whether a thread has to be started for that."""
        if not self._jobs or self._starting or self._called or self._standing:
            return False
        if self._idle:
            # Noted, because one that gives up waiting just now may miss the call itself.
            self._called = True
            self._changed.notify()
            return False
        self._starting = True
        return True

    def _start(self) -> None:
        try:
            member = self._threads.start(self._name, self._live)
            # Who was started may be starting the next one by now.
            with self._changed:
                self._members = [*(each for each in self._members if each.is_alive()), member]
        except BaseException:
            self._starting = False
            raise

    def _live(self) -> None:
        self._starting = False
        self._here.member = True
        taken = self._take()
        while taken is not None:
            job, start = taken
            if start:
                self._start_for_the_next()
            try:
                # What a step leaves in its context is not for the next one.
                Context().run(self._work, job)
            except BaseException:
                self._fall_out()
                raise
            taken = self._take(after=1)

    def _fall_out(self) -> None:
        """Leave what this thread would have done next to another."""
        with self._changed:
            self._busy -= 1
            start = self._call_somebody()
        if start:
            self._start_for_the_next()

    def _start_for_the_next(self) -> None:
        try:
            self._start()
        except RuntimeError as error:
            log.warning("no thread for the next step, which waits for one that is busy: %s", error)

    def _take(self, after: int = 0) -> tuple[T, bool] | None:
        """The next job, and whether somebody has to be started; none when none came for long.

        Whoever comes from a job takes the next one; anybody else, where all the others are stuck.
        """
        with self._changed:
            self._busy -= after
            mine = bool(after)
            while not (mine and self._jobs):
                if self._jobs and not self._standing:
                    mine = self._is_wanted()
                elif (self._closed and not self._jobs) or not self._rest():
                    return None
                else:
                    mine = False
            self._busy += 1
            self._begun += 1
            return self._jobs.popleft(), self._call_somebody()

    def _is_wanted(self) -> bool:
        """Stand by: whether nobody begins a job in the meantime, though there are some."""
        if not self._busy:
            return True
        begun = self._begun
        self._standing = True
        self._changed.wait(QUICK / 2**self._stuck)
        self._standing = self._called = False
        stuck = self._begun == begun
        self._stuck = min(HALVINGS, self._stuck + 1) if stuck else 0
        return stuck

    def _rest(self) -> bool:
        """Whether there may be something to do; not when nothing came for long."""
        self._idle += 1
        self._changed.wait(IDLE)
        self._idle -= 1
        called, self._called = self._called, False
        return called or bool(self._jobs)
