"""How fast events get from a store to Redis and into an effect, beside the same by hand.

python -m benchmarks.bus_speed --messages 20000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from statistics import quantiles
from typing import Any

import psycopg
import redis

from holdfast.bus import Channel, Consumer, Envelope, Handler, RedisBus, Relay, Subscription
from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from tests import servers

BATCH = 200
HALF = 2_500
SECONDS = 4
EVENTS = Subscription(channel=Channel.EVENTS, group="effects")


def measure(what: str, count: int, work: Callable[[], object]) -> None:
    begun = time.perf_counter()
    work()
    print(f"{what:<58} {count / (time.perf_counter() - begun):>9,.0f} /s", flush=True)


def by_hand_in_redis(client: Any, count: int) -> None:  # noqa: ANN401 - the client's own types
    for _ in range(0, count, BATCH):
        pipeline = client.pipeline(transaction=False)
        for _ in range(BATCH):
            pipeline.xadd("by-hand", {"envelope": "x" * 500})
        pipeline.execute()
    client.xgroup_create("by-hand", "group", "0")
    while entries := _read(client):
        client.xack("by-hand", "group", *entries)


def _read(client: Any) -> list[bytes]:  # noqa: ANN401 - the client's own types
    answer = client.execute_command(
        "XREADGROUP", "GROUP", "group", "me", "COUNT", BATCH, "STREAMS", "by-hand", ">"
    )
    streams = answer.values() if isinstance(answer, dict) else [each[1] for each in answer or ()]
    return [entry[0] for stream in streams for entry in stream]


def by_hand_in_sql(url: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        connection.execute("CREATE TABLE done (message text PRIMARY KEY)")
        for begun in range(0, count, BATCH):
            with connection.transaction():
                for number in range(begun, begun + BATCH):
                    claim = "INSERT INTO done VALUES (%s) ON CONFLICT DO NOTHING"
                    connection.execute(claim, (str(number),))
                    connection.execute("INSERT INTO effect VALUES (%s)", (str(number),))


def create(engine: Engine, count: int) -> None:
    for _ in range(0, count, BATCH):
        engine.tasks.create_many([NewTask(title="job", enqueue=False) for _ in range(BATCH)])


def write_effect(envelope: Envelope, connection: Any) -> None:  # noqa: ANN401 - psycopg's
    connection.execute("INSERT INTO effect VALUES (%s)", (envelope.message_id,))


def consume(store: str, redis_url: str, count: int) -> None:
    """In a process of its own: as many effects as are wanted, and then the end."""
    engine, bus = Engine(store).start(), RedisBus(redis_url)
    consumer = Consumer(engine, bus, EVENTS, [Handler(name="write", handle=write_effect)])
    print("ready", flush=True)
    done = 0
    while done < count:
        done += consumer.step(wait=0.1)
    consumer.close()
    engine.close()


def all_the_way(engine: Engine, bus: RedisBus, urls: tuple[str, str], count: int) -> None:
    """Created, relayed by one process, consumed by another, at the same time."""
    program = [sys.executable, "-m", "benchmarks.bus_speed", "--consume", *urls, str(count)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        create(engine, count)

        def relay() -> None:
            with Relay(engine, bus):
                child.wait()

        measure("outbox to Redis to idempotent consumer to committed effect", count, relay)


def lag(engine: Engine, bus: RedisBus, client: Any) -> None:  # noqa: ANN401 - the client's own
    """How late events are on Redis while half as many are written as it must stand."""
    lags: list[float] = []
    streams = {bus.stream(Channel.EVENTS, each): "$" for each in range(bus.partitions)}
    last = {name: (client.xrevrange(name, count=1) or [[b"0-0"]])[0][0] for name in streams}

    def listen() -> None:
        while len(lags) < HALF * SECONDS:
            for name, entries in client.xread(last, block=1_000) or ():
                now = time.time()
                last[name] = entries[-1][0]
                for _, fields in entries:
                    written = json.loads(fields[b"envelope"])["created_at"]
                    lags.append(now - _seconds(written))

    with Relay(engine, bus):
        listener = threading.Thread(target=listen)
        listener.start()
        begun = time.perf_counter()
        for turn in range(HALF * SECONDS // 25):
            engine.tasks.create_many([NewTask(title="job", enqueue=False) for _ in range(25)])
            time.sleep(max(0.0, begun + (turn + 1) * 25 / HALF - time.perf_counter()))
        listener.join()
    cuts = quantiles(lags, n=100)
    print(
        f"lag of the relay at {HALF:,}/s: p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms"
    )


def _seconds(text: str) -> float:
    from datetime import datetime  # noqa: PLC0415 - for this alone

    return datetime.fromisoformat(text).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bus_speed", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument(
        "--consume", nargs=3, metavar=("STORE", "REDIS", "COUNT"), help="for itself"
    )
    options = parser.parse_args()
    if options.consume:
        store, redis_url, count = options.consume
        consume(store, redis_url, int(count))
        return
    count = options.messages
    with (
        servers.postgres() as server,
        servers.database(server) as store,
        servers.redis_server() as redis_url,
        redis.Redis.from_url(redis_url) as client,
    ):
        engine = Engine(store).start()
        bus = RedisBus(redis_url)
        with engine.transaction() as connection:
            connection.execute("CREATE TABLE effect (message text)")
        measure("by hand: XADD, XREADGROUP, XACK", count, lambda: by_hand_in_redis(client, count))
        measure("by hand: claim and effect in SQL", count, lambda: by_hand_in_sql(store, count))
        all_the_way(engine, bus, (store, redis_url), count)
        lag(engine, bus, client)
        bus.close()
        engine.close()


if __name__ == "__main__":
    main()
