"""Durable functions: many with five effects each, one with effect after effect, and connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import psycopg

from benchmarks.places import Places
from benchmarks.program import Program, program
from benchmarks.waiting import Figure
from holdfast import Context

EFFECTS = 5
LOOK_EVERY = 0.05
_COUNT = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


class DurableProgram:
    """The functions of a program: one with five effects, one with as many as it is told."""

    def __init__(self, made: Program) -> None:
        self.made = made
        self.seconds = 0.0

        @made.hf.task
        def five(ctx: Context) -> None:
            for number in range(EFFECTS):
                ctx.effect(f"effect {number}", int, number)

        @made.hf.task
        def one_by_one(ctx: Context, count: int) -> None:
            ctx.effect("first", int)
            begun = time.perf_counter()
            for number in range(count):
                ctx.effect(f"effect {number}", int, number)
            self.seconds = time.perf_counter() - begun

        self.five = five
        self.one_by_one = one_by_one

    def drain(self, job: Any, count: int, concurrency: int | None) -> float:  # noqa: ANN401 - a task
        """How many of a task are done in a second, which wait when a worker begins."""
        for future in [job.enqueue.submit() for _ in range(count)]:
            future.result()
        hf = self.made.hf
        chosen = hf.worker() if concurrency is None else hf.worker(concurrency=concurrency)
        with self.made.draining("t_", count) as wait:
            begun = time.perf_counter()
            with chosen:
                wait()
                return count / (time.perf_counter() - begun)


@contextmanager
def durable_program(url: str) -> Iterator[DurableProgram]:
    with program(url) as made:
        yield DurableProgram(made)


def five_effects(url: str, count: int, concurrency: int | None) -> float:
    """Runs a second of functions of five effects; no `concurrency` is as it comes."""
    with durable_program(url) as made:
        return made.drain(made.five, count, concurrency)


def plain_tasks(url: str, count: int, concurrency: int | None) -> float:
    with durable_program(url) as made:
        return made.drain(made.made.job, count, concurrency)


def effect_after_effect(url: str, count: int) -> float:
    """Effects a second of one function, which nothing shares its commits with."""
    with durable_program(url) as made, made.made.hf.worker(concurrency=1):
        made.one_by_one.enqueue(count).result(600)
        return count / made.seconds


def connections(places: Places, database: str, count: int, concurrency: int) -> list[Figure]:
    """The most connections of a process that runs many durable functions at once."""
    most, over = 0, threading.Event()
    with places.new(database) as url, durable_program(url) as made:

        def look() -> None:
            nonlocal most
            while not over.wait(LOOK_EVERY):
                most = max(most, _count_connections(url))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            made.drain(made.five, count, concurrency)
        finally:
            over.set()
            looking.join()
    what = f"connections of a process that runs {concurrency} durable functions at once"
    return [Figure(what=what, database=database, value=f"{most}", beside="8 at most")]


def _count_connections(url: str) -> int:
    if url.startswith("sqlite"):
        return len(apsw.connections())
    with psycopg.connect(url) as server:
        found = server.execute(_COUNT).fetchone()
    assert found is not None
    return int(found[0])
