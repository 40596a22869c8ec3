"""How long a task waits for an idle worker, and what an idle process costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.by_hand import ByHand
from benchmarks.places import Places
from benchmarks.places import by_hand as open_by_hand
from benchmarks.program import Program, program

MILLISECONDS = 1_000
WARM = 5
# As often as a task comes to a worker that is really idle: the machine goes to sleep in between.
PAUSE = 0.02


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
    with places.new(database) as url, places.new(database) as bare:
        commits = _commits(bare, count, pause)
        with program(url) as made, made.hf.worker(concurrency=1):
            waits = [_wait(made) for _ in _paced(count, pause)][WARM:]
    how = f"one every {pause * MILLISECONDS:g} ms" if pause else "one process"
    return [
        _figure(f"enqueue to handler, {how}, p50", database, median(waits), median(commits)),
        _figure(f"enqueue to handler, {how}, p99", database, p99(waits), p99(commits)),
    ]


def dispatch_across(places: Places, database: str, count: int) -> list[Figure]:
    """The same from another process, and until it has the result: both read the machine's clock."""
    with places.new(database) as url, places.new(database) as bare:
        commits = _commits(bare, count)
        with program(url) as made, made.hf.worker(concurrency=1), ExitStack() as stack:
            command = [sys.executable, "-m", "benchmarks.caller", url, str(WARM + count)]
            caller = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            )
            told, _ = caller.communicate()
            calls = [tuple(map(float, line.split())) for line in told.splitlines()]
            assert len(calls) == len(made.began), (len(calls), len(made.began))
            waits = [began - asked for (asked, _), began in zip(calls, made.began, strict=True)]
    starts, ends = waits[WARM:], [answered - asked for asked, answered in calls[WARM:]]
    return [
        _figure(
            f"enqueue to {what}, two processes, {named}", database, of(found), needed * of(commits)
        )
        # It is made, started and ended by a commit each.
        for what, found, needed in (("handler", starts, 2), ("result", ends, 3))
        for named, of in (("p50", median), ("p99", p99))
    ]


def idle(places: Places, database: str, seconds: float) -> Figure:
    """The processor time of a process whose worker has nothing to do."""
    with places.new(database) as url, program(url) as made, made.hf.worker():
        made.job.enqueue().result(60)
        begin, used = time.perf_counter(), time.process_time()
        time.sleep(seconds)
        share = (time.process_time() - used) / (time.perf_counter() - begin)
    return Figure(
        what=f"an idle process with a worker, over {seconds:g} s",
        database=database,
        value=f"{share:.2%} of a core",
    )


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def _wait(made: Program) -> float:
    before = len(made.began)
    asked = time.perf_counter()
    made.note_time.enqueue().result(60)
    return made.began[before] - asked


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
