"""Transcripts: the output of a command goes redacted into the log, and its end is kept."""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.worker.files.attempt_log import AttemptLog
from holdfast.worker.secrets.redaction import Redaction, RedactionStream

LAST_LINE = 200
KEPT_ERRORS = 4_000
LONGEST_ERROR_TEXT = 1_500
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Transcript:
    def __init__(
        self,
        log: AttemptLog,
        current_redaction: Callable[[], Redaction],
        keep: int,
        on_clean: Callable[[bytes], None] | None = None,
    ) -> None:
        """`on_clean` gets what the command writes to its standard output, without secrets."""
        self._on_clean = on_clean
        self._log = log
        self._current_redaction = current_redaction
        self._streams = {
            False: RedactionStream(current_redaction),
            True: RedactionStream(current_redaction),
        }
        self._tail_sizes = {False: keep, True: KEPT_ERRORS}
        self._tails = {False: bytearray(), True: bytearray()}
        self.last_line = ""

    def on_output(self, data: bytes, *, error: bool) -> None:
        self._keep_text(self._streams[error].feed(data), error=error)

    def note_line(self, line: str) -> None:
        """Write a line of Holdfast's own into the log."""
        self._log.write(f"[holdfast: {line}]\n".encode("utf-8", "replace"))

    def end(self) -> None:
        for error, stream in self._streams.items():
            self._keep_text(stream.flush(), error=error)

    @property
    def output(self) -> bytes:
        """The end of the command's standard output."""
        return bytes(self._tails[False])

    @property
    def error_text(self) -> str:
        """The end of the command's standard error, or else of its output, for the report."""
        said = self._tails[True].strip() or self._tails[False][-KEPT_ERRORS:].strip()
        return self._make_plain(said.decode("utf-8", "replace"))[-LONGEST_ERROR_TEXT:]

    def _keep_text(self, clean: bytes, *, error: bool) -> None:
        if not clean:
            return
        self._log.write(clean)
        if self._on_clean is not None and not error:
            self._on_clean(clean)
        end = self._tails[error]
        end += clean
        # Not at every write, because cutting the beginning moves the rest.
        if len(end) > 2 * self._tail_sizes[error]:
            del end[: -self._tail_sizes[error]]
        lines = clean[-4 * LAST_LINE :].decode("utf-8", "replace").splitlines()
        shown = next(
            (line for each in reversed(lines) if (line := self._make_plain(each).strip())), ""
        )
        self.last_line = shown[:LAST_LINE] or self.last_line

    def _make_plain(self, text: str) -> str:
        """A text without control sequences, and without secrets that those had split."""
        return self._current_redaction().text(_CONTROL.sub("", text))
