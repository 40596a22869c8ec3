"""Shutdown: the signals that end a worker, and giving back what runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from holdfast.clock import Clock
from holdfast.worker.attempt.execution import Execution

GIVE_BACK_SECONDS = 3.0
LOOK_EVERY = 0.05
SHOWN = 10


def describe_waiting(executions: Sequence[Execution]) -> str:
    """The text that says what an interrupted worker still waits for."""
    running = sorted(map(str, executions))
    if not running:
        return "nothing is running"
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    return (
        f"waiting for {', '.join(running[:SHOWN])}{more}; a second Ctrl-C or SIGTERM stops "
        "now: commands are given back, and what else was running is tried again when its "
        "lease has run out"
    )


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
