"""Who takes part in the story of the bus: agents and effects, which die, and what keeps them."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import apsw

from holdfast.bus import (
    Channel,
    Claimant,
    Consumer,
    ConsumerOptions,
    Envelope,
    Handler,
    RedisBus,
    Subscription,
)
from holdfast.bus.execution_bus import MessageBatch
from holdfast.engine.engine import Engine
from holdfast.model.task import Assignment
from holdfast.model.trace import derive_trace_id
from holdfast.settings import Settings

_CONTEXT = multiprocessing.get_context("forkserver")
# With the drivers, which are imported only where they are used: who dies often starts often.
_CONTEXT.set_forkserver_preload(["benchmarks.bus_roles", "tests.servers", "redis"])


@dataclass(frozen=True, kw_only=True)
class Told:
    """What is told.

    - `faults`: what goes wrong on the way
    - `mortality`: one acknowledgement of so many is the last thing that a consumer lives to see
    - `patience`: after how many seconds that which is lost with Redis comes again: a result when
      the lease of its attempt is over, an offer by itself
    """

    runs: int
    store: str
    redis_url: str
    faults: Sequence[str] = ()
    mortality: int = 20
    patience: float = 60.0


class DoublingBus(RedisBus):
    """Sends everything twice, and ends its process at some acknowledgements."""

    mortality = 0

    def _publish(self, channel: Channel, texts: Sequence[Any], connection: object) -> None:
        super()._publish(channel, [*texts, *texts], connection)

    def relay(self, store: str, texts: Sequence[Any], passed: tuple[int, int, int]) -> bool:
        return super().relay(store, [*texts, *texts], passed)

    def acknowledge(self, batch: MessageBatch) -> bool:
        if self.mortality and random.random() < 1 / self.mortality:  # noqa: S311 - chance, no secret
            os.kill(os.getpid(), signal.SIGKILL)
        return super().acknowledge(batch)


def open_engine(told: Told) -> Engine:
    settings = Settings(url=told.store, lease=told.patience, renewal=told.patience / 3)
    return Engine(told.store, settings=settings).start()


def consume(
    engine: Engine, bus: RedisBus, channel: Channel, name: str, handler: Handler
) -> Consumer:
    options = ConsumerOptions(name=name, ttl=1.0)
    subscription = Subscription(channel=channel, group=name.partition("-")[0])
    return Consumer(engine, bus, subscription, [handler], options)


def be_agent(engine: Engine, bus: RedisBus, name: str) -> Consumer:
    def work(assignment: Assignment) -> None:
        result = Envelope(
            message_id=f"result of {assignment.task_id}.{assignment.attempt}",
            trace_id=derive_trace_id(assignment.task_id),
            task_id=assignment.task_id,
            run_id=assignment.task.run_id,
            type="attempt.completed",
            created_at=time.time_ns() // 1000,
            payload={"token": assignment.token, "output": assignment.task.step},
        )
        bus.publish_event(Channel.RESULTS, result)

    claimant = Claimant(store=engine, worker=name, agents=["default"], deliver=work)
    return consume(engine, bus, Channel.TASKS, name, claimant.handler())


def be_effects(engine: Engine, bus: RedisBus, name: str) -> Consumer:
    def note(envelope: Envelope, connection: Any) -> None:  # noqa: ANN401 - psycopg's or apsw's
        mark = "?" if isinstance(connection, apsw.Connection) else "%s"
        text = f"INSERT INTO effect (run_id, step) VALUES ({mark}, {mark})"  # noqa: S608 - a mark
        connection.execute(text, (envelope.run_id, envelope.step))

    handler = Handler(name="note", handle=note, types=frozenset({"task.done"}))
    return consume(engine, bus, Channel.EVENTS, name, handler)


BE: dict[str, Callable[[Engine, RedisBus, str], Consumer]] = {
    "agent": be_agent,
    "effects": be_effects,
}


def live(name: str, told: Told, parent: Connection) -> None:
    """One of the processes that die; it ends with its parent, whose end closes the connection."""
    bus = DoublingBus(told.redis_url)
    bus.mortality = told.mortality
    engine = open_engine(told)
    with BE[name.partition("-")[0]](engine, bus, name):
        parent.poll(None)
    engine.close()


class Keeper:
    """Starts a process again whenever it has died, and counts how often that was."""

    def __init__(self, name: str, told: Told) -> None:
        self._told = (name, told)
        self.deaths = 0
        self._stopped = threading.Event()
        self._kept: tuple[BaseProcess, Connection] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._stopped.is_set():
            hears, ours = _CONTEXT.Pipe(duplex=False)
            process = _CONTEXT.Process(target=live, args=(*self._told, hears), daemon=True)
            process.start()
            hears.close()
            self._kept = process, ours
            process.join()
            self.deaths += process.exitcode == -signal.SIGKILL

    def stop(self) -> None:
        self._stopped.set()
        if self._kept is not None:
            self._kept[1].close()
        self._thread.join()
