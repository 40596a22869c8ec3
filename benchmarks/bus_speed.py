"""How fast events get from a store to Redis and into an effect, beside the same by hand.

python -m benchmarks.bus_speed --messages 20000 [--database sqlite]

Each line tells the messages in a second, and the microseconds of processor time that each of them
cost all processes together, the servers included; from that follows what two cores could do that
had nothing else to do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import apsw
import redis

from benchmarks.bus_by_hand import BATCH, by_hand_in_redis, by_hand_in_sql
from benchmarks.places import DATABASES, Places, durable_settings
from benchmarks.processor import TICK, family_time
from holdfast.bus import (
    Channel,
    Consumer,
    Envelope,
    Handler,
    RedisBus,
    Relay,
    RelayOptions,
    Subscription,
    read_envelope,
)
from holdfast.engine.engine import Engine
from holdfast.model.task import NewTask
from tests import servers

HALF = 2_500
AT_ONCE = 25
CORES = 2
EVENTS = Subscription(channel=Channel.EVENTS, group="effects")
MEASURED = "outbox to Redis to idempotent consumer to committed effect"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    messages: int = 20_000
    seconds: float = 4.0


class Watch:
    """Takes the time of something, on the clock and on the processors."""

    def __init__(self) -> None:
        self._begun, self._spent = time.perf_counter(), family_time()

    def tell(self, what: str, count: int) -> None:
        seconds = time.perf_counter() - self._begun
        spent = max(TICK, family_time() - self._spent) / count
        print(
            f"  {what:<71} {count / seconds:>7,.0f}/s, {spent * 1e6:>4.0f} µs: "
            f"{CORES / spent:>7,.0f}/s on {CORES} free cores",
            flush=True,
        )


def measure(what: str, count: int, work: Callable[[], object]) -> None:
    watch = Watch()
    work()
    watch.tell(what, count)


def create(engine: Engine, count: int) -> None:
    engine.tasks.create_many([NewTask(title="job", enqueue=False) for _ in range(count)])


def write_one(envelope: Envelope, connection: Any) -> None:  # noqa: ANN401 - psycopg's or apsw's
    mark = "?" if isinstance(connection, apsw.Connection) else "%s"
    text = f"INSERT INTO effect VALUES ({mark})"  # noqa: S608 - a mark
    connection.execute(text, (envelope.message_id,))


def write_all(envelopes: Sequence[Envelope], connection: Any) -> None:  # noqa: ANN401 - either's
    rows = [(each.message_id,) for each in envelopes]
    if isinstance(connection, apsw.Connection):
        connection.executemany("INSERT INTO effect VALUES (?)", rows)
    else:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO effect VALUES (%s)", rows)


HANDLERS = {
    "one by one": Handler(name="write-one", handle=write_one),
    "in sets": Handler(name="write-all", handle_all=write_all),
}


def consume(store: str, redis_url: str, how: str, count: str) -> None:
    """In a process of its own: as many effects as are wanted, and then the end."""
    engine, bus = Engine(store).start(), RedisBus(redis_url, prefix=HANDLERS[how].name)
    consumer = Consumer(engine, bus, EVENTS, [HANDLERS[how]])
    print("ready", flush=True)
    done = 0
    while done < int(count):
        done += consumer.step(wait=0.1)
    print("done", flush=True)
    sys.stdin.read()
    consumer.close()
    engine.close()


def relay(store: str, redis_url: str) -> None:
    """In a process of its own, until its input ends."""
    engine, bus = Engine(store).start(), RedisBus(redis_url, prefix="lag")
    with Relay(engine, bus, _options("lag")):
        print("ready", flush=True)
        sys.stdin.read()
    engine.close()


@contextmanager
def helped(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, "-m", "benchmarks.bus_speed", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child


class Speed:
    """The measures of one store, beside one Redis."""

    def __init__(self, store: str, redis_url: str, sizes: Sizes) -> None:
        self._urls = store, redis_url
        self._sizes = sizes
        self._engine = Engine(store).start()
        with self._engine.transaction() as connection:
            connection.execute("CREATE TABLE effect (message text)")

    def measure(self) -> None:
        store, redis_url = self._urls
        count = self._sizes.messages
        measure("by hand: claim and effect in SQL", count, lambda: by_hand_in_sql(store, count))
        for begun in range(0, count, BATCH):
            create(self._engine, min(BATCH, count - begun))
        for how in HANDLERS:
            self._all_the_way(how)
        with redis.Redis.from_url(redis_url) as client:
            self._lag(client)
        self._engine.close()

    def _all_the_way(self, how: str) -> None:
        """Created before, relayed by one process, consumed by another, at the same time."""
        count, name = self._sizes.messages, HANDLERS[how].name
        bus = RedisBus(self._urls[1], prefix=name)
        with helped("--consume", *self._urls, how, str(count)) as child:
            assert child.stdout is not None
            watch = Watch()
            with Relay(self._engine, bus, _options(name)):
                assert child.stdout.readline() == "done\n"
            watch.tell(f"{MEASURED}, {how}", count)
            assert child.stdin is not None
            child.stdin.close()
        bus.close()

    def _lag(self, client: Any) -> None:  # noqa: ANN401 - the client's own types
        """How late events are on Redis, by its own clock, at half of what it must stand."""
        turns = round(HALF * self._sizes.seconds / AT_ONCE)
        bus = RedisBus(self._urls[1], prefix="lag")
        with helped("--relay", *self._urls) as child:
            self._catch_up(client, bus, self._sizes.messages)
            begun = time.perf_counter()
            for turn in range(1, turns + 1):
                create(self._engine, AT_ONCE)
                time.sleep(max(0.0, begun + turn * AT_ONCE / HALF - time.perf_counter()))
            load = turns * AT_ONCE / (time.perf_counter() - begun)
            self._catch_up(client, bus, self._sizes.messages + turns * AT_ONCE)
            assert child.stdin is not None
            child.stdin.close()
        cuts = quantiles(_lags(client, bus)[-turns * AT_ONCE :], n=100)
        print(f"  lag of the relay at {load:,.0f}/s: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")
        bus.close()

    def _catch_up(self, client: Any, bus: RedisBus, count: int) -> None:  # noqa: ANN401 - its own
        streams = [bus.stream(Channel.EVENTS, each) for each in range(bus.partitions)]
        while sum(map(client.xlen, streams)) < count:
            time.sleep(0.01)


def _lags(client: Any, bus: RedisBus) -> list[float]:  # noqa: ANN401 - the client's own types
    """Of each event, in the order of their writing, in milliseconds."""
    found = [
        (read_envelope(fields[b"envelope"].decode()).created_at, int(entry.partition(b"-")[0]))
        for each in range(bus.partitions)
        for entry, fields in client.xrange(bus.stream(Channel.EVENTS, each))
    ]
    return [came - written / 1000 for written, came in sorted(found)]


def _options(name: str) -> RelayOptions:
    return RelayOptions(name=name)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bus_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--messages", type=int, default=Sizes.messages)
    parser.add_argument("--database", choices=DATABASES, action="append")
    parser.add_argument("--consume", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--relay", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.consume:
        consume(*options.consume)
    elif options.relay:
        relay(*options.relay)
    else:
        compare(options.database or DATABASES, Sizes(messages=options.messages))


def compare(databases: Sequence[str], sizes: Sizes) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-"))
        server = stack.enter_context(servers.postgres(**durable_settings()))
        redis_url = stack.enter_context(servers.redis_server())
        places = Places(folder=Path(folder), postgres=server)
        for name, value in places.facts().items():
            print(f"{name}: {value}")
        with redis.Redis.from_url(redis_url) as client:
            print("Redis")
            count = sizes.messages
            redis_alone = "by hand: XADD, XREADGROUP, XACK"
            measure(redis_alone, count, lambda: by_hand_in_redis(client, count))
        for database in databases:
            print(database)
            with places.new(database) as store, servers.redis_server() as own:
                Speed(store, own, sizes).measure()


if __name__ == "__main__":
    main()
