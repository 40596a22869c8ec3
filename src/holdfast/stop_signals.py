"""Stop signals: Ctrl-Z stops a process between its write transactions, and not inside of one.

A process that is stopped inside a write transaction keeps a SQLite file locked for all others.
SIGSTOP cannot be put off.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Ctrl-Z, and what the system sends to a background job that uses the terminal.
STOP_SIGNALS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
# A stop is put off for so many seconds at most; a transaction of the application may last longer.
LONGEST_DELAY = 5.0
LOOK_EVERY = 0.001


class WriteTransaction:
    """A block in which a write transaction is under way; the first of a thread waits for a stop."""

    __slots__ = ("_all",)

    def __init__(self, transactions: WriteTransactions) -> None:
        self._all = transactions

    def __enter__(self) -> None:
        begun, mine = self._all.begun, threading.get_ident()
        if mine in begun.values():
            # The stop waits for the outer transaction of this thread, and so for this one.
            begun[self] = mine
            return
        # Noted before the look: either the handler sees this block, or the block sees the stop.
        begun[self] = mine
        while self._all.stopping:
            del begun[self]
            self._all.resumed.wait()
            begun[self] = mine

    def __exit__(self, *_: object) -> None:
        del self._all.begun[self]
        if self._all.put_off is not None:
            self._all.stop_if_put_off()


class WriteTransactions:
    """The write transactions that are under way in this process, and the stop that waits for them.

    A signal handler breaks into whatever the main thread does, so it may wait for no lock: what it
    shares with the threads that write are single values and a dictionary.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew in a forked child, which has none of its parent's threads."""
        self.begun: dict[WriteTransaction, int] = {}
        self.stopping = self.at_once = False
        self.put_off: int | None = None
        self.resumed = threading.Event()

    def note(self) -> WriteTransaction:
        return WriteTransaction(self)

    def stop_if_put_off(self) -> None:
        """Stop the process if it was asked to inside a transaction of the main thread, now over."""
        if threading.current_thread() is not threading.main_thread():
            return
        if self.put_off is not None and threading.get_ident() not in self.begun.values():
            number, self.put_off = self.put_off, None
            self._stop(number)

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Stop the process once nothing is written, or at once if it is asked to a second time."""
        if self.stopping:
            # The handler that this one breaks into waits no longer.
            self.at_once = True
        elif self.put_off is None and threading.get_ident() in self.begun.values():
            # The main thread is inside a transaction itself, and stops when that has ended.
            self.put_off = number
        else:
            self.at_once, self.put_off = self.put_off is not None, None
            self._stop(number)

    def _stop(self, number: int) -> None:
        """Keep transactions from beginning, let those end that have begun, and stop for real."""
        self.resumed.clear()
        self.stopping = True
        until = time.monotonic() + LONGEST_DELAY
        while self.begun and not self.at_once and time.monotonic() < until:
            time.sleep(LOOK_EVERY)
        handler = signal.signal(number, signal.SIG_DFL)
        try:
            # The process stands still in this line until SIGCONT.
            signal.raise_signal(number)
        finally:
            signal.signal(number, handler)
            self.stopping = self.at_once = False
            self.resumed.set()


write_transactions = WriteTransactions()
os.register_at_fork(after_in_child=write_transactions.forget)


@contextmanager
def stop_between_transactions() -> Iterator[None]:
    """Put off stop signals until nothing is written, in the main thread only.

    A signal that the program handles itself, or ignores, stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    chosen = [each for each in STOP_SIGNALS if signal.getsignal(each) is signal.SIG_DFL]
    for each in chosen:
        signal.signal(each, write_transactions.on_signal)
    try:
        yield
    finally:
        for each in chosen:
            signal.signal(each, signal.SIG_DFL)
