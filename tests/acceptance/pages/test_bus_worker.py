"""The example of a worker that knows nothing but Redis, beside an engine that hears it."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import redis

from holdfast.bus import (
    Channel,
    Consumer,
    OfferOptions,
    Offers,
    RedisBus,
    Subscription,
    claim_handler,
    command_handler,
    result_handler,
)
from holdfast.engine.engine import Engine
from holdfast.model.run import NewRun
from holdfast.model.workflow.graph import Step, Workflow
from tests.acceptance.terminals import ROOT
from tests.engines import healthy
from tests.race.racers import eventually

WORKER = ROOT / "examples/bus_worker.py"
WALLS = Workflow.define(
    "walls",
    tuple(
        Step(id=step, agent="painter", needs=(before,) if before else ())
        for step, before in zip(("prime", "paint"), (None, "prime"), strict=True)
    ),
)


@contextmanager
def hearing(engine: Engine, bus: RedisBus) -> Iterator[None]:
    """The engine's side of a bus, as a program starts it."""
    handlers = {
        Channel.COMMANDS: [command_handler(engine), claim_handler(engine, bus)],
        Channel.RESULTS: [result_handler(engine, bus)],
    }
    with ExitStack() as stack:
        for channel, chosen in handlers.items():
            subscription = Subscription(channel=channel, group="engine")
            stack.enter_context(Consumer(engine, bus, subscription, chosen))
        stack.enter_context(Offers(engine, bus, OfferOptions(agents=["painter"])))
        yield


@contextmanager
def worker(redis_url: str, prefix: str) -> Iterator[None]:
    """The example in a process of its own, where there is nothing of Holdfast."""
    program = [sys.executable, "-P", str(WORKER), redis_url, "painter", prefix]
    with subprocess.Popen(program, cwd="/", env={}) as process:
        try:
            yield
        finally:
            process.kill()


def test_a_worker_that_speaks_to_redis_alone_does_the_steps_of_a_run(
    store_url: str, redis_url: str
) -> None:
    imported = re.findall(r"^(?:import|from) (\w+)", WORKER.read_text(), re.MULTILINE)
    assert "redis" in imported
    assert "holdfast" not in imported
    prefix = f"test-{uuid.uuid4().hex}"
    bus = RedisBus(redis_url, prefix=prefix)
    engine = Engine(store_url).start()
    with healthy(engine):
        with hearing(engine, bus), worker(redis_url, prefix):
            run = engine.runs.start(NewRun(workflow=WALLS)).id
            assert eventually(lambda: engine.runs.get(run).status == "completed")
        tasks = engine.runs.tasks(run)
        assert [each.output for each in tasks] == [f"painted: {each.title}" for each in tasks]
    bus.close()
    with redis.Redis.from_url(redis_url) as client:
        client.delete(*client.keys(f"{{{prefix}}}*"))


def test_the_redis_client_waits_longer_for_an_answer_than_the_worker_waits_for_work(
    redis_url: str,
) -> None:
    example: dict[str, Any] = runpy.run_path(str(WORKER))
    made = example["BusWorker"](redis_url, "painter", prefix=f"test-{uuid.uuid4().hex}")
    (client,) = [each for each in vars(made).values() if isinstance(each, redis.Redis)]
    waits = client.connection_pool.connection_kwargs["socket_timeout"]
    assert waits > example["PATIENCE"] / 1000
    assert made.step(str, wait=0.01) == 0
