"""A thread that does its round again and again, sooner when there is something to do."""

from __future__ import annotations

import logging
from collections.abc import Callable

from holdfast.engine.engine import Engine
from holdfast.threads import Running

logger = logging.getLogger(__name__)

_SHORTEST, _LONGEST = 0.01, 0.5
_LONGEST_TROUBLE = 2.0


class Rounds:
    """`step` does what there is to do and tells how much; `trouble` is called after an error.

    It is given how long it may wait for more; where it does not wait by itself, `pauses` does.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        step: Callable[[float], int],
        *,
        trouble: Callable[[], None] = lambda: None,
        pauses: bool,
    ) -> None:
        self._engine = engine
        self._name = name
        self._step = step
        self._trouble = trouble
        self._pauses = pauses
        self.stopped = engine.threads.event()
        self._heard = engine.threads.event()
        self._unsubscribe = engine.notifier.subscribe(self._heard.set)
        self._thread: Running | None = None

    def start(self) -> None:
        self._thread = self._engine.threads.start(self._name[:60], self._run)

    def close(self) -> None:
        self.stopped.set()
        self._heard.set()
        self._unsubscribe()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        pause = delay = _SHORTEST
        while not self.stopped.is_set():
            self._heard.clear()
            try:
                done = self._step(pause)
            except Exception:
                logger.exception("%s could not go on; it or another tries again", self._name)
                self._recover(delay)
                delay = min(_LONGEST_TROUBLE, delay * 2)
                continue
            delay = _SHORTEST
            if done:
                pause = _SHORTEST
            else:
                if self._pauses:
                    self._heard.wait(pause)
                pause = min(_LONGEST, pause * 2)

    def _recover(self, delay: float) -> None:
        try:
            self._trouble()
        except Exception:
            logger.debug("%s could not step down", self._name, exc_info=True)
        self.stopped.wait(delay * (0.5 + self._engine.randomness.random()))
