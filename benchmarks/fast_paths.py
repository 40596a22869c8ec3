"""Fast paths: what each one gives, measured with it and without it, in turns, in one run.

python -m benchmarks.fast_paths [NAME ...] [--pairs 5]

A path is taken out by replacing it, in a running process, by what the code does where the path does
not apply. A path stays in the code while it gives a tenth or more of some rate here.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import http
from benchmarks.distance import distant
from benchmarks.http_server import Server, serving
from benchmarks.places import DATABASES, Places, durable_settings, network_settings, over_tcp
from benchmarks.program import program
from benchmarks.report import draw_table
from benchmarks.scenarios import run_one_by_one, timed
from benchmarks.waiting import FURTHER
from holdfast.api import task as api_task
from holdfast.cli.main import main as run_holdfast
from holdfast.engine.claims import picker
from holdfast.engine.claims.standing_claims import StandingClaims
from holdfast.engine.engine import engine_of
from holdfast.engine.input import blueprint, task_template, validation
from holdfast.engine.input.task_template import TaskTemplate
from holdfast.engine.read import task_records
from holdfast.server.fast_router import FastRouter
from holdfast.service.async_service import AsyncService
from holdfast.service.protocol import protocol
from holdfast.service.queries import queries as service_queries
from holdfast.store.postgresql import transaction as postgresql_transaction
from holdfast.store.postgresql.transaction import PostgresqlTransaction
from holdfast.worker.pool.claims_ahead import ClaimsAhead
from tests import servers

BULK = 1_000
SERVE_WITHOUT = "--serve-without"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A rate of a workload in this process, `size` of it at a time."""

    what: str
    size: int
    rate: Callable[[str, int], float]
    databases: Sequence[str] = DATABASES

    def measure(self, url: str, without: str | None) -> float:
        with nullcontext() if without is None else PATHS[without].take_out():
            return self.rate(url, self.size)


@dataclass(frozen=True, kw_only=True)
class HttpWorkload:
    """A rate of calls to a server in a process of its own, which lacks the path."""

    what: str
    size: int
    calls: Callable[[Server, int], Coroutine[Any, Any, tuple[str, str]]]
    databases: Sequence[str] = DATABASES

    def measure(self, url: str, without: str | None) -> float:
        command = ("benchmarks.fast_paths", SERVE_WITHOUT, without or "nothing")
        with serving(url, program=command) as server:
            told, _ = asyncio.run(self.calls(server, self.size))
        return float(told.removesuffix("/s").replace(",", ""))


@dataclass(frozen=True, kw_only=True)
class FastPath:
    """A path, and the workloads that it is for; `take_out` replaces it while it is entered."""

    take_out: Callable[[], AbstractContextManager[object]]
    workloads: Sequence[Workload | HttpWorkload]


def drain_tasks(url: str, size: int) -> float:
    with program(url) as made:
        made.enqueue(size)
        return size / timed(lambda: made.drain("t_", size, 400))


def make_and_drain_tasks(url: str, size: int) -> float:
    with program(url) as made:
        seconds = timed(lambda: made.enqueue(size))
        return size / (seconds + timed(lambda: made.drain("t_", size, 400)))


def drain_tasks_as_it_comes(url: str, size: int) -> float:
    """Tasks drained by a worker that is told no concurrency."""
    with program(url) as made:
        made.enqueue(size)
        return size / timed(lambda: made.drain("t_", size, None))


def drain_pipelines(url: str, size: int) -> float:
    with program(url) as made:
        made.start(size)
        return size / timed(lambda: made.drain("r_", size, 400))


def run_pipelines_alone(url: str, size: int) -> float:
    with program(url) as made, made.hf.worker(concurrency=1):
        run_one_by_one(made, 1)
        return size / timed(lambda: run_one_by_one(made, size))


def run_distant_pipelines(url: str, size: int) -> float:
    """Pipelines alone, on a server to which each round trip takes longer."""
    with distant(over_tcp(url), FURTHER) as there:
        return run_pipelines_alone(there.url, size)


def enqueue_in_bulk(url: str, size: int) -> float:
    with program(url) as made:
        calls: list[dict[str, Any]] = [{} for _ in range(BULK)]
        made.job.enqueue_many(calls)
        return size / timed(lambda: [made.job.enqueue_many(calls) for _ in range(size // BULK)])


def list_tasks(url: str, size: int) -> float:
    """Tasks read in pages of a thousand, as records."""
    with program(url) as made:
        made.job.enqueue_many([{} for _ in range(BULK)])
        tasks = engine_of(made.hf).tasks
        return size / timed(lambda: [tasks.list(limit=BULK) for _ in range(size // BULK)])


def _construct(kind: type[Any], values: dict[str, Any]) -> Any:  # noqa: ANN401 - any record
    """A frozen record whose fields are set one by one, as its own `__init__` does."""
    record = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record


@contextmanager
def _replaced(*places: tuple[Any, str, object]) -> Iterator[None]:
    """Replace attributes of modules and classes, and put them back."""
    known = [(owner, name, owner.__dict__[name]) for owner, name, _ in places]
    try:
        for owner, name, value in places:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in known:
            setattr(owner, name, value)


def _without_records() -> AbstractContextManager[object]:
    modules = (picker, validation, blueprint, task_records, task_template, api_task)
    return _replaced(*((each, "make_record", _construct) for each in modules))


async def _pass_on(router: FastRouter, *call: Any) -> None:
    await router._app(*call)  # noqa: SLF001 - what the router falls back on


async def _add_task(service: AsyncService, task: Any) -> Any:  # noqa: ANN401 - as there
    reads, whole = service._task_reads, service._service  # noqa: SLF001 - what it falls back on
    return await reads.in_thread(partial(whole.commands.add_task, task))


async def _complete(service: AsyncService, result: Any) -> Any:  # noqa: ANN401 - as there
    reads, whole = service._task_reads, service._service  # noqa: SLF001 - as above
    report = partial(
        whole.protocol.complete, result.task_id, result.token, result.output, result.usage
    )
    return await reads.in_thread(report)


def _never(*_: object, **__: object) -> None:
    return None


def _none(*_: object) -> int:
    return 0


def _no(*_: object, **__: object) -> bool:
    return False


_TASKS = Workload(what="waiting tasks drained", size=20_000, rate=drain_tasks)
_AS_IT_COMES = Workload(
    what="waiting tasks drained as it comes", size=20_000, rate=drain_tasks_as_it_comes
)
_MADE = Workload(what="tasks made and drained", size=20_000, rate=make_and_drain_tasks)
_PIPELINES = Workload(what="five-step pipelines drained", size=3_000, rate=drain_pipelines)
_BULK = Workload(what="tasks enqueued in bulk", size=40_000, rate=enqueue_in_bulk)
_ALONE = Workload(what="pipelines one after another", size=100, rate=run_pipelines_alone)
_DISTANT = Workload(
    what="pipelines one after another, each round trip 1 ms longer",
    size=60,
    rate=run_distant_pipelines,
)
_LISTED = Workload(what="tasks listed", size=40_000, rate=list_tasks)
_HTTP = (
    HttpWorkload(what="tasks over HTTP by the hundred", size=20_000, calls=http.batched),
    HttpWorkload(what="tasks over HTTP one by one", size=1_500, calls=http.one_by_one),
)


def _on_postgresql(workload: Workload) -> Workload:
    return replace(workload, databases=("postgresql",))


PATHS = {
    "direct_start": FastPath(
        take_out=lambda: _replaced((StandingClaims, "choose_direct_start", _never)),
        workloads=(_PIPELINES, _ALONE),
    ),
    "task_template": FastPath(
        take_out=lambda: _replaced((TaskTemplate, "_shared", None)),
        workloads=(_BULK, _MADE),
    ),
    "frozen_record": FastPath(
        take_out=_without_records, workloads=(_BULK, _TASKS, _PIPELINES, _LISTED)
    ),
    "plain_tasks": FastPath(
        take_out=lambda: _replaced((protocol, "is_plain", _no), (service_queries, "is_plain", _no)),
        workloads=_HTTP,
    ),
    "async_service": FastPath(
        take_out=lambda: _replaced(
            (AsyncService, "add_task", _add_task), (AsyncService, "complete", _complete)
        ),
        workloads=_HTTP,
    ),
    "fast_router": FastPath(
        take_out=lambda: _replaced((FastRouter, "__call__", _pass_on)), workloads=_HTTP
    ),
    "send_ahead": FastPath(
        take_out=lambda: _replaced((PostgresqlTransaction, "send_ahead", _never)),
        workloads=tuple(map(_on_postgresql, (_ALONE, _PIPELINES, _DISTANT))),
    ),
    "common_values": FastPath(
        take_out=lambda: _replaced((postgresql_transaction, "is_worthwhile", _no)),
        workloads=(_on_postgresql(_BULK),),
    ),
    "claims_ahead": FastPath(
        take_out=lambda: _replaced((ClaimsAhead, "count", _none)), workloads=(_AS_IT_COMES,)
    ),
}


def measure_path(name: str, places: Places, pairs: int) -> list[tuple[str, ...]]:
    """The gain of one path for each of its workloads."""
    path = PATHS[name]
    found: list[tuple[str, ...]] = []
    for workload in path.workloads:
        for database in workload.databases:
            rates = [_take(name, workload, database, places, turn) for turn in range(pairs)]
            gains = [with_path / without - 1 for with_path, without in rates]
            row = (
                name,
                workload.what,
                database,
                *(f"{median(side):,.0f}" for side in zip(*rates, strict=True)),
                f"{median(gains):+.0%}",
                f"{min(gains):+.0%} to {max(gains):+.0%}",
            )
            print(" | ".join(row), flush=True)
            found.append(row)
    return found


def _take(
    name: str, workload: Workload | HttpWorkload, database: str, places: Places, turn: int
) -> tuple[float, float]:
    """The rates with the path and without it; in every second turn without it first."""
    rates: dict[str | None, float] = {}
    for without in (name, None) if turn % 2 else (None, name):
        gc.collect()
        with places.new(database) as url:
            rates[without] = workload.measure(url, without)
    return rates[None], rates[name]


def main() -> int:
    if sys.argv[1:2] == [SERVE_WITHOUT]:
        return _run_command(*sys.argv[2:])
    options = _options()
    rows: list[tuple[str, ...]] = []
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        servers.postgres(**durable_settings(), **network_settings()) as url,
    ):
        places = Places(folder=Path(folder), postgres=url)
        for name in options.names or PATHS:
            rows += measure_path(name, places, options.pairs)
    headings = ("path", "workload", "database", "with it", "without it", "gain", "range")
    print(f"\n{draw_table([headings, *rows])}")
    return 0


def _run_command(without: str, *arguments: str) -> int:
    """Run a command of `holdfast` in this process, without a path."""
    with PATHS[without].take_out() if without in PATHS else nullcontext():
        return run_holdfast(arguments)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fast_paths", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PATHS))
    parser.add_argument("--pairs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
