"""Threads: a port for threads, locks and waiting, so that a simulator can decide which runs next.

The number of forks before this process tells processes apart, faster than the system could.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from math import inf
from typing import Protocol

# Seconds for which a computing thread may keep the interpreter from others: the default of Python,
# and the interval of Holdfast, for which a thread that comes back from the store waits.
DEFAULT_SWITCH_INTERVAL = 0.005
SWITCH_INTERVAL = 0.0005


class RunningThread(Protocol):
    def join(self, timeout: float | None = None) -> None: ...

    def is_alive(self) -> bool: ...


class ThreadEvent(Protocol):
    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Lock(AbstractContextManager[bool, None], Protocol):
    def acquire(self, *, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


class Condition(AbstractContextManager[bool, None], Protocol):
    def wait(self, timeout: float | None = None) -> bool: ...

    def notify(self, n: int = 1) -> None: ...

    def notify_all(self) -> None: ...


class Flag:
    """A flag that is set once and that no thread waits for: cheaper than an event."""

    __slots__ = ("_set",)

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set


class Threads(Protocol):
    def start(self, name: str, target: Callable[[], None]) -> RunningThread: ...

    def event(self) -> ThreadEvent: ...

    def lock(self) -> Lock: ...

    def condition(self) -> Condition: ...


def is_program_ending() -> bool:
    """Whether the interpreter is shutting down, and refuses new threads and executors."""
    # `_SHUTTING_DOWN` is set before the executors are joined; the public sign comes later.
    begun: bool | None = getattr(threading, "_SHUTTING_DOWN", None)
    return not threading.main_thread().is_alive() if begun is None else begun


def shorten_switch_interval() -> None:
    """Keep computing threads from delaying the writer at each of its statements.

    An interval that the program itself has chosen stands.
    """
    if sys.getswitchinterval() == DEFAULT_SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)


class SystemThreads:
    def start(self, name: str, target: Callable[[], None]) -> RunningThread:
        # Daemon threads: a loop that hangs in a driver must not keep a finished program alive.
        thread = threading.Thread(name=name, target=target, daemon=True)
        thread.start()
        return thread

    def event(self) -> ThreadEvent:
        return threading.Event()

    def lock(self) -> Lock:
        return threading.Lock()

    def condition(self) -> Condition:
        return threading.Condition()


class PollingLoop:
    """A thread that calls `look` again after each pause, or sooner after `kick`.

    `look` does what is due and returns the pause in seconds, or None to end the thread. At least
    `rest()` seconds pass between two calls, however often `kick` is called.
    """

    def __init__(
        self,
        threads: Threads,
        name: str,
        look: Callable[[], float | None],
        *,
        rest: Callable[[], float] = float,
    ) -> None:
        self._threads = threads
        self._name = name
        self._look = look
        self._rest = rest
        self._kicked = threads.event()
        self._stop = threads.event()
        self._thread: RunningThread | None = None

    def start(self) -> None:
        self._thread = self._threads.start(self._name, self._run)

    def close(self) -> None:
        self._stop.set()
        self._kicked.set()
        if self._thread is not None:
            self._thread.join()

    def kick(self) -> None:
        self._kicked.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._kicked.clear()
            pause = self._look()
            if pause is None:
                return
            rest = min(self._rest(), pause)
            if rest and self._stop.wait(rest):
                return
            left = pause - rest
            self._kicked.wait(None if left == inf else left)


_forks = itertools.count(1)
_generation = 0


def _note_fork() -> None:
    global _generation  # noqa: PLW0603 - of the process, as a fork is
    _generation = next(_forks)


os.register_at_fork(after_in_child=_note_fork)


def fork_generation() -> int:
    """A number that differs between a process and all processes that it was forked from."""
    return _generation
