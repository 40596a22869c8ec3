"""Runs one command to its end: feeds it, reads it, and has whatever it started ended."""

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
from holdfast.worker.steps import keeper
from holdfast.worker.steps.command import (
    IDLE,
    OVER,
    SIGNALLED,
    TIMEOUT,
    CannotStart,
    Command,
    Ended,
    Limits,
    Watch,
)

CHUNK = 256 * 1024
LOOK_EVERY = 1.0
LOOK_AT_LEAST = 0.02
PATIENCE_WITH_KEEPER = keeper.GIVE_UP + 5.0
READS_AT_THE_END = 64


def _why(error: OSError | ValueError) -> str:
    """Why nothing was started; what the system names is our own keeper, which nobody asked for."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno != errno.E2BIG:
        return error.strerror or str(error)
    return (
        "its arguments and its environment are longer than this system takes; "
        "a command without {{ prompt }} reads its prompt from its input, however long it is"
    )


class Process:
    """One run of a command, in the thread that asks for it."""

    def __init__(self, command: Command, limits: Limits, watch: Watch, clock: Clock) -> None:
        self._given = memoryview(command.given)
        self._command = command
        self._limits = limits
        self._watch = watch
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._talking = True
        self._heard = b""
        self._told: dict[str, str] = {}
        self._stopped: str | None = None
        self._give_up_at: float | None = None
        self._until: float | None = None
        self._started_at = self._active_at = clock.monotonic()

    def run(self) -> Ended:
        """Run it until it and all its descendants have ended."""
        with self._selector, Bell() as bell, self._kept():
            self._selector.register(bell.awake, selectors.EVENT_READ, bell.heard)
            self._watch.interrupted(bell.ring)
            try:
                while self._talking:
                    self._look()
                    self._turn(self._pause())
                self._read_what_is_left()
            finally:
                self._watch.interrupted(None)
        return self._ended()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        self._control, theirs = socket.socketpair()
        with self._control, theirs:
            self._keeper = self._start(theirs)
            self._stdin = cast("IO[bytes]", self._keeper.stdin)
            theirs.close()
            with self._keeper:
                try:
                    self._register()
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
                [sys.executable, "-I", "-S", keeper.__file__, *kept],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                bufsize=0,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CannotStart(
                f"{self._command.arguments[0]} cannot be run: {_why(error)}"
            ) from error

    def _register(self) -> None:
        self._control.setblocking(False)  # noqa: FBT003 - the standard library's own
        register, reads = self._selector.register, selectors.EVENT_READ
        register(self._control, reads, self._hear)
        for pipe, error in ((self._keeper.stdout, False), (self._keeper.stderr, True)):
            read = cast("IO[bytes]", pipe)
            register(read, reads, partial(self._read, read, error=error))
        if self._given:
            os.set_blocking(self._stdin.fileno(), False)
            register(self._stdin, selectors.EVENT_WRITE, self._feed)
        else:
            self._stdin.close()

    def _turn(self, pause: float) -> bool:
        ready = self._selector.select(pause)
        for key, _ in ready:
            key.data()
        return bool(ready)

    def _look(self) -> None:
        """Have it ended when there is a reason to, and say until when its lease lasts."""
        now, limits = self._clock.monotonic(), self._limits
        if self._stopped is not None:
            if self._give_up_at is not None and now >= self._give_up_at:
                self._keeper.kill()
        elif self._watch.over():
            self._stop(OVER)
        elif limits.timeout is not None and now >= self._started_at + limits.timeout:
            self._stop(TIMEOUT)
        elif limits.idle_timeout is not None and now >= self._active_at + limits.idle_timeout:
            self._stop(IDLE)
        elif (until := self._watch.deadline()) != self._until and until is not None:
            self._say(f"until {until}")
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
        return LOOK_EVERY if self._stopped is not None else max(LOOK_AT_LEAST, min(pauses))

    def _stop(self, why: str) -> None:
        self._stopped = why
        self._give_up_at = self._clock.monotonic() + self._limits.grace + PATIENCE_WITH_KEEPER
        self._say("stop")

    def _say(self, line: str) -> None:
        # Who is gone hears nothing more, and will be found gone.
        with suppress(OSError):
            self._control.send(f"{line}\n".encode())

    def _hear(self) -> None:
        try:
            said = self._control.recv(4096)
        except ConnectionError:
            said = b""
        *lines, self._heard = (self._heard + said).split(b"\n")
        for line in lines:
            word, _, value = line.decode("utf-8", "replace").partition(" ")
            self._told[word] = value
            if word == "pid":
                command, _, started = value.partition(" ")
                self._watch.began(self._keeper.pid, int(command), started)
        if not said:
            self._talking = False
            self._selector.unregister(self._control)

    def _feed(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._given[:CHUNK])
        except BlockingIOError:
            return
        except OSError:
            # It does not want to read: that is its own affair.
            written = len(self._given)
        self._given = self._given[written:]
        if not self._given:
            self._selector.unregister(self._stdin)
            self._stdin.close()

    def _read(self, pipe: IO[bytes], *, error: bool) -> None:
        data = os.read(pipe.fileno(), CHUNK)
        if data:
            self._active_at = self._clock.monotonic()
            self._watch.wrote(data, error=error)
        else:
            self._selector.unregister(pipe)

    def _read_what_is_left(self) -> None:
        # All writers have ended, but for those that could not be: nobody waits for them.
        for _ in range(READS_AT_THE_END):
            if not self._turn(0):
                return

    def _ended(self) -> Ended:
        told = self._told
        if "error" in told:
            number, _, path = told["error"].partition(" ")
            # A name without a slash is looked for in PATH; any other in the folder it runs in.
            folder = self._command.directory or Path.cwd()
            where = f" in {folder}" if "/" in path and not path.startswith("/") else ""
            raise CannotStart(f"{path} cannot be run: {os.strerror(int(number))}{where}")
        return Ended(
            code=int(told["exit"]) if "exit" in told else None,
            stopped=self._stopped or (SIGNALLED if SIGNALLED in told else None),
            ended=int(told.get("ended", "0")),
            left=int(told.get("left", "0")),
            abandoned="ended" not in told,
        )


class Bell:
    """Wakes a thread that waits for files, from any other thread."""

    def __init__(self) -> None:
        self.awake, self._rope = socket.socketpair()
        self._rope.setblocking(False)  # noqa: FBT003 - the standard library's own
        self._lock = threading.Lock()

    def ring(self) -> None:
        with self._lock, suppress(OSError):
            self._rope.send(b"!")

    def heard(self) -> None:
        self.awake.recv(4096)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._rope.close()
        self.awake.close()
