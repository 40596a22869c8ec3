"""How long a task waits for an idle worker, what an idle process costs, and how commands start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

import psycopg

from benchmarks.by_hand import STEPS, ByHand
from benchmarks.by_hand_postgresql import CHANNEL, PostgresqlByHand
from benchmarks.distance import distant
from benchmarks.places import Places, over_tcp
from benchmarks.places import by_hand as open_by_hand
from benchmarks.program import Program, program

MILLISECONDS = 1_000
WARM = 5
TURNS = 5
# As often as a task comes to a worker that is really idle: the machine goes to sleep in between.
PAUSE = 0.02
_COMMAND = "from holdfast.cli.main import main; main()"
_EMPTY = "python -c pass"
# What a round trip to a distant server takes more.
FURTHER = 0.001


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Something measured that is no rate: its value, and what it is to be held against."""

    what: str
    database: str
    value: str
    beside: str = ""


def dispatch(places: Places, database: str, count: int, *, pause: float = 0) -> list[Figure]:
    """From before enqueue is called to the first line of the handler, the worker being idle.

    With a pause it is idle before each one, and so is whoever makes the bare commits.
    """
    waits: list[float] = []
    commits: list[float] = []
    with _idle_worker(places, database) as (made, _), places.new(database) as bare:
        for part in _turns(count):
            commits += _commits(bare, part, pause)
            waits += [_wait(made) for _ in _paced(part, pause)][WARM:]
    how = f"one every {pause * MILLISECONDS:g} ms" if pause else "one process"
    return [
        _figure(f"enqueue to handler, {how}, p50", database, median(waits), median(commits)),
        _figure(f"enqueue to handler, {how}, p99", database, p99(waits), p99(commits)),
    ]


def dispatch_across(places: Places, database: str, count: int) -> list[Figure]:
    """The same from another process, and until it has the result: both read the machine's clock."""
    starts: list[float] = []
    ends: list[float] = []
    commits: list[float] = []
    with _idle_worker(places, database) as (made, url), places.new(database) as bare:
        for part in _turns(count):
            commits += _commits(bare, part)
            made.began.clear()
            calls = call_from_elsewhere(url, WARM + part)
            assert len(calls) == len(made.began), (len(calls), len(made.began))
            began = zip(calls[WARM:], made.began[WARM:], strict=True)
            starts += [moment - asked for (asked, _), moment in began]
            ends += [answered - asked for asked, answered in calls[WARM:]]
    return [
        _figure(
            f"enqueue to {what}, two processes, {named}", database, of(found), needed * of(commits)
        )
        # It is made, started and ended by a commit each.
        for what, found, needed in (("handler", starts, 2), ("result", ends, 3))
        for named, of in (("p50", median), ("p99", p99))
    ]


def dispatch_over_tcp(places: Places, database: str, count: int) -> list[Figure]:
    """From before enqueue to the handler in another process, both over TCP.

    Beside it: one bare commit with a NOTIFY until another session has it, and one bare commit.
    """
    if database != "postgresql":
        return []
    starts: list[float] = []
    notified: list[float] = []
    commits: list[float] = []
    with places.new(database) as url, places.new(database) as bare:
        there = over_tcp(url)
        with program(there) as made, made.hf.worker(concurrency=1):
            for part in _turns(count):
                commits += _commits(over_tcp(bare), part)
                notified += _notify(over_tcp(bare), part)
                made.began.clear()
                calls = call_from_elsewhere(there, WARM + part)
                assert len(calls) == len(made.began), (len(calls), len(made.began))
                began = zip(calls[WARM:], made.began[WARM:], strict=True)
                starts += [moment - asked for (asked, _), moment in began]
    return [
        Figure(
            what=f"enqueue to handler, two processes over TCP, {named}",
            database=database,
            value=_in_ms(of(starts)),
            beside=f"{_in_ms(of(notified) + of(commits))} of bare commits and a NOTIFY",
        )
        for named, of in (("p50", median), ("p99", p99))
    ]


def pipeline_at_a_distance(places: Places, database: str, count: int) -> list[Figure]:
    """A pipeline alone where each round trip to the server takes a millisecond longer."""
    if database != "postgresql":
        return []
    times: list[float] = []
    trips: list[int] = []
    with (
        places.new(database) as url,
        distant(over_tcp(url), FURTHER) as distance,
        program(distance.url) as made,
        made.hf.worker(concurrency=1),
    ):
        for _ in range(WARM + count):
            before, began = distance.round_trips(), time.perf_counter()
            with made.draining("r_", 1) as wait:
                made.pipeline.start()
                wait()
            times.append(time.perf_counter() - began)
            trips.append(distance.round_trips() - before)
    return [
        Figure(
            what="round trips of a pipeline alone",
            database=database,
            value=f"{median(trips[WARM:]):.0f}",
            beside=f"{1 + len(STEPS)} commits, of its start and {len(STEPS)} steps",
        ),
        Figure(
            what=f"a pipeline alone, each round trip {FURTHER * MILLISECONDS:g} ms longer",
            database=database,
            value=f"{median(times[WARM:]) * MILLISECONDS:.2f} ms",
            beside=f"{2 * len(STEPS) * FURTHER * MILLISECONDS:g} ms of two round trips a step",
        ),
    ]


def _notify(url: str, count: int) -> list[float]:
    """From before a bare commit that notifies to its arrival in another session."""
    found: list[float] = []
    hand = PostgresqlByHand(url)
    with closing(hand), psycopg.connect(url, autocommit=True) as other:
        other.execute(f"LISTEN {CHANNEL}")
        hand.commit_once()
        for _ in range(WARM + count):
            begin = time.perf_counter()
            hand.notify_once()
            (_,) = other.notifies(stop_after=1)
            found.append(time.perf_counter() - begin)
    return found[WARM:]


@contextmanager
def _idle_worker(places: Places, database: str) -> Iterator[tuple[Program, str]]:
    with places.new(database) as url, program(url) as made, made.hf.worker(concurrency=1):
        yield made, url


def call_from_elsewhere(url: str, count: int) -> list[tuple[float, float]]:
    """When another process has asked for each of so many tasks, and when it had the answer."""
    command = [sys.executable, "-m", "benchmarks.caller", url, str(count)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [(float(asked), float(had)) for asked, had in map(str.split, told.splitlines())]


def idle(places: Places, database: str, seconds: float) -> list[Figure]:
    """The processor time of a process whose worker has nothing to do."""
    with places.new(database) as url, program(url) as made, made.hf.worker():
        made.job.enqueue().result(60)
        begin, used = time.perf_counter(), time.process_time()
        time.sleep(seconds)
        share = (time.process_time() - used) / (time.perf_counter() - begin)
    what = f"an idle process with a worker, over {seconds:g} s"
    return [Figure(what=what, database=database, value=f"{share:.2%} of a core")]


def start_up(places: Places, database: str, starts: int) -> list[Figure]:
    """How long commands take from their start to their end, in turns with an empty program."""
    with places.new(database) as url:
        commands = {
            "holdfast --version": (_COMMAND, "--version"),
            "holdfast runs": (_COMMAND, "runs", "--db", url),
            "a program that imports Holdfast": ("from holdfast import Holdfast",),
        }
        times: dict[str, list[float]] = {what: [] for what in (_EMPTY, *commands)}
        # The first turn writes the bytecode and warms what is read from the disk.
        for _ in range(1 + starts):
            for what, command in {_EMPTY: ("pass",), **commands}.items():
                times[what].append(_start(command))
    empty = median(times[_EMPTY][1:])
    return [
        Figure(
            what=f"{what}, from its start to its end",
            database=database,
            value=f"{median(times[what][1:]) * MILLISECONDS:.0f} ms",
            beside=f"{empty * MILLISECONDS:.0f} ms of {_EMPTY}",
        )
        for what in commands
    ]


def _start(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", *command], capture_output=True, check=True)
    return time.perf_counter() - begin


def _in_ms(seconds: float) -> str:
    return f"{seconds * MILLISECONDS:.2f} ms"


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _wait(made: Program) -> float:
    before = len(made.began)
    asked = time.perf_counter()
    made.note_time.enqueue().result(60)
    return made.began[before] - asked


def _turns(count: int) -> list[int]:
    """How many are measured in each of the turns that tasks and bare commits take."""
    return [max(1, count // TURNS)] * TURNS


def _paced(count: int, pause: float) -> Iterator[None]:
    for _ in range(WARM + count):
        time.sleep(pause)
        yield


def _commits(url: str, count: int, pause: float = 0) -> list[float]:
    hand = open_by_hand(url)
    try:
        return [_commit(hand) for _ in _paced(count, pause)][WARM:]
    finally:
        hand.close()


def _commit(hand: ByHand) -> float:
    begin = time.perf_counter()
    hand.commit_once()
    return time.perf_counter() - begin


def _figure(what: str, database: str, seconds: float, commits: float) -> Figure:
    return Figure(
        what=what,
        database=database,
        value=f"{seconds * MILLISECONDS:.2f} ms",
        beside=f"{commits * MILLISECONDS:.2f} ms of bare commits",
    )
