"""Runs steered over Redis with every message sent twice and consumers that are killed.

python -m benchmarks.bus_story --runs 2000    prints what became of each stage's effect

One process is the engine: commands, results, offers, relay. Two are agents, which claim what they
are offered and send their results. Two write an effect for each task that is done. Agents and
effects are killed with -9, now and then, after a commit and before its acknowledgement, and
started again.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from benchmarks.by_hand import STEPS
from holdfast.bus import (
    Channel,
    Claimant,
    Consumer,
    ConsumerOptions,
    Envelope,
    Handler,
    OfferOptions,
    Offers,
    RedisBus,
    Relay,
    Subscription,
    command_handler,
    result_handler,
)
from holdfast.bus.execution_bus import Batch
from holdfast.engine.engine import Engine
from holdfast.model.graph import Step, Workflow
from holdfast.model.task import Assignment
from holdfast.model.trace import derive_trace_id
from tests import servers

ROLES = {"agent": 2, "effects": 2}
# One acknowledgement of so many is the last thing that a consumer lives to see.
MORTALITY = 30
PIPELINE = Workflow.define(
    "story",
    tuple(
        Step(id=step, needs=(before,) if before else ())
        for step, before in zip(STEPS, (None, *STEPS), strict=False)
    ),
)


class DoublingBus(RedisBus):
    """Sends everything twice, and ends its process at some acknowledgements."""

    mortality = 0

    def _publish(self, channel: Channel, texts: Sequence[Any], connection: object) -> None:
        super()._publish(channel, [*texts, *texts], connection)

    def relay(self, channel: Channel, texts: Sequence[Any], passed: tuple[int, int, int]) -> bool:
        return super().relay(channel, [*texts, *texts], passed)

    def acknowledge(self, batch: Batch) -> bool:
        if self.mortality and random.random() < 1 / self.mortality:  # noqa: S311 - chance, no secret
            os.kill(os.getpid(), signal.SIGKILL)
        return super().acknowledge(batch)


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

    claimant = Claimant(engine=engine, worker=name, agents=["default"], deliver=work)
    return consume(engine, bus, Channel.TASKS, name, claimant.handler())


def be_effects(engine: Engine, bus: RedisBus, name: str) -> Consumer:
    def note(envelope: Envelope, connection: Any) -> None:  # noqa: ANN401 - psycopg's connection
        row = (envelope.run_id, envelope.step)
        connection.execute("INSERT INTO effect (run_id, step) VALUES (%s, %s)", row)

    handler = Handler(name="note", handle=note, types=frozenset({"task.done"}))
    return consume(engine, bus, Channel.EVENTS, name, handler)


BE: dict[str, Callable[[Engine, RedisBus, str], Consumer]] = {
    "agent": be_agent,
    "effects": be_effects,
}


def live(name: str, store: str, redis_url: str) -> None:
    """One of the processes that die; it ends with its parent, whose end closes its input."""
    bus = DoublingBus(redis_url)
    bus.mortality = MORTALITY
    engine = Engine(store).start()
    with BE[name.partition("-")[0]](engine, bus, name):
        sys.stdin.read()
    engine.close()


class Keeper:
    """Starts a process again whenever it has died, and counts how often that was."""

    def __init__(self, name: str, *urls: str) -> None:
        self._command = [sys.executable, "-m", "benchmarks.bus_story", "--live", name, *urls]
        self.deaths = 0
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        while not self._stopped.is_set():
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE)
            self._process.wait()
            self.deaths += self._process.returncode == -signal.SIGKILL

    def stop(self) -> None:
        self._stopped.set()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._thread.join()


def tell(runs: int, store: str, redis_url: str) -> int:
    engine = Engine(store).start()
    with engine.transaction() as connection:
        connection.execute("CREATE TABLE effect (run_id text, step text)")
    engine.workflows.add(PIPELINE)
    bus = DoublingBus(redis_url)
    begun = time.perf_counter()
    with ExitStack() as stack:
        commands = command_handler(engine)
        stack.enter_context(consume(engine, bus, Channel.COMMANDS, "commands-1", commands))
        results = result_handler(engine)
        stack.enter_context(consume(engine, bus, Channel.RESULTS, "results-1", results))
        offers = OfferOptions(agents=["default"], count=1_000)
        stack.enter_context(Offers(engine, bus, offers))
        stack.enter_context(Relay(engine, bus))
        keepers = [
            Keeper(f"{role}-{number}", store, redis_url)
            for role, count in ROLES.items()
            for number in range(1, count + 1)
        ]
        start = (_start(number) for number in range(runs))
        bus.publish_command(Channel.COMMANDS, *start)
        while (found := _count(engine))["effects"] < runs * len(STEPS):
            time.sleep(0.1)
        for keeper in keepers:
            keeper.stop()
    seconds = time.perf_counter() - begun
    found = _count(engine)
    ok = found["completed"] == runs and found["effects"] == found["stages"] == runs * len(STEPS)
    healthy = engine.doctor().ok
    engine.close()
    print(
        f"{runs} runs of {len(STEPS)} stages, every message twice, "
        f"{sum(keeper.deaths for keeper in keepers)} consumers killed: "
        f"{found['completed']} runs completed, {found['effects']} effects of {found['stages']} "
        f"stages, {found['claims']} claims in {seconds:.1f} s; "
        f"{'each effect once' if ok and healthy else 'NOT AS IT SHOULD BE'}"
    )
    return 0 if ok and healthy else 1


def _start(number: int) -> Envelope:
    name = f"start {number}"
    return Envelope(
        message_id=name,
        trace_id=derive_trace_id(name),
        type="run.start",
        created_at=time.time_ns() // 1000,
        payload={"workflow": "story"},
    )


def _count(engine: Engine) -> dict[str, int]:
    with engine.transaction() as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM effect) AS effects, "
            "(SELECT count(*) FROM (SELECT DISTINCT run_id, step FROM effect) AS x) AS stages, "
            "(SELECT count(*) FROM holdfast_run WHERE status = 'completed') AS completed, "
            "(SELECT count(*) FROM holdfast_event WHERE type = 'task.running') AS claims"
        ).fetchone()
    return {name: int(value) for name, value in row.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bus_story", description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--live", nargs=3, metavar=("NAME", "STORE", "REDIS"), help="for itself")
    options = parser.parse_args()
    if options.live:
        live(*options.live)
        return 0
    with (
        servers.postgres() as server,
        servers.database(server) as store,
        servers.redis_server() as redis_url,
    ):
        return tell(options.runs, store, redis_url)


if __name__ == "__main__":
    sys.exit(main())
