"""Step threads: threads for plain functions, kept between steps, and more of them when needed."""

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
# A job that takes longer than this delays those behind it, and another thread takes the next one.
# The time halves with each such job in a row.
QUICK_SECONDS = 0.001
HALVINGS = 6

log = logging.getLogger("holdfast.worker")


class StepThreads(Generic[T]):
    """A thread that takes a job while others wait has another thread stand by for them.

    The thread that stands by takes a job when no job has begun for a moment. So a step that blocks
    delays no other step for long, and a thousand steps that do not block run in one thread.
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
        """Have jobs done; raises if a thread is needed for them and cannot be started."""
        with self._changed:
            self._jobs.extend(jobs)
            start = self._wake_or_start()
        if start:
            self._start_thread()

    def try_next(self, job: T, *, free: bool = False) -> bool:
        """Have a job done next by one of the threads; false if none of them is ready for it.

        `free` says that the calling step thread is about to take a job, so that none is woken.
        """
        with self._changed:
            if self._closed or not (free or self._idle or self._standing_by):
                return False
            self._jobs.appendleft(job)
            if not free:
                self._wake_or_start()
        return True

    def is_own_thread(self) -> bool:
        return getattr(self._local, "is_step_thread", False)

    def take_unbegun(self, jobs: Sequence[U]) -> list[U]:
        """Remove the given jobs that have not begun, and return them."""
        with self._changed:
            found = [job for job in jobs if job in self._jobs]
            self._jobs = deque(job for job in self._jobs if job not in found)
        return found

    def close(self) -> None:
        """End the threads once they have done what they have begun."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        # A thread may start another one before it ends.
        while left := [each for each in self._members if each.is_alive()]:
            for member in left:
                member.join()

    def _wake_or_start(self) -> bool:
        """Wake a thread for the next job; gives whether one has to be started instead."""
        if not self._jobs or self._starting or self._woken or self._standing_by:
            return False
        if self._idle:
            # Noted, because a thread whose wait times out just now misses the notification.
            self._woken = True
            self._changed.notify()
            return False
        self._starting = True
        return True

    def _start_thread(self) -> None:
        try:
            member = self._threads.start(self._name, self._run_jobs)
            # The started thread may be starting the next one by now.
            with self._changed:
                self._members = [*(each for each in self._members if each.is_alive()), member]
        except BaseException:
            self._starting = False
            raise

    def _run_jobs(self) -> None:
        self._starting = False
        self._local.is_step_thread = True
        taken = self._take_job()
        while taken is not None:
            job, start = taken
            if start:
                self._try_to_start_thread()
            try:
                # A new context, so that no context variable of a step reaches the next one.
                Context().run(self._do_job, job)
            except BaseException:
                self._leave_next_job()
                raise
            taken = self._take_job(after=1)

    def _leave_next_job(self) -> None:
        """Have another thread take the next job, because this thread ends by an exception."""
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
        """The next job, and whether a thread has to be started; None when none came for long.

        A thread that has done a job takes the next one. Any other thread takes a job only when all
        busy threads are stuck.
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
        """Wait a moment; gives whether no job has begun meanwhile, though there are some."""
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
        """Wait for a job; false when none came for long."""
        self._idle += 1
        self._changed.wait(IDLE_SECONDS)
        self._idle -= 1
        called, self._woken = self._woken, False
        return called or bool(self._jobs)
