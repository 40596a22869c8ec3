"""Who works beside a run that is watched: nobody, or workers that stop when the run is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, NoReturn, Self

if TYPE_CHECKING:
    from holdfast.worker.pool import Worker

INTERRUPTED = 130
LOOK_EVERY = 0.1


class Beside:
    """The first Ctrl-C is for whoever watches the run, and lets workers finish what they run.

    The second one has them give it back at once. It is taken note of and raises nothing: wherever
    it came in, something would be left half done.
    """

    def __init__(self, command: str | None = None) -> None:
        self._command = command
        self._workers: list[Worker] = []
        self._open = ExitStack()
        self._heard = threading.Event()

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
        if self._workers and threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, lambda *_: self._heard.set())
            self._open.callback(signal.signal, signal.SIGINT, before)

    def __enter__(self) -> Self:
        return self

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
