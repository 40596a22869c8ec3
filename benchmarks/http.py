"""Measures the server, client included: in batches, one by one, with many who wait or read.

python -m benchmarks.http [--tasks 20000] [--alone 2000] [--workers 1000] [--readers 200] [--write]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks import report
from benchmarks.http_client import Connection, closed, opened
from benchmarks.http_server import Server, serving
from benchmarks.places import DATABASES, Places, durable_settings, tell_cores
from benchmarks.waiting import Figure
from tests import servers

BATCH = 500
BATCHERS = 4
AT_ONCE = 32
# How many events a call makes, and how often it is made, where a rate is wanted.
MADE, EVERY = 50, 0.05
SECTION = "http"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    tasks: int
    alone: int
    workers: int
    readers: int


class Spent:
    """Time on the wall and on the processor, of the server and of this client."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._begun = time.perf_counter(), server.seconds, time.process_time()

    def told(self, number: int) -> tuple[str, str]:
        wall, served, asked = self._begun
        took = time.perf_counter() - wall
        each = 1e6 / number
        processor = (self._server.seconds - served) * each, (time.process_time() - asked) * each
        used = f"{processor[0]:,.0f} µs of processor time each, {processor[1]:,.0f} in the client"
        return f"{number / took:,.0f}/s", used


async def batched(server: Server, number: int) -> tuple[str, str]:
    """Tasks made, claimed and completed by the hundred."""
    made = {"tasks": [{"title": "job", "payload": {"n": n}} for n in range(BATCH)]}

    async def work(connection: Connection) -> None:
        await connection.post("/tasks", made)
        got = await connection.post("/claims", {"worker": "w", "max": BATCH})
        results = [
            {"task_id": each["task"]["id"], "token": each["token"], "output": {"ok": True}}
            for each in got["assignments"]
        ]
        await connection.post("/claims/complete", {"results": results})

    return await _spend(server, number, work, at_once=BATCHERS, each=BATCH)


async def one_by_one(server: Server, number: int) -> tuple[str, str]:
    """Tasks made, claimed and completed alone, by workers that do one after another."""

    async def work(connection: Connection) -> None:
        await connection.post("/tasks", {"title": "job", "payload": {"n": 1}})
        got = await connection.post("/claims", {"worker": "w"})
        for each in got["assignments"]:
            said = {"token": each["token"], "output": {"ok": True}}
            await connection.post(f"/claims/{each['task']['id']}/complete", said)

    return await _spend(server, number, work, at_once=AT_ONCE, each=1)


async def _spend(
    server: Server,
    number: int,
    work: Callable[[Connection], Awaitable[None]],
    *,
    at_once: int,
    each: int,
) -> tuple[str, str]:
    """Have connections work until so many tasks are through, `each` of them a turn."""
    connections = await opened(server.url, server.token, at_once)
    left = count(0, each)

    async def go_on(connection: Connection) -> None:
        while next(left) < number:
            await work(connection)

    spent = Spent(server)
    await asyncio.gather(*map(go_on, connections))
    told = spent.told(number)
    await closed(connections)
    return told


async def waiting(server: Server, number: int) -> tuple[str, str]:
    """Many who wait for work, and one task: who gets it, how soon, and what it costs to wait."""
    before = server.mebibytes
    connections = await opened(server.url, server.token, number)
    asker = (await opened(server.url, server.token, 1))[0]
    asked = [
        asyncio.create_task(each.post("/claims", {"worker": f"w{n}", "wait_seconds": 60}))
        for n, each in enumerate(connections)
    ]
    while _waiting(await asker.get("/metrics")) < number:
        pass
    memory, idle, begun = server.mebibytes - before, server.seconds, time.perf_counter()
    await asyncio.sleep(server.patience)
    share = (server.seconds - idle) / (time.perf_counter() - begun)
    took = []
    for turn in range(1, 11):
        begun = time.perf_counter()
        await asker.post("/tasks", {"title": "one"})
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        took.append(time.perf_counter() - begun)
        got = [each for each in asked if each.done()]
        assert [len(each.result()["assignments"]) for each in got] == [1], turn
        asked = [each for each in asked if not each.done()]
        assert _waiting(await asker.get("/metrics")) == len(asked) == number - turn
    for each in asked:
        each.cancel()
    await closed([*connections, asker])
    return (
        f"{median(took) * 1e3:.1f} ms from the call that makes a task to the one that gets it",
        f"{memory:,.0f} MiB for all who wait, {share:.1%} of a core while nothing comes",
    )


def _waiting(metrics: str) -> int:
    found = re.search(r"^holdfast_long_polls (\S+)$", metrics, re.MULTILINE)
    return int(float(found[1])) if found else 0


async def reading(server: Server, number: int) -> tuple[str, str]:
    """A thousand events a second, read by nobody and then by many: what a call takes."""
    alone = await _paced(server)
    readers = await opened(server.url, server.token, number)
    streams = [asyncio.create_task(each.stream("/api/v1/stream")) for each in readers]
    await asyncio.sleep(0.5)
    read = await _paced(server)
    for each in streams:
        each.cancel()
    await closed(readers)
    took = f"{read[0] * 1e3:.2f} ms for a call that makes {MADE}, {alone[0] * 1e3:.2f} ms with none"
    return (
        f"{took}: {read[0] / alone[0] - 1:+.0%}",
        f"{read[1]:.0%} of a core in the server, {alone[1]:.0%} with no reader",
    )


async def _paced(server: Server) -> tuple[float, float]:
    """The median of the calls, and the share of a core that the server takes."""
    (connection,) = await opened(server.url, server.token, 1)
    made = {"tasks": [{"title": "job", "enqueue": False} for _ in range(MADE)]}
    took, used, begun = [], server.seconds, time.perf_counter()
    for turn in range(int(server.patience / EVERY)):
        asked = time.perf_counter()
        await connection.post("/tasks", made)
        took.append(time.perf_counter() - asked)
        await asyncio.sleep(max(0.0, begun + (turn + 1) * EVERY - time.perf_counter()))
    share = (server.seconds - used) / (time.perf_counter() - begun)
    await closed([connection])
    return median(took), share


Measure = Callable[[Server, int], Awaitable[tuple[str, str]]]


def measures(sizes: Sizes) -> dict[str, tuple[Measure, int]]:
    return {
        f"{sizes.tasks:,} tasks made, claimed and completed by {BATCH}": (batched, sizes.tasks),
        f"{sizes.alone:,} tasks made, claimed and completed one by one": (one_by_one, sizes.alone),
        f"one task after another for {sizes.workers:,} who wait": (waiting, sizes.workers),
        f"{sizes.readers} readers of 1,000 events a second": (reading, sizes.readers),
    }


def main() -> int:
    options = _options()
    sizes = Sizes(**{name: getattr(options, name) for name in Sizes.__dataclass_fields__})
    figures: list[Figure] = []
    cores = tell_cores()
    wanted = "postgresql" in options.databases
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        servers.postgres(**durable_settings()) if wanted else nullcontext("") as url,
    ):
        places = Places(folder=Path(folder), postgres=url)
        for database in options.databases:
            with places.new(database) as store, serving(store, options.seconds) as server:
                for what, (measure, number) in measures(sizes).items():
                    value, beside = asyncio.run(_run(measure, server, number))
                    made = Figure(what=what, database=database, value=value, beside=beside)
                    figures.append(made)
                    print(f"{what} | {database} | {value} | {beside}", flush=True)
    figures.sort(key=lambda each: [*measures(sizes)].index(each.what))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks.http", *sys.argv[1:]])
        _write(options.write, figures, command, cores)
    return 0


async def _run(measure: Measure, server: Server, number: int) -> tuple[str, str]:
    return await measure(server, number)


def _write(page: Path, figures: Sequence[Figure], command: str, cores: str) -> None:
    text = (
        "## Over HTTP\n\nServer and client are two processes on the same cores, whose time is told "
        f"of each. One by one, each task has three calls of its own, and {AT_ONCE} connections "
        f"make them at once; by {BATCH}, {BATCHERS} connections make three calls for all of them. "
        "Each call is fenced, audited and on disk before it is answered.\n\n"
        f"```\n{command}\n```\n\n{report.draw_figures(figures)}\n\n- cores: {cores}\n"
    )
    report.put_section(page, SECTION, text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http", description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--alone", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to look at a rate")
    parser.add_argument("--databases", nargs="*", default=list(DATABASES), choices=DATABASES)
    parser.add_argument("--write", nargs="?", type=Path, const=report.PAGE)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
