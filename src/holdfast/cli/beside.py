"""Who works beside a run that is watched: nobody, or workers that stop when the run is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, Self

if TYPE_CHECKING:
    from holdfast.worker.pool.worker import Worker

Handler = Callable[[int, FrameType | None], object]
INTERRUPTED = 130
ENDING = (signal.SIGTERM, signal.SIGHUP)
LOOK_EVERY = 0.1


class Beside:
    """The first Ctrl-C is for whoever watches the run, and lets workers finish what they run.

    The second one has them give it back at once. It is taken note of and raises nothing: wherever
    it came in, something would be left half done. A service manager and a closed terminal ask for
    the same with signals of their own.
    """

    def __init__(self, command: str | None = None) -> None:
        self._command = command
        self._workers: list[Worker] = []
        self._open = ExitStack()
        self._heard = threading.Event()
        self._asking: list[int] = []

    @property
    def command(self) -> str | None:
        """What to type for a worker like the one that is here, and goes when the run is left."""
        return self._command

    def add(self, worker: Worker) -> None:
        """Have a worker beside the run until it is left."""
        self._workers.append(worker)

    def look(self) -> None:
        """See whether somebody is missing; asked again and again while the run goes on."""

    def interrupted(self) -> None:
        """Take note of Ctrl-C from now on, and raise nothing."""
        if self._workers:
            self._hear((signal.SIGINT, *self._asking), lambda *_: self._heard.set())

    def __enter__(self) -> Self:
        # Under nohup a closed terminal is to be ignored, and stays so.
        self._asking = [each for each in ENDING if signal.getsignal(each) is signal.SIG_DFL]
        self._hear(self._asking, signal.default_int_handler)
        return self

    def _hear(self, numbers: Iterable[int], handler: Handler) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for each in numbers:
            self._open.callback(signal.signal, each, signal.signal(each, handler))

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._give_back()
        stopping = threading.Thread(target=self._stop, name="holdfast-stop", daemon=True)
        stopping.start()
        try:
            while stopping.is_alive():
                stopping.join(LOOK_EVERY)
                if self._heard.is_set():
                    self._give_back()
        except KeyboardInterrupt:
            self._give_back()
        self._open.close()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _give_back(self) -> NoReturn:
        try:
            for worker in self._workers:
                worker.give_back()
        finally:
            sys.stdout.flush()
            os._exit(INTERRUPTED)
