"""Loop watch: notices a coroutine that keeps the worker's loop from all other coroutines."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine, Generator
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.logs import Subject, find_log_subject

BLOCKED_SECONDS = 1.0
# The code around a step on its loop.
_AROUND = ("asyncio", "holdfast")

log = logging.getLogger("holdfast.worker")
Made = Coroutine[Any, Any, Any] | Generator[Any, None, Any]


class LoopWatch:
    """Leaves a mark for a loop from another thread, and looks whether the loop has reached it.

    Each task on the loop is known by the attempt that has made it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._subjects: WeakKeyDictionary[asyncio.Task[Any], Subject] = WeakKeyDictionary()
        self._marked_at: float | None = None
        self._told: Subject | None = None
        self._thread = 0
        loop.set_task_factory(self._make_task)
        loop.call_soon(self._note_thread)

    def note_task(self, task: asyncio.Task[Any], subject: Subject) -> None:
        """Note the attempt of a task that is not made by a task of that attempt."""
        self._subjects[task] = subject

    def look(self) -> None:
        """Warn of a step that has kept the loop for too long; called now and then."""
        now, marked_at = self._loop.time(), self._marked_at
        if marked_at is None:
            self._marked_at = now
            self._loop.call_soon_threadsafe(self._on_mark, now)
        elif self._told is None and now >= marked_at + BLOCKED_SECONDS:
            self._warn(now - marked_at)

    def _warn(self, seconds: float) -> None:
        task = asyncio.current_task(self._loop)
        self._told = None if task is None else self._subjects.get(task)
        if self._told is None:
            # The loop waits for its turn on a busy machine.
            return
        log.warning(
            "%s blocks the loop of this worker's coroutines%s, for %.1f s by now, and none of them "
            "goes on meanwhile; await what takes so long, as `await asyncio.to_thread(…)` does, or "
            "make it a plain function",
            self._told,
            _describe_place(sys._current_frames().get(self._thread)),  # noqa: SLF001 - the one way to see another thread
            seconds,
        )

    def _on_mark(self, marked_at: float) -> None:
        told, self._told, self._marked_at = self._told, None, None
        if told is not None:
            seconds = self._loop.time() - marked_at
            log.warning("%s has blocked the loop of the coroutines for %.1f s", told, seconds)

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, made: Made, **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(made, loop=loop, **options)
        if (subject := find_log_subject()) is not None:
            self._subjects[task] = subject
        return task

    def _note_thread(self) -> None:
        self._thread = threading.get_ident()


def _describe_place(frame: FrameType | None) -> str:
    """The line of the step that the loop is in; empty where no code of a step is found."""
    place = ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in _AROUND:
            place = f" at {frame.f_code.co_filename}:{frame.f_lineno}"
        elif place:
            return place
        frame = frame.f_back
    return place
