"""Step threads: threads for plain functions, kept between steps, and more of them when needed."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

from holdfast.threads import RunningThread, Threads

T = TypeVar("T")
IDLE_SECONDS = 10.0
# A job that takes longer than this delays those behind it, and another thread takes the next one.
# The time halves with each such job in a row.
QUICK_SECONDS = 0.001
HALVINGS = 6

log = logging.getLogger("holdfast.worker")


def _is_function(_: object) -> bool:
    return False


def _do_nothing(_: object) -> None:
    pass


class StepThreads(Generic[T]):
    """A thread that takes a job while others wait has another thread stand by for them.

    The thread that stands by takes a job when no job has begun for a moment. So a step that blocks
    delays no other step for long, and a thousand steps that do not block run in one thread.

    At most `limit` jobs have a turn at one instant, in the order in which they came. A job for
    which `is_coroutine` is true is given to `begin_coroutines` when its turn comes, and
    `end_coroutine_turn` is called when it has ended. What `run_first` and `try_next` are given
    needs no turn.
    """

    def __init__(  # noqa: PLR0913 - its threads, what they do, and what is done on a loop
        self,
        threads: Threads,
        name: str,
        do_job: Callable[[T], None],
        *,
        limit: int = sys.maxsize,
        is_coroutine: Callable[[T], bool] = _is_function,
        begin_coroutines: Callable[[list[T]], None] = _do_nothing,
    ) -> None:
        self._threads = threads
        self._name = name
        self._do_job = do_job
        self._limit = limit
        self._is_coroutine = is_coroutine
        self._begin_coroutines = begin_coroutines
        self._changed = threads.condition()
        # The jobs that need no turn, and those that wait for one.
        self._first: deque[T] = deque()
        self._jobs: deque[T] = deque()
        self._turns = 0
        self._busy = 0
        self._idle = 0
        self._begun = 0
        self._stuck = 0
        self._woken = False
        self._standing_by = False
        self._starting = False
        self._closed = False
        self._members: list[RunningThread] = []

    def run(self, jobs: Sequence[T], *, free: bool = False) -> None:
        """Have jobs done in their turn; raises if a thread is needed and cannot be started.

        `free` says that the calling step thread is about to take a job, so that none is woken.
        """
        with self._changed:
            self._jobs.extend(jobs)
            self._give_turns_to_coroutines()
            start = not free and self._wake_or_start()
        if start:
            self._start_thread()

    def run_first(self, job: T) -> None:
        """Have a job done before all others, also if as many run as may."""
        with self._changed:
            self._first.append(job)
            start = self._wake_or_start()
        if start:
            self._start_thread()

    def try_next(self, job: T) -> bool:
        """Have a job done before all others by a thread that is ready; false if there is none."""
        with self._changed:
            if self._closed or not (self._idle or self._standing_by):
                return False
            self._first.appendleft(job)
            self._wake_or_start()
        return True

    def end_coroutine_turn(self) -> None:
        """Let the next job begin, because a coroutine has ended."""
        with self._changed:
            self._turns -= 1
            self._give_turns_to_coroutines()
            start = self._wake_or_start()
        if start:
            self._try_to_start_thread()

    @property
    def has_jobs_waiting(self) -> bool:
        """Whether more jobs wait than may begin now."""
        return len(self._jobs) > self._limit - self._turns

    def take_unbegun(self, chosen: Callable[[T], bool]) -> list[T]:
        """Remove the chosen ones of the jobs that have not begun, and return them."""
        found: list[T] = []
        with self._changed:
            for jobs in (self._first, self._jobs):
                for _ in range(len(jobs)):
                    job = jobs.popleft()
                    (found if chosen(job) else jobs).append(job)
            self._give_turns_to_coroutines()
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

    def _give_turns_to_coroutines(self) -> None:
        """Begin the coroutines that come before the next function, while there are turns."""
        begun: list[T] = []
        while self._jobs and self._turns < self._limit and self._is_coroutine(self._jobs[0]):
            begun.append(self._jobs.popleft())
            self._turns += 1
        if begun:
            self._begun += len(begun)
            self._begin_coroutines(begun)

    def _is_next(self) -> bool:
        """Whether a thread may take a job now."""
        return bool(self._first or (self._jobs and self._turns < self._limit))

    def _wake_or_start(self) -> bool:
        """Wake a thread for the next job; gives whether one has to be started instead."""
        if not self._is_next() or self._starting or self._woken or self._standing_by:
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
        taken = self._take_job()
        while taken is not None:
            job, turn, start = taken
            if start:
                self._try_to_start_thread()
            try:
                # A new context, so that no context variable of a step reaches the next one.
                Context().run(self._do_job, job)
            except BaseException:
                self._leave_next_job(turn)
                raise
            taken = self._take_job(after=1, turn=turn)

    def _leave_next_job(self, turn: int) -> None:
        """Have another thread take the next job, because this thread ends by an exception."""
        with self._changed:
            self._busy -= 1
            self._turns -= turn
            self._give_turns_to_coroutines()
            start = self._wake_or_start()
        if start:
            self._try_to_start_thread()

    def _try_to_start_thread(self) -> None:
        try:
            self._start_thread()
        except RuntimeError as error:
            log.warning("no thread for the next step, which waits for one that is busy: %s", error)

    def _take_job(self, *, after: int = 0, turn: int = 0) -> tuple[T, int, bool] | None:
        """The next job, its turn, and whether a thread has to be started; None after a long wait.

        A thread that has done a job takes the next one. Any other thread takes a job only when all
        busy threads are stuck.
        """
        with self._changed:
            self._busy -= after
            self._turns -= turn
            self._give_turns_to_coroutines()
            mine = bool(after)
            while not (mine and self._is_next()):
                if self._is_next() and not self._standing_by:
                    mine = self._stand_by()
                elif self._has_nothing_left() or not self._wait_for_job():
                    return None
                else:
                    mine = False
            self._busy += 1
            self._begun += 1
            if self._first:
                return self._first.popleft(), 0, self._wake_or_start()
            job = self._jobs.popleft()
            self._turns += 1
            self._give_turns_to_coroutines()
            return job, 1, self._wake_or_start()

    def _has_nothing_left(self) -> bool:
        return self._closed and not (self._first or self._jobs)

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
        return called or self._is_next()
