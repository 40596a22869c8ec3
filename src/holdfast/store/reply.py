"""The futures of what the writer answers, and of what is made of that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from holdfast.store.holding import refuse_here

T = TypeVar("T")


class Answer(Future[T]):
    """Nobody can wait for it who keeps the writer from writing the file that it is about."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self.file = file

    def result(self, timeout: float | None = None) -> T:
        self._refuse_to_wait(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._refuse_to_wait(timeout)
        return super().exception(timeout)

    def _refuse_to_wait(self, timeout: float | None) -> None:
        if self.file is not None and timeout != 0 and not self.done():
            refuse_here("result(…) of what was submitted", self.file)


class Reply(Answer[Any]):
    """A future whose result is made of the reply by whoever asks for it first."""

    def __init__(self, read: Callable[[Any], Any], file: Path | None = None) -> None:
        super().__init__(file)
        self._read = read
        self._making = threading.Lock()
        self._made: tuple[Any, BaseException | None] | None = None

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - whatever is made
        value, error = self._make(super().result(timeout))
        if error is not None:
            raise error
        return value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        return self._make(super().result())[1] if error is None else error

    def _make(self, reply: object) -> tuple[Any, BaseException | None]:
        with self._making:
            if self._made is None:
                try:
                    self._made = (self._read(reply), None)
                except BaseException as error:  # noqa: BLE001 - it is the caller's to see
                    self._made = (None, error)
        return self._made


def following(future: Future[Any]) -> Answer[Any]:
    """A future that is settled by another: who cannot wait for that cannot wait for this."""
    return Answer(getattr(future, "file", None))
