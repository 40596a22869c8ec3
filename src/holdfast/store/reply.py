"""The future of what is made of a reply."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Reply(Future[Any]):
    """A future whose result is made of the reply by whoever asks for it first."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
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
