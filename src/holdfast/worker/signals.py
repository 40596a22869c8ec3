"""Ctrl-C and SIGTERM, where a worker can hear them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_signal() -> Iterator[Callable[[], bool]]:
    """Tell whether Ctrl-C or SIGTERM came, where signals can be heard at all.

    The second one is the system's to deal with: no thread of this process can hold it up.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    if before[signal.SIGINT] is not signal.default_int_handler:
        del before[signal.SIGINT]

    # It only takes note: to raise or to take a lock here would break into whatever runs just now.
    def note(number: int, _: FrameType | None) -> None:
        heard.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)

    for each in before:
        signal.signal(each, note)
    try:
        yield lambda: bool(heard)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
