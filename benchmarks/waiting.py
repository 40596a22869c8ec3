"""How long a task waits for an idle worker, what an idle process costs, and how commands start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.by_hand import ByHand
from benchmarks.places import Places
from benchmarks.places import by_hand as open_by_hand
from benchmarks.program import Program, program

MILLISECONDS = 1_000
WARM = 5
TURNS = 5
# As often as a task comes to a worker that is really idle: the machine goes to sleep in between.
PAUSE = 0.02
_COMMAND = "from holdfast.cli.main import main; main()"
_EMPTY = "python -c pass"


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
            calls = _call_from_elsewhere(url, WARM + part)
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


@contextmanager
def _idle_worker(places: Places, database: str) -> Iterator[tuple[Program, str]]:
    with places.new(database) as url, program(url) as made, made.hf.worker(concurrency=1):
        yield made, url


def _call_from_elsewhere(url: str, count: int) -> list[tuple[float, float]]:
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
