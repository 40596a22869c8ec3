"""What a command writes, on its way: without secrets into the log, its end kept to be read."""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.worker.files.attempt_log import Spool
from holdfast.worker.secrets.redaction import Redaction, Stream

LAST_LINE = 200
KEPT_ERRORS = 4_000
COMPLAINT = 1_500
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Transcript:
    def __init__(self, spool: Spool, present: Callable[[], Redaction], keep: int) -> None:
        self._spool = spool
        self._present = present
        self._streams = {False: Stream(present), True: Stream(present)}
        self._keep = {False: keep, True: KEPT_ERRORS}
        self._ends = {False: bytearray(), True: bytearray()}
        self.last_line = ""

    def wrote(self, data: bytes, *, error: bool) -> None:
        self._note(self._streams[error].feed(data), error=error)

    def say(self, line: str) -> None:
        """A line of Holdfast's own, in the log alone."""
        self._spool.write(f"[holdfast: {line}]\n".encode("utf-8", "replace"))

    def end(self) -> None:
        for error, stream in self._streams.items():
            self._note(stream.flush(), error=error)

    @property
    def output(self) -> bytes:
        """The end of what it wrote to its output."""
        return bytes(self._ends[False])

    @property
    def complaint(self) -> str:
        """The last it said, of its errors or else of anything."""
        said = self._ends[True].strip() or self._ends[False][-KEPT_ERRORS:].strip()
        return self._plain(said.decode("utf-8", "replace"))[-COMPLAINT:]

    def _note(self, clean: bytes, *, error: bool) -> None:
        if not clean:
            return
        self._spool.write(clean)
        end = self._ends[error]
        end += clean
        # Not at every write: what is cut off is moved.
        if len(end) > 2 * self._keep[error]:
            del end[: -self._keep[error]]
        lines = clean[-4 * LAST_LINE :].decode("utf-8", "replace").splitlines()
        shown = next((line for each in reversed(lines) if (line := self._plain(each).strip())), "")
        self.last_line = shown[:LAST_LINE] or self.last_line

    def _plain(self, text: str) -> str:
        """Without colours and the like, and without the secrets that are whole only then."""
        return self._present().text(_CONTROL.sub("", text))
