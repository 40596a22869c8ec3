"""How a worker leaves: what it waits for, and how where it cannot wait.

Ctrl-C, SIGTERM and SIGHUP, where a worker can hear them.
"""

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
    """What a worker that was interrupted still waits for."""
    running = sorted(map(str, executions))
    if not running:
        return "nothing is running"
    more = f" and {len(running) - SHOWN} more" if len(running) > SHOWN else ""
    return (
        f"waiting for {', '.join(running[:SHOWN])}{more}; a second Ctrl-C or SIGTERM stops "
        "now: commands are given back, and what else was running is tried again when its "
        "lease has run out"
    )


def give_back(
    executions: Callable[[], Sequence[Execution]], clock: Clock, wait: Callable[[float], object]
) -> None:
    """Stop what can be stopped, and wait until it has been given back."""
    stopped = {each.key for each in executions() if each.abandon()}
    give_up = clock.monotonic() + GIVE_BACK_SECONDS
    while stopped & {each.key for each in executions()} and clock.monotonic() < give_up:
        wait(LOOK_EVERY)


def evict_executions(executions: Sequence[Execution]) -> None:
    """Stop and give back what can be, and keep no lease of the rest."""
    for each in executions:
        if not each.abandon():
            each.end()


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def record_signals() -> Iterator[list[int]]:
    """The first two of Ctrl-C, SIGTERM and SIGHUP as they come, where signals can be heard at all.

    The third one is the system's to deal with: no thread of this process can hold it up.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}
    if before[signal.SIGINT] is not signal.default_int_handler:
        del before[signal.SIGINT]
    # Under nohup a closed terminal is to be ignored, and stays so.
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]

    # It only takes note: to raise or to take a lock here would break into whatever runs just now.
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
    """End this process as the signal would have, had nobody heard it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
