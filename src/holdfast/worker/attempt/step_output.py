"""Step output: what a step prints and logs also goes into the log of its attempt.

While a worker runs, `sys.stdout` and `sys.stderr` are streams that pass everything on, and each log
record passes a hook before the handlers. Both look for the attempt around the caller, in a context
variable that functions and coroutines have alike. So a step that writes nothing pays nothing.
"""

from __future__ import annotations

import copy
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from holdfast.errors import StoreUnwritable
from holdfast.logs import find_log_subject
from holdfast.worker.files.attempt_log import AttemptLog, append_to_log
from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.secrets.secret_rules import (
    Cleaner,
    CleanStream,
    WrittenKind,
    redact_or_refuse,
)

# Logs beyond so many are opened for each write, because open files are limited.
MOST_OPEN = 128
OWN_LOGGER = "holdfast"
_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
_STREAMS = ("stdout", "stderr")
_HOOK = "callHandlers"

log = logging.getLogger("holdfast.worker")
_places = threading.BoundedSemaphore(MOST_OPEN)
# Handlers print what the hook has written already.
_is_handled: ContextVar[bool] = ContextVar("holdfast_log_record_is_handled", default=False)


class StepLog:
    """The log of an attempt of a function, from its first line until the function has returned."""

    def __init__(self, path: StatePath, cleaner: Callable[[], Cleaner]) -> None:
        self._path = path
        self._cleaner = cleaner
        self._streams = {name: CleanStream(cleaner) for name in _STREAMS}
        # Reentrant, because what the garbage collector ends in between may print.
        self._lock = threading.RLock()
        self._file: AttemptLog | None = None
        self._closed = False
        self._line_has_ended = True

    def write_line(self, text: str) -> None:
        """Write a line, or several lines, apart from what is printed."""
        clean = str(redact_or_refuse(WrittenKind.LOG, text, self._cleaner()))
        ending = "" if clean.endswith("\n") else "\n"
        with self._lock:
            self._end_line()
            self._write(f"{clean}{ending}".encode("utf-8", "replace"))

    def write_printed(self, stream: str, text: str) -> None:
        """Write text of a stream; what may begin a secret is held back until the secret ends."""
        with self._lock:
            self._write(self._streams[stream].feed(text.encode("utf-8", "replace")))

    def close(self) -> None:
        with self._lock:
            for stream in self._streams.values():
                self._write(stream.flush())
            self._end_line()
            self._closed = True
            if self._file is not None:
                self._file.close()
                _places.release()

    def _end_line(self) -> None:
        if not self._line_has_ended:
            self._write(b"\n")

    def _write(self, data: bytes) -> None:
        if not data or self._closed:
            return
        self._line_has_ended = data.endswith(b"\n")
        if self._file is None and _places.acquire(blocking=False):
            self._file = AttemptLog(self._path)
        if self._file is not None:
            self._file.write(data)
            return
        try:
            append_to_log(self._path, data)
        except StoreUnwritable as error:
            log.warning("what a step has written is not in its log: %s", error)


def find_step_log() -> StepLog | None:
    """The log of the attempt that the caller is a part of."""
    open_log: Callable[[], StepLog | None] | None
    open_log = getattr(find_log_subject(), "open_step_log", None)
    return None if open_log is None else open_log()


class StepStream:
    """A standard stream that also writes what a step prints into the log of its attempt."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self.stream = stream

    def write(self, text: str) -> int:
        written = self.stream.write(text)
        if not _is_handled.get() and (step_log := find_step_log()) is not None:
            step_log.write_printed(self._name, text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self.stream, name)


class StepOutput:
    """The streams and the hook of this process, in place while any worker runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers = 0
        self._remove: Callable[[], object] = lambda: None

    def begin(self) -> None:
        with self._lock:
            self._workers += 1
            if self._workers == 1:
                self._put_in_place()

    def end(self) -> None:
        with self._lock:
            self._workers -= 1
            if not self._workers:
                self._remove()

    def _put_in_place(self) -> None:
        streams = [
            (name, StepStream(name, stream))
            for name in _STREAMS
            if (stream := getattr(sys, name)) is not None
        ]
        for name, stream in streams:
            setattr(sys, name, stream)
        before = getattr(logging.Logger, _HOOK)
        hook = _make_hook(before)
        setattr(logging.Logger, _HOOK, hook)

        def remove() -> None:
            # What somebody else has put in place meanwhile stays.
            for name, stream in streams:
                if getattr(sys, name) is stream:
                    setattr(sys, name, stream.stream)
            if getattr(logging.Logger, _HOOK) is hook:
                setattr(logging.Logger, _HOOK, before)

        self._remove = remove


def _make_hook(
    call_handlers: Callable[[logging.Logger, logging.LogRecord], None],
) -> Callable[[logging.Logger, logging.LogRecord], None]:
    """The hook before the handlers of a record.

    A handler of the root logger would not see the records of loggers that do not propagate, and an
    application that sets up its logging later would find it set up, or would remove the handler.
    """

    def write_and_call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        step_log = None if _is_handled.get() else find_step_log()
        if step_log is None:
            call_handlers(self, record)
            return
        if record.name.partition(".")[0] != OWN_LOGGER:
            step_log.write_line(_format_record(record))
        with _handling():
            call_handlers(self, record)

    return write_and_call_handlers


@contextmanager
def _handling() -> Iterator[None]:
    before = _is_handled.set(True)
    try:
        yield
    finally:
        _is_handled.reset(before)


def _format_record(record: logging.LogRecord) -> str:
    try:
        # A copy, because formatting leaves its texts in the record.
        return _FORMAT.format(copy.copy(record))
    except Exception:  # noqa: BLE001 - a handler would not fail the step either
        return f"{record.levelname} {record.name}: {record.msg!r} {record.args!r}"


step_output = StepOutput()
