"""Those who want to hear what a commit of this process did."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
Listener = Callable[[Sequence[T]], None]

log = logging.getLogger("holdfast.engine")


class Listeners(Generic[T]):
    def __init__(self) -> None:
        self._listeners: tuple[Listener[T], ...] = ()

    def add(self, listener: Listener[T]) -> Callable[[], None]:
        """Tell one more from now on; returns the way out."""
        self._listeners = (*self._listeners, listener)

        def remove() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return remove

    def tell(self, news: Sequence[T]) -> None:
        if not news:
            return
        for listener in self._listeners:
            # One that fails must not keep the news from the others.
            try:
                listener(news)
            except Exception:
                log.exception("a listener failed on the end of %s", ", ".join(map(str, news)))
