"""Ctrl-C, SIGTERM and SIGHUP, where a worker can hear them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def signals() -> Iterator[list[int]]:
    """The first two of Ctrl-C, SIGTERM and SIGHUP as they come, where signals can be heard at all.

    The third one is the system's to deal with: no thread of this process can hold it up.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {each: signal.getsignal(each) for each in HEARD}
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


def die(number: int) -> None:
    """End this process as the signal would have, had nobody heard it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
