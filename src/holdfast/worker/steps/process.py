"""Process: one run of a command under its keeper, from its input to the end of all it started."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Self, cast

from holdfast.clock import Clock
from holdfast.worker.steps import process_keeper
from holdfast.worker.steps.command import (
    IDLE,
    OVER,
    SIGNALLED,
    TIMEOUT,
    CannotStart,
    Command,
    CommandEnd,
    CommandLimits,
    CommandWatch,
)

CHUNK_BYTES = 256 * 1024
LOOK_EVERY = 1.0
SHORTEST_PAUSE = 0.02
KEEPER_SECONDS = process_keeper.GIVE_UP_SECONDS + 5.0
LAST_READS = 64


def _describe_start_error(error: OSError | ValueError) -> str:
    """The reason why nothing was started, without the path of the keeper."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno != errno.E2BIG:
        return error.strerror or str(error)
    return (
        "its arguments and its environment are longer than this system takes; "
        "a command without {{ prompt }} reads its prompt from its input, however long it is"
    )


class Process:
    """One run of a command, in the thread that calls `run`."""

    def __init__(
        self, command: Command, limits: CommandLimits, watch: CommandWatch, clock: Clock
    ) -> None:
        self._input = memoryview(command.stdin)
        self._command = command
        self._limits = limits
        self._watch = watch
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._connected = True
        self._received = b""
        self._reports: dict[str, str] = {}
        self._stop_reason: str | None = None
        self._give_up_at: float | None = None
        self._until: float | None = None
        self._started_at = self._active_at = clock.monotonic()

    def run(self) -> CommandEnd:
        """Run the command until it and all its descendants have ended."""
        with self._selector, ThreadWakeup() as bell, self._run_keeper():
            self._selector.register(bell.readable_end, selectors.EVENT_READ, bell.drain)
            self._watch.on_interrupt(bell.wake)
            try:
                while self._connected:
                    self._check_limits()
                    self._handle_ready(self._pause())
                self._read_what_is_left()
            finally:
                self._watch.on_interrupt(None)
        return self._read_end()

    def note_active(self) -> None:
        """Note, from any thread, that the command does something although it writes nothing."""
        self._active_at = self._clock.monotonic()

    @contextmanager
    def _run_keeper(self) -> Iterator[None]:
        self._control, theirs = socket.socketpair()
        with self._control, theirs:
            self._keeper = self._start(theirs)
            self._stdin = cast("IO[bytes]", self._keeper.stdin)
            theirs.close()
            with self._keeper:
                try:
                    self._register_files()
                    yield
                finally:
                    # It ends all that is left when nobody talks to it any more.
                    self._control.close()
                    self._stdin.close()

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        environment, directory = dict(self._command.environment), self._command.directory
        kept = (
            *(str(theirs.fileno()), str(self._limits.grace), environment.get("LC_CTYPE", "")),
            *("" if directory is None else str(directory), *self._command.arguments),
        )
        try:
            return subprocess.Popen(  # noqa: S603 - an argument list, and no shell
                [sys.executable, "-I", "-S", process_keeper.__file__, *kept],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                bufsize=0,
                pass_fds=[theirs.fileno(), *self._command.files],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CannotStart(
                f"{self._command.arguments[0]} cannot be run: {_describe_start_error(error)}"
            ) from error

    def _register_files(self) -> None:
        self._control.setblocking(False)  # noqa: FBT003 - the standard library's own
        register, reads = self._selector.register, selectors.EVENT_READ
        register(self._control, reads, self._read_keeper)
        for pipe, error in ((self._keeper.stdout, False), (self._keeper.stderr, True)):
            read = cast("IO[bytes]", pipe)
            register(read, reads, partial(self._read, read, error=error))
        if self._input:
            os.set_blocking(self._stdin.fileno(), False)
            register(self._stdin, selectors.EVENT_WRITE, self._write_input)
        else:
            self._stdin.close()

    def _handle_ready(self, pause: float) -> bool:
        ready = self._selector.select(pause)
        for key, _ in ready:
            key.data()
        return bool(ready)

    def _check_limits(self) -> None:
        """End the command if there is a reason to, and tell the keeper the end of the lease."""
        now, limits = self._clock.monotonic(), self._limits
        if self._stop_reason is not None:
            if self._give_up_at is not None and now >= self._give_up_at:
                self._keeper.kill()
        elif self._watch.is_over():
            self._stop(OVER)
        elif limits.timeout is not None and now >= self._started_at + limits.timeout:
            self._stop(TIMEOUT)
        elif limits.idle_timeout is not None and now >= self._active_at + limits.idle_timeout:
            self._stop(IDLE)
        elif (until := self._watch.deadline()) != self._until and until is not None:
            self._send_line(f"until {until}")
            self._until = until

    def _pause(self) -> float:
        now, limits = self._clock.monotonic(), self._limits
        pauses = [LOOK_EVERY]
        if self._until is not None:
            pauses.append((self._until - now) / 4)
        if limits.timeout is not None:
            pauses.append(self._started_at + limits.timeout - now)
        if limits.idle_timeout is not None:
            pauses.append(self._active_at + limits.idle_timeout - now)
        return LOOK_EVERY if self._stop_reason is not None else max(SHORTEST_PAUSE, min(pauses))

    def _stop(self, why: str) -> None:
        self._stop_reason = why
        self._give_up_at = self._clock.monotonic() + self._limits.grace + KEEPER_SECONDS
        self._send_line("stop")

    def _send_line(self, line: str) -> None:
        # A keeper that is gone is noticed when its socket is read.
        with suppress(OSError):
            self._control.send(f"{line}\n".encode())

    def _read_keeper(self) -> None:
        try:
            said = self._control.recv(4096)
        except ConnectionError:
            said = b""
        *lines, self._received = (self._received + said).split(b"\n")
        for line in lines:
            word, _, value = line.decode("utf-8", "replace").partition(" ")
            self._reports[word] = value
            if word == "pid":
                command, _, started = value.partition(" ")
                self._watch.on_begin(self._keeper.pid, int(command), started)
        if not said:
            self._connected = False
            self._selector.unregister(self._control)

    def _write_input(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._input[:CHUNK_BYTES])
        except BlockingIOError:
            return
        except OSError:
            # The command has closed its input.
            written = len(self._input)
        self._input = self._input[written:]
        if not self._input:
            self._selector.unregister(self._stdin)
            self._stdin.close()

    def _read(self, pipe: IO[bytes], *, error: bool) -> None:
        data = os.read(pipe.fileno(), CHUNK_BYTES)
        if data:
            self._active_at = self._clock.monotonic()
            self._watch.on_output(data, error=error)
        else:
            self._selector.unregister(pipe)

    def _read_what_is_left(self) -> None:
        # All writers have ended, except processes that could not be ended: those are not awaited.
        for _ in range(LAST_READS):
            if not self._handle_ready(0):
                return

    def _read_end(self) -> CommandEnd:
        told = self._reports
        if "error" in told:
            number, _, path = told["error"].partition(" ")
            # A name without a slash is looked up in PATH, any other in the working directory.
            folder = self._command.directory or Path.cwd()
            where = f" in {folder}" if "/" in path and not path.startswith("/") else ""
            raise CannotStart(f"{path} cannot be run: {os.strerror(int(number))}{where}")
        return CommandEnd(
            code=int(told["exit"]) if "exit" in told else None,
            stop_reason=self._stop_reason or (SIGNALLED if SIGNALLED in told else None),
            processes_ended=int(told.get("ended", "0")),
            processes_left=int(told.get("left", "0")),
            abandoned="ended" not in told,
        )


class ThreadWakeup:
    """A wake-up for a thread that waits for files; any thread may send it."""

    def __init__(self) -> None:
        self.readable_end, self._writable = socket.socketpair()
        self._writable.setblocking(False)  # noqa: FBT003 - the standard library's own
        self._lock = threading.Lock()

    def wake(self) -> None:
        with self._lock, suppress(OSError):
            self._writable.send(b"!")

    def drain(self) -> None:
        self.readable_end.recv(4096)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._writable.close()
        self.readable_end.close()
