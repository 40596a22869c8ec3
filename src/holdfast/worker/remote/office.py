"""A store reached through a server, for a worker that runs commands and HTTP calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from holdfast.clock import SystemClock
from holdfast.engine.core.sync_async import operation, reading
from holdfast.engine.read.missing_functions import WANTED_AT_ONCE, Wanted
from holdfast.engine.surroundings.workers import AnnounceWorker, ForgetWorker, NoteStop
from holdfast.errors import InvalidInput, StoreGone
from holdfast.model.result import TransitionResult
from holdfast.randomness import SystemRandomness
from holdfast.settings import Settings
from holdfast.store.database import Row
from holdfast.threads import SystemThreads
from holdfast.worker.office import LeasesDesk, Living
from holdfast.worker.remote import client
from holdfast.worker.remote.client import Client, TokenRefused
from holdfast.worker.remote.desk import Sending
from holdfast.worker.remote.work import Ports, RemoteWork


class RemoteWorkers:
    """The server keeps a worker among those that live while it asks for work, or says it lives."""

    def __init__(self, sending: Sending, work: RemoteWork) -> None:
        self._sending = sending
        self._work = work

    @operation
    def register(self, /, *_: Any, process: str | None = None, **__: Any) -> Future[Row | None]:
        self._sending.process = process
        return _now({"started_at": 0})

    @operation
    def announce(
        self, name: str, started_at: int, pausing: str | None = None
    ) -> Future[Row | None]:
        return self._sending.submit(
            AnnounceWorker(name=name, started_at=started_at, ttl=0, pausing=pausing)
        )

    @operation
    def forget(self, name: str, started_at: int) -> Future[TransitionResult]:
        return self._sending.submit(ForgetWorker(name=name, started_at=started_at))

    @reading
    def list(self) -> Living:
        """A worker's token does not show the others: whoever starts them has to tell them apart."""
        return []

    @operation
    def note_stop(
        self, task_id: str, token: str, *, ended: int, left: int = 0
    ) -> Future[TransitionResult]:
        held = self._work.reports.fenced(task_id, token)
        return self._sending.submit(NoteStop(**held, ended=ended, left=left))


class RemoteTasks:
    """A task that it has no function for is left to others: no hold is its to put."""

    @operation
    def hold(self, *_: Any, **__: Any) -> Future[TransitionResult]:
        return _now(TransitionResult(ok=True))

    @reading
    def wanted(self, *, after: str = "", count: int = WANTED_AT_ONCE) -> Wanted:  # noqa: ARG002 - as an engine is asked
        """No functions, of however many."""
        return Wanted(functions=(), after=after, until=after, following="")

    @operation
    def unhold_known(self, *_: Any, **__: Any) -> Future[list[TransitionResult]]:
        return _now([])

    @reading
    def lifted(self, *_: Any) -> list[str]:
        """None: it has put no hold that anybody could lift."""
        return []


class RemoteOffice:
    """It runs no functions, and these alone keep files and hold leases of a store."""

    store = ""
    file = None

    def __init__(self, url: str, token: str, **settings: Any) -> None:
        self.settings = Settings(url=url.rstrip("/"), **settings)
        self.clock = SystemClock()
        self.threads = SystemThreads()
        self.token = token
        self.client = Client(url, token)
        self._sending = Sending(self.client, self.clock)
        ports = Ports(
            settings=self.settings,
            clock=self.clock,
            threads=self.threads,
            randomness=SystemRandomness(),
        )
        self.work = RemoteWork(self.client, self._sending, ports)
        self.workers = RemoteWorkers(self._sending, self.work)
        self.tasks = RemoteTasks()

    def on_hint(self, callback: Callable[[], None], *, served: bool = True) -> Callable[[], None]:
        """No hint comes from a server: it is asked all the time."""
        return lambda: None if served else callback()

    def on_leave(self, callback: Callable[[Sequence[tuple[str, int]]], None]) -> Callable[[], None]:
        """What others end is heard of at the next renewal."""
        return lambda: callback(())

    def on_gone(self, callback: Callable[[StoreGone], None]) -> Callable[[], None]:
        """The server ends, and is asked again until it is back."""
        del callback
        return lambda: None

    def now(self) -> int:
        return self.clock.now()

    @property
    def leases(self) -> LeasesDesk:
        raise InvalidInput("lease", "there is none to be had through a server")

    @property
    def refused(self) -> TokenRefused | None:
        """What ended the work: the server does not take the token."""
        return self.work.refused

    def close(self) -> None:
        # What waits for an answer that never comes to an end hears then that there is none.
        hang_up = threading.Timer(client.LONGEST_ANSWER, self.client.close)
        hang_up.daemon = True
        hang_up.start()
        try:
            self._sending.close()
        finally:
            hang_up.cancel()
        self.client.close()


def _now(value: Any) -> Future[Any]:  # noqa: ANN401 - whatever is known without asking
    done: Future[Any] = Future()
    done.set_result(value)
    return done
