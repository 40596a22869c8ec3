"""Log streams: the log of a step that runs elsewhere goes to the server while the step runs."""

from __future__ import annotations

import codecs
import logging
from contextlib import suppress
from typing import Any, Self

from holdfast.clock import Clock
from holdfast.errors import HoldfastError, StoreUnreachable
from holdfast.model.task import Assignment
from holdfast.threads import Threads
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.files.state_paths import StatePath
from holdfast.worker.remote.client import ServerClient

SEND_EVERY = 0.5
CHUNK_BYTES = 1_000_000
PAUSE = 0.5

log = logging.getLogger("holdfast.worker")


class LogStream:
    """Sends what is new in the log of one attempt from a thread, and the rest at the end.

    An error fails no step: a server that is away gets the log once it is back, and one that refuses
    a piece gets no more.
    """

    def __init__(
        self,
        client: ServerClient,
        path: StatePath,
        attempt: tuple[Assignment, AttemptContext],
        *,
        clock: Clock,
        threads: Threads,
    ) -> None:
        self._client = client
        self._path = path
        self._assignment, self._context = attempt
        self._clock = clock
        self._threads = threads
        self._stopping = threads.event()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read = 0
        # What is read, and not taken by the server yet.
        self._unsent = ""
        self._refused = False

    def __enter__(self) -> Self:
        self._thread = self._threads.start("holdfast-log", self._run)
        return self

    def __exit__(self, *_: object) -> None:
        """Send the rest, as long as the attempt lasts: its report comes after its log."""
        self._stopping.set()
        self._thread.join()
        while not self._context.ended and not self._send_new(last=True):
            self._clock.sleep(PAUSE)

    def _run(self) -> None:
        while not self._stopping.wait(SEND_EVERY) and not self._context.ended:
            self._send_new()

    def _send_new(self, *, last: bool = False) -> bool:
        """Send what is new in the log; gives whether nothing of it is left."""
        while not self._refused and self._read_on(last=last):
            try:
                self._send()
            except StoreUnreachable:
                return False
            except HoldfastError as error:
                task_id = self._assignment.task_id
                log.warning("the log of %s is kept here alone: %s", task_id, error)
                self._refused = True
        return True

    def _read_on(self, *, last: bool) -> bool:
        """Read the next piece, unless one is still to be sent; gives whether there is one."""
        if not self._unsent:
            piece = b""
            with suppress(OSError):
                piece = self._path.read(CHUNK_BYTES, self._read)
            self._read += len(piece)
            self._unsent = self._decoder.decode(piece, final=last and not piece)
        return bool(self._unsent)

    def _send(self) -> None:
        said: dict[str, Any] = {"token": self._assignment.token, "chunk": self._unsent}
        self._client.transition(f"/claims/{self._assignment.task_id}/logs", said, bytes=int)
        self._unsent = ""
