"""Compares what each statement costs beside much and beside ten times as much of all else.

python -m benchmarks.growth [--only PLAN …] [--database sqlite]

Every group of operations that the tests kill half-way is written in a store with a crowd, and in
one with a crowd ten times as large. Of each statement it counts the steps of SQLite's machine and
the pages that PostgreSQL looks at, which say the same on a slow day. Prints what grows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import apsw

import tests.chaos.test_statement_boundaries  # noqa: F401 - it has every plan registered
from benchmarks import crowd
from benchmarks.places import DATABASES
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.randomness import SeededRandomness
from holdfast.store.postgresql.pipeline import Pipeline, PipelineAnswer
from holdfast.store.postgresql.statement import Statement, Types, Values, number_parameters
from holdfast.store.sql_text import queries
from holdfast.store.sql_text.macros import Dialect
from tests import servers
from tests.chaos.explorer import Plan
from tests.chaos.plans.registry import PLANS
from tests.chaos.process_jobs import submit
from tests.race.worlds import World

MUCH, MORE = 1, 10
GROWN = 1.5
# A page of an index more, or a few steps, is no growth: trees get deeper.
SLACK: Mapping[str, int] = {"sqlite": 200, "postgresql": 20}
# It looks at each running lease, as the clock may have been set back under any of them.
WHOLE = frozenset({"leases_ahead"})
Cost = Counter[str]
Costs = dict[int, int]
# A new store with a crowd, as often as one is wanted.
Copier = Callable[[], AbstractContextManager[str]]
Maker = Callable[[int], AbstractContextManager[Copier]]


class Meter:
    """What the statements of this process cost while it is on, by their names."""

    def __init__(self) -> None:
        self.cost: Cost = Counter()
        self.on = False

    def add(self, dialect: Dialect, text: str, cost: int) -> None:
        name = _name(dialect, text)
        if name is not None:
            self.cost[name] += cost


@cache
def _name(dialect: Dialect, text: str) -> str | None:
    named = (each.name for each in queries.load(dialect).values() if each.text == text)
    return next(named, None)


def watch(meter: Meter) -> None:
    """See what every statement costs that this process will send, on any connection."""

    def notice(event: dict[str, Any]) -> None:
        if meter.on:
            meter.add("sqlite", event["sql"], event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    apsw.connection_hooks.append(
        lambda connection: connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, notice)
    )
    send = Pipeline.send
    plain = {
        number_parameters(each.text).text: each.text for each in queries.load("postgresql").values()
    }

    def explained(
        wire: Pipeline, statement: Statement, types: Types, values: Values
    ) -> PipelineAnswer:
        text = plain.get(statement.text)
        if meter.on and text is not None and _is_costly(text):
            send(wire, number_parameters("SAVEPOINT metered"), (), [])
            how = b"EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) "
            asked = Statement(text=how + statement.text, names=statement.names)
            ((plan,),) = send(wire, asked, types, values).rows()[1]
            send(wire, number_parameters("ROLLBACK TO SAVEPOINT metered"), (), [])
            top = plan[0]["Plan"]
            meter.add("postgresql", text, top["Shared Hit Blocks"] + top["Shared Read Blocks"])
        return send(wire, statement, types, values)

    # Assigned by name: to a type checker a method is no place to put another.
    setattr(Pipeline, "send", explained)  # noqa: B010


def _is_costly(text: str) -> bool:
    return text.split(maxsplit=1)[0] in {"SELECT", "WITH", "UPDATE", "INSERT", "DELETE"}


def measure(url: str, plan: Plan, meter: Meter) -> Cost:
    """Write the group of a plan, and do once what time brings."""
    meter.cost = Counter()
    day = ManualClock()
    with closing(Engine(url, clock=day, randomness=SeededRandomness(7))) as engine:
        engine.commits.start()
        operations = tuple(plan(World(engine=engine, day=day, number=1)))
    with closing(Engine(url, clock=day, randomness=SeededRandomness(11))) as engine:
        futures = submit(engine, operations)
        meter.on = True
        engine.commits.step()
        for future in futures:
            future.result()
        engine.commits.start()
        engine.recovery.step()
        meter.on = False
    return meter.cost


@contextmanager
def files(folder: Path, times: int) -> Iterator[Copier]:
    path = folder / f"{times}.db"
    _fill(f"sqlite:///{path}", times)

    @contextmanager
    def copied() -> Iterator[str]:
        made = shutil.copy(path, folder / "copy.db")
        yield f"sqlite:///{made}"
        for each in folder.glob("copy.db*"):
            each.unlink()

    yield copied


@contextmanager
def databases(server: str, times: int) -> Iterator[Copier]:
    with servers.database(server) as url:
        _fill(url, times)
        yield partial(servers.database, server, urlsplit(url).path.removeprefix("/"))


def _fill(url: str, times: int) -> None:
    Engine(url).close()
    crowd.fill(url, times)


def compare(make: Maker, plans: Sequence[str], meter: Meter) -> dict[tuple[str, str], Costs]:
    """What each statement of each plan costs beside much, and beside more."""
    found: dict[tuple[str, str], Costs] = {}
    for times in (MUCH, MORE):
        with make(times) as copied:
            for plan in plans:
                with copied() as url:
                    for name, cost in measure(url, PLANS[plan].plan, meter).items():
                        found.setdefault((name, plan), {})[times] = cost
    return found


def tell(database: str, found: Mapping[tuple[str, str], Costs]) -> bool:
    """Print what grows; whether anything does."""
    grown = False
    for (name, plan), costs in sorted(found.items()):
        much, more = costs.get(MUCH, 0), costs.get(MORE, 0)
        if name not in WHOLE and more > GROWN * much and more > much + SLACK[database]:
            grown = True
            print(f"{database:<10}  {name:<20} {much:>7,} → {more:>7,}  {plan}")
    print(f"{database}: {len({name for name, _ in found})} statements looked at", flush=True)
    return grown


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--only", nargs="*", choices=sorted(PLANS), help="the plans to look at")
    options.add_argument("--database", choices=DATABASES, help="one of the two alone")
    chosen = options.parse_args()
    plans = chosen.only or sorted(PLANS)
    meter = Meter()
    watch(meter)
    grown = False
    with tempfile.TemporaryDirectory(dir=servers.memory()) as folder:
        if chosen.database != "postgresql":
            grown |= tell("sqlite", compare(partial(files, Path(folder)), plans, meter))
        if chosen.database != "sqlite":
            with servers.postgres() as server:
                made = compare(partial(databases, server), plans, meter)
                grown |= tell("postgresql", made)
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
