"""Open stores: the engine and the workers that a `Holdfast` has open, in each process.

While a test has stores of its own in place, every `Holdfast` of the process uses those.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakSet

from holdfast.api.function_registry import FunctionRegistry
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.threads import fork_generation
from holdfast.worker.pool.lifecycle import Worker


def _open_engine(settings: Settings) -> Engine:
    return Engine(settings.url, settings=settings).start()


@dataclass(kw_only=True)
class OpenStore:
    """The engine and the workers that are open in one process; a forked child starts with none."""

    open_engine: Callable[[Settings], Engine] = _open_engine
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    engine: Engine | None = None
    # Weak, because a worker that is unused and has no thread need not be stopped.
    workers: WeakSet[Worker] = field(default_factory=WeakSet)


class OpenStores:
    """The settings and the functions of one `Holdfast`, and its store as each process has it."""

    def __init__(self, settings: Settings, functions: FunctionRegistry) -> None:
        self.settings = settings
        self.functions = functions
        self._by_process: dict[int, OpenStore] = {}

    @property
    def current(self) -> OpenStore:
        """The store as this process has it open, or the store of the test that runs."""
        if _find_test_store is not None:
            return _find_test_store(self)
        # A forked child keeps the state that it inherits: dropping that would close the connections
        # of its parent.
        here = self._by_process.get(fork_generation())
        if here is not None:
            return here
        closed = any(each.closed for each in self._by_process.values())
        # `setdefault` is atomic, so that two threads never make two states.
        return self._by_process.setdefault(fork_generation(), OpenStore(closed=closed))


_find_test_store: Callable[[OpenStores], OpenStore] | None = None


@contextmanager
def replace_stores(find: Callable[[OpenStores], OpenStore]) -> Iterator[None]:
    """Have each `Holdfast` of this process use the store that `find` gives, within the block."""
    global _find_test_store  # noqa: PLW0603 - of the process, as the objects of its modules are
    before, _find_test_store = _find_test_store, find
    try:
        yield
    finally:
        _find_test_store = before
