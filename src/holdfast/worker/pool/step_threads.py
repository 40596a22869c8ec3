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
IDLE_SECONDS = 10.0
# A job that takes longer than this holds up those behind it; it halves with each that is found.
QUICK_SECONDS = 0.001
HALVINGS = 6

log = logging.getLogger("holdfast.worker")


class StepThreads(Generic[T]):
    """Whoever takes a job and leaves others behind has somebody stand by for them.

    Who stands by takes a job when nobody has begun one for a moment. So a step that blocks holds up
    no other for long, and a thousand that do not block are done by one thread after the other.
    """

    def __init__(self, threads: Threads, name: str, do_job: Callable[[T], None]) -> None:
        self._threads = threads
        self._name = name
        self._do_job = do_job
        self._changed = threads.condition()
        self._jobs: deque[T] = deque()
        self._busy = 0
        self._idle = 0
        self._begun = 0
        self._stuck = 0
        self._woken = False
        self._standing_by = False
        self._starting = False
        self._closed = False
        self._members: list[RunningThread] = []
        self._local = threading.local()

    def run(self, jobs: Sequence[T]) -> None:
        """Have jobs done; raises when a thread is wanted for them and cannot be had."""
        with self._changed:
            self._jobs.extend(jobs)
            start = self._wake_or_start()
        if start:
            self._start_thread()

    def offer(self, job: T, *, free: bool = False) -> bool:
        """Have a job done next by one of those who are here; false when nobody can.

        One of them who is about to be `free` does it without another being woken.
        """
        with self._changed:
            if self._closed or not (free or self._idle or self._standing_by):
                return False
            self._jobs.appendleft(job)
            if not free:
                self._wake_or_start()
        return True

    def is_own_thread(self) -> bool:
        return getattr(self._local, "member", False)

    def take_unbegun(self, jobs: Sequence[U]) -> list[U]:
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

    def _wake_or_start(self) -> bool:
        """Have somebody there for the next job; whether a thread has to be started for that."""
        if not self._jobs or self._starting or self._woken or self._standing_by:
            return False
        if self._idle:
            # Noted, because one that gives up waiting just now may miss the call itself.
            self._woken = True
            self._changed.notify()
            return False
        self._starting = True
        return True

    def _start_thread(self) -> None:
        try:
            member = self._threads.start(self._name, self._run_jobs)
            # Who was started may be starting the next one by now.
            with self._changed:
                self._members = [*(each for each in self._members if each.is_alive()), member]
        except BaseException:
            self._starting = False
            raise

    def _run_jobs(self) -> None:
        self._starting = False
        self._local.member = True
        taken = self._take_job()
        while taken is not None:
            job, start = taken
            if start:
                self._try_to_start_thread()
            try:
                # What a step leaves in its context is not for the next one.
                Context().run(self._do_job, job)
            except BaseException:
                self._leave_next_job()
                raise
            taken = self._take_job(after=1)

    def _leave_next_job(self) -> None:
        """Leave what this thread would have done next to another."""
        with self._changed:
            self._busy -= 1
            start = self._wake_or_start()
        if start:
            self._try_to_start_thread()

    def _try_to_start_thread(self) -> None:
        try:
            self._start_thread()
        except RuntimeError as error:
            log.warning("no thread for the next step, which waits for one that is busy: %s", error)

    def _take_job(self, after: int = 0) -> tuple[T, bool] | None:
        """The next job, and whether somebody has to be started; none when none came for long.

        Whoever comes from a job takes the next one; anybody else, where all the others are stuck.
        """
        with self._changed:
            self._busy -= after
            mine = bool(after)
            while not (mine and self._jobs):
                if self._jobs and not self._standing_by:
                    mine = self._stand_by()
                elif (self._closed and not self._jobs) or not self._wait_for_job():
                    return None
                else:
                    mine = False
            self._busy += 1
            self._begun += 1
            return self._jobs.popleft(), self._wake_or_start()

    def _stand_by(self) -> bool:
        """Stand by: whether nobody begins a job in the meantime, though there are some."""
        if not self._busy:
            return True
        begun = self._begun
        self._standing_by = True
        self._changed.wait(QUICK_SECONDS / 2**self._stuck)
        self._standing_by = self._woken = False
        stuck = self._begun == begun
        self._stuck = min(HALVINGS, self._stuck + 1) if stuck else 0
        return stuck

    def _wait_for_job(self) -> bool:
        """Whether there may be something to do; not when nothing came for long."""
        self._idle += 1
        self._changed.wait(IDLE_SECONDS)
        self._idle -= 1
        called, self._woken = self._woken, False
        return called or bool(self._jobs)
