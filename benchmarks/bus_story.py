"""Runs steered over Redis with every message sent twice and consumers that are killed.

python -m benchmarks.bus_story --runs 2000 [--database sqlite] [--fault redis …]

It prints what became of each stage's effect. One process is the engine: commands, results, offers,
relay. Two are agents, which claim what they are offered and send their results. Two write an effect
for each task that is done. Agents and effects are killed with -9, now and then, after a commit and
before its acknowledgement, and started again. A fault comes in the middle: `redis` is killed with
-9 and started empty, `flush` is FLUSHALL, `fast` and `immediate` restart PostgreSQL.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import redis

from benchmarks.bus_roles import DoublingBus, Keeper, Told, consume, open_engine
from benchmarks.by_hand import STEPS
from benchmarks.places import DATABASES, Places, durable_settings
from holdfast.bus import (
    Channel,
    Envelope,
    OfferOptions,
    Offers,
    Relay,
    command_handler,
    result_handler,
)
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.model.trace import derive_trace_id
from holdfast.model.workflow.graph import Step, Workflow
from tests import servers

ROLES = {"agent": 2, "effects": 2}
PIPELINE = Workflow.define(
    "story",
    tuple(
        Step(id=step, needs=(before,) if before else ())
        for step, before in zip(STEPS, (None, *STEPS), strict=False)
    ),
)
TURNS = " ".join(f"WHEN '{step}' THEN {turn}" for turn, step in enumerate(STEPS, 1))
WATCH = """
SELECT (SELECT count(*) FROM effect) AS effects, (SELECT count(*) FROM holdfast_run) AS started,
  (SELECT count(*) FROM holdfast_run WHERE status = 'failed') AS failed
"""
COUNT = f"""
SELECT (SELECT count(*) FROM effect) AS effects,
  (SELECT count(*) FROM (SELECT DISTINCT run_id, step FROM effect) AS x) AS stages,
  (SELECT count(*) FROM (SELECT step, row_number() OVER (PARTITION BY run_id ORDER BY place) AS
    turn FROM effect) AS x WHERE turn <> CASE step {TURNS} END) AS turned,
  (SELECT count(*) FROM holdfast_run WHERE status = 'completed') AS completed,
  (SELECT count(*) FROM holdfast_event WHERE type = 'task.running') AS claims
"""  # noqa: S608 - the names of steps


def flush(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()


FAULTS: dict[str, Callable[[str, str], None]] = {
    "redis": lambda _, redis_url: servers.restart(redis_url, signal.SIGKILL),
    "flush": lambda _, redis_url: flush(redis_url),
    "fast": lambda store, _: servers.restart(store, signal.SIGINT),
    "immediate": lambda store, _: servers.restart(store, signal.SIGQUIT),
}


class Story:
    def __init__(self, told: Told) -> None:
        self._told = told
        self._stages = told.runs * len(STEPS)
        self._engine = open_engine(told)
        self._bus = DoublingBus(told.redis_url)

    def tell(self) -> int:
        self._prepare()
        begun = time.perf_counter()
        keepers = self._live()
        seconds = time.perf_counter() - begun
        found = _count(self._engine, COUNT)
        healthy = self._engine.doctor().ok
        self._engine.close()
        ok = healthy and found["turned"] == 0 and found["completed"] == self._told.runs
        ok = ok and found["effects"] == found["stages"] == self._stages
        print(
            f"{self._told.runs:,} runs of {len(STEPS)} stages, every message twice, "
            f"{sum(keeper.deaths for keeper in keepers)} consumers killed"
            f"{''.join(f', {each}' for each in self._told.faults)}: "
            f"{found['completed']:,} runs completed, {found['effects']:,} effects of "
            f"{found['stages']:,} stages, {found['claims']:,} claims in {seconds:.1f} s; "
            f"{'each effect once, in order' if ok else 'NOT AS IT SHOULD BE'}",
            flush=True,
        )
        return 0 if ok else 1

    def _prepare(self) -> None:
        place = "place INTEGER PRIMARY KEY"
        if self._engine.database.dialect == "postgresql":
            place = "place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        with self._engine.transaction() as connection:
            connection.execute(f"CREATE TABLE effect ({place}, run_id text, step text)")
        self._engine.workflows.add(PIPELINE)

    def _live(self) -> list[Keeper]:
        told, engine, bus = self._told, self._engine, self._bus
        with ExitStack() as stack:
            commands, results = command_handler(engine), result_handler(engine)
            stack.enter_context(consume(engine, bus, Channel.COMMANDS, "commands-1", commands))
            stack.enter_context(consume(engine, bus, Channel.RESULTS, "results-1", results))
            offers = OfferOptions(agents=["default"], count=500, again=told.patience)
            stack.enter_context(Offers(engine, bus, offers))
            stack.enter_context(Relay(engine, bus))
            keepers = [
                Keeper(f"{role}-{number}", told)
                for role, count in ROLES.items()
                for number in range(1, count + 1)
            ]
            bus.publish_command(Channel.COMMANDS, *(_start(number) for number in range(told.runs)))
            self._watch()
            for keeper in keepers:
                keeper.stop()
        return keepers

    def _watch(self) -> None:
        """Wait for the end, and have the faults come at even distances before it."""
        told, left = self._told, list(self._told.faults)
        while (found := _count(self._engine, WATCH))["effects"] < self._stages:
            if found["failed"]:
                return
            due = self._stages * (len(told.faults) - len(left) + 1) / (len(told.faults) + 1)
            # What was published straight to Redis, as the commands are, is only as safe as that.
            if left and found["started"] == told.runs and found["effects"] >= due:
                FAULTS[left.pop(0)](told.store, told.redis_url)
            time.sleep(0.2)


def _start(number: int) -> Envelope:
    name = f"start {number}"
    return Envelope(
        message_id=name,
        trace_id=derive_trace_id(name),
        type="run.start",
        created_at=time.time_ns() // 1000,
        payload={"workflow": "story"},
    )


def _count(engine: Engine, text: str) -> dict[str, int]:
    while True:
        # Both, as a server that is just being restarted ends the connection or refuses it.
        with suppress(HoldfastError, psycopg.OperationalError), engine.transaction() as connection:
            cursor = connection.execute(text)
            names = [column[0] for column in cursor.description]
            (row,) = cursor.fetchall()
            values = row.values() if isinstance(row, dict) else row
            return dict(zip(names, map(int, values), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bus_story",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--database", choices=DATABASES, default="postgresql")
    parser.add_argument("--fault", choices=FAULTS, action="append", default=[])
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-story-") as folder,
        servers.postgres(**durable_settings()) as server,
        Places(folder=Path(folder), postgres=server).new(options.database) as store,
        servers.redis_server() as redis_url,
    ):
        told = Told(
            runs=options.runs, store=store, redis_url=redis_url, faults=tuple(options.fault)
        )
        return Story(told).tell()


if __name__ == "__main__":
    sys.exit(main())
