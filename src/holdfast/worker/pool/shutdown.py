"""Shutdown: the signals that end a worker, and giving back what runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from holdfast.clock import MICROSECONDS, Clock
from holdfast.model.units import describe_duration
from holdfast.worker.attempt.execution import Execution

GIVE_BACK_SECONDS = 3.0
LOOK_EVERY = 0.05
SHOWN = 10


def describe_waiting(executions: Sequence[Execution], grace: float | None = None) -> str:
    """The text that says what an interrupted worker still waits for, and how long."""
    if not executions:
        return "nothing is running"
    stops = "a second Ctrl-C or SIGTERM stops now"
    if grace is not None:
        stops = "after that, or at a second Ctrl-C or SIGTERM, it stops"
    limit = "" if grace is None else f"up to {describe_duration(int(grace * MICROSECONDS))} "
    return (
        f"waiting {limit}for {_name_executions(executions)}; {stops}: commands are given back, "
        "and what else was running is tried again when its lease has run out"
    )


def describe_end_of_grace(grace: float, executions: Sequence[Execution]) -> str:
    """The text that says that the time is up for what still runs."""
    return (
        f"{describe_duration(int(grace * MICROSECONDS))} are over; what still runs is stopped: "
        f"{_name_executions(executions)}"
    )


def describe_unstoppable(executions: Sequence[Execution]) -> str:
    """The text that says what becomes of functions that no worker can stop."""
    return (
        f"{_name_executions(executions)} cannot be stopped, and goes on until this process ends; "
        'it is tried again when its lease has run out (isolation="process" makes a function one '
        "that can be stopped)"
    )


def _name_executions(executions: Sequence[Execution]) -> str:
    names = sorted(map(str, executions))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def give_back_executions(
    executions: Callable[[], Sequence[Execution]], clock: Clock, wait: Callable[[float], object]
) -> None:
    """Stop the executions that can be stopped, and wait until their tasks are given back."""
    stopped = {each.key for each in executions() if each.abandon()}
    give_up = clock.monotonic() + GIVE_BACK_SECONDS
    while stopped & {each.key for each in executions()} and clock.monotonic() < give_up:
        wait(LOOK_EVERY)


def evict_executions(executions: Sequence[Execution]) -> None:
    """Stop the executions that can be stopped and give them back; end the leases of the rest."""
    for each in executions:
        if not each.abandon():
            each.end()


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def record_signals() -> Iterator[list[int]]:
    """Record the first two of Ctrl-C, SIGTERM and SIGHUP, in the main thread only.

    The third signal gets its default handler: no thread of this process can delay that.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}
    if before[signal.SIGINT] is not signal.default_int_handler:
        del before[signal.SIGINT]
    # Under nohup SIGHUP is ignored, and stays ignored.
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]

    # The handler only takes a note: raising or locking here would break into whatever runs now.
    def note(number: int, _: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            for each in before:
                signal.signal(each, signal.SIG_DFL)

    for each in before:
        signal.signal(each, note)
    try:
        yield heard
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def end_process_by_signal(number: int) -> None:
    """End this process as the signal would have done by default."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
