"""Exclusive access: refusals while a server, a worker or a lease still uses a store.

A store is moved or replaced only while nobody works on it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, StoreError, StoreUnreachable
from holdfast.service.project.server_address import find_server
from holdfast.settings import Settings
from holdfast.store.database import Transaction, is_postgresql, sqlite_path

PATIENCE = 5.0
MAX_SHOWN = 5
POLL_INTERVAL = 0.1


@contextmanager
def opened_engine(url: str) -> Iterator[Engine]:
    """An engine with its writer started, closed at the end of the block."""
    engine = Engine(url, settings=Settings(url=url, patience=PATIENCE))
    engine.commits.start()
    try:
        yield engine
    finally:
        engine.close()


def refuse_while_served(url: str) -> None:
    """Refuse while a server of this machine has the store open: the server would go on writing."""
    server = find_server(url)
    if server is None:
        return
    beside = ""
    with suppress(StoreError), opened_engine(url) as engine:
        beside = f", and {_describe_live(names)}" if (names := _list_live_workers(engine)) else ""
    store = "this store" if is_postgresql(url) else sqlite_path(url).absolute()
    told = f"the server at {server} has {store} open{beside}; stop it, with Ctrl-C where it runs"
    raise StoreUnreachable(f"{told} or SIGTERM, and try again; nothing was changed")


def refuse_while_busy(engine: Engine, *, evict: bool) -> None:
    """Refuse while workers live or leases run; with `evict`, have the workers leave first.

    An evicted worker gives back the tasks that it can stop. It has the time of a lease for that: a
    worker that has not renewed by then counts as dead.
    """
    if evict:
        for worker in engine.workers.list():
            engine.workers.evict(worker.name)
        until = time.monotonic() + engine.settings.lease + 1
        while engine.workers.list() and time.monotonic() < until:
            time.sleep(POLL_INTERVAL)
    names = _list_live_workers(engine)
    if names:
        how = "they did not leave" if evict else "`--evict` has them give back what they run"
        told = (
            f"{_describe_live(names)} on this store; {how}; `holdfast workers drain NAME` lets one"
        )
        raise InvalidInput("workers", f"{told} finish; nothing was changed")
    engine.database.view(refuse_while_leased)


def refuse_while_leased(tx: Transaction) -> None:
    """Refuse while a task is leased; a script can hold a lease without being a worker."""
    leased = tx.read("leased_tasks", count=MAX_SHOWN + 1)
    if leased:
        held = ", ".join(f"{row['id']} by {row['worker']}" for row in leased[:MAX_SHOWN])
        more = ", …" if len(leased) > MAX_SHOWN else ""
        reason = f"somebody works on {held}{more}; wait until that has ended, or its lease has"
        raise InvalidInput("leases", f"{reason}: `holdfast tasks --status running`")


def _list_live_workers(engine: Engine) -> list[str]:
    """The names of the live workers."""
    return [worker.name for worker in engine.workers.list()]


def _describe_live(names: list[str]) -> str:
    shown = ", ".join(names[:MAX_SHOWN]) + (", …" if len(names) > MAX_SHOWN else "")
    return f"{shown} {'lives' if len(names) == 1 else 'live'}"
