"""Harness stores: while a test runs, each `Holdfast` of the process has a store of that test.

Programs that name one URL share one store, as they would without the test.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from holdfast.api.open_stores import OpenStore, OpenStores
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.randomness import SeededRandomness
from holdfast.settings import Settings
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.pool.lifecycle import Worker

# Where files are in memory, a commit need not wait for a disk.
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
# After so many seconds of waits for other threads the clock moves with them, so that they end.
LONGEST_WAITS = 10.0
OnWait = Callable[[Engine, str], HoldfastError | None]


class HarnessClock(ManualClock):
    """The clock of a test, which stands still while a thread waits for another to leave a lock."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self._waited = 0.0

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self._waited += seconds
        if self._waited > LONGEST_WAITS:
            self.advance(seconds)


@dataclass(frozen=True, kw_only=True, eq=False)
class HarnessProgram:
    """The functions of one `Holdfast` that a test uses, and its engine on the store of the test."""

    stores: OpenStores
    engine: Engine
    state: StateDirectory

    def list_workers(self) -> list[Worker]:
        """The workers that the program has started itself."""
        return list(self.stores.current.workers)

    def find_function(self, workflow: str | None, step: str | None) -> Callable[..., object] | None:
        return self.stores.functions.find_function(workflow, step)


class HarnessStores:
    """Opens the stores of a test, each when a program first uses it."""

    def __init__(self, folder: Path, clock: HarnessClock, url: str | None, on_wait: OnWait) -> None:
        self._folder = folder
        self._clock = clock
        self._url = url
        self._on_wait = on_wait
        self._opened: dict[OpenStores, OpenStore] = {}
        self._urls: dict[str, str] = {}
        self._seeds = itertools.count(1)

    def find(self, stores: OpenStores) -> OpenStore:
        """The store of the test for one `Holdfast`; a new one where the program has closed it."""
        known = self._opened.get(stores)
        if known is None or known.closed:
            known = self._opened[stores] = OpenStore(open_engine=self._open)
        return known

    def list_programs(self) -> Sequence[HarnessProgram]:
        """The programs that have used their stores so far."""
        return [
            HarnessProgram(stores=each, engine=engine, state=self.state)
            for each in list(self._opened)
            if (engine := self._find_engine(each)) is not None
        ]

    def _find_engine(self, stores: OpenStores) -> Engine | None:
        closed = self._opened[stores].closed
        opened = self.find(stores)
        if closed:
            # The work goes on, as it would elsewhere.
            opened.engine = opened.open_engine(stores.settings)
        return opened.engine

    @property
    def state(self) -> StateDirectory:
        """The folder for logs, artifacts and files of commands."""
        return StateDirectory(root=self._folder / "state")

    def close(self) -> None:
        for opened in self._opened.values():
            for worker in list(opened.workers):
                worker.stop()
            # One that the program has closed has none.
            if opened.engine is not None:
                opened.engine.close()

    def _open(self, settings: Settings) -> Engine:
        url = self._url or self._find_url(settings.url)
        engine = Engine(
            url,
            settings=replace(settings, url=url),
            clock=self._clock,
            # Another seed for each: two engines on one store must not draw the same ids.
            randomness=SeededRandomness(next(self._seeds)),
        )
        engine.outcomes.on_wait = partial(self._on_wait, engine)
        # No loop beside the writer: the test alone says when time passes and work is done.
        engine.commits.start()
        return engine

    def _find_url(self, named: str) -> str:
        if named not in self._urls:
            path = self._folder / f"store-{len(self._urls) + 1}.db"
            path.write_bytes(_read_template())
            self._urls[named] = f"sqlite:///{path}"
        return self._urls[named]


@lru_cache(maxsize=1)
def _read_template() -> bytes:
    """An empty store with the present schema: to copy it is quicker than to make it."""
    with tempfile.TemporaryDirectory(prefix="holdfast-template-", dir=choose_folder()) as folder:
        path = Path(folder) / "store.db"
        Engine(f"sqlite:///{path}").close()
        return path.read_bytes()


def choose_folder() -> Path | None:
    """A folder in memory, where there is one to write to; None for that of the system."""
    try:
        with tempfile.TemporaryFile(dir=_MEMORY):
            return _MEMORY
    except OSError:
        return None
