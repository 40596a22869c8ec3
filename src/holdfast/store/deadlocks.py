"""Deadlocks: open transactions on SQLite files, the writer's thread, and waits that never end.

While a transaction is open on a SQLite file, the writer cannot write it. A thread that has the
transaction open must not block until the writer has written. Code that awaits blocks no thread, so
awaiting is refused only inside the transaction: in the coroutine that opened it, and in tasks and
thread calls that were started with that coroutine's context. Other coroutines of the loop may wait.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import WrongThread


class OpenTransaction:
    """One transaction on a file; a task that outlives it still has it in its context."""

    __slots__ = ("file", "open")

    def __init__(self, file: Path) -> None:
        self.file = file
        self.open = True


_calling_thread = threading.local()
_transactions_of_context: ContextVar[tuple[OpenTransaction, ...]] = ContextVar(
    "holdfast_transactions", default=()
)


@contextmanager
def note_open_transaction(file: Path) -> Iterator[None]:
    held, mine = _transactions_of_thread(), OpenTransaction(file)
    held.append(mine)
    _transactions_of_context.set((*_transactions_of_context.get(), mine))
    try:
        yield
    finally:
        mine.open = False
        held.remove(mine)
        _transactions_of_context.set(
            tuple(each for each in _transactions_of_context.get() if each is not mine)
        )


def has_open_transaction() -> bool:
    """Whether this thread or this context has a transaction on a SQLite file, maybe ended."""
    return bool(_transactions_of_thread() or _transactions_of_context.get())


def is_inside_transaction() -> bool:
    """Whether this context has a transaction on a SQLite file, maybe ended."""
    return bool(_transactions_of_context.get())


def would_deadlock(file: Path | None, *, blocking: bool = True) -> bool:
    """Whether a caller that waits here for the writer keeps the writer from writing the file.

    A caller that blocks its thread waits for the transactions of the thread as well.
    """
    if file is None:
        return False
    around = _transactions_of_context.get()
    held = (*_transactions_of_thread(), *around) if blocking else around
    return any(each.open and each.file == file for each in held)


def refuse_second_transaction(file: Path) -> None:
    """Refuse a transaction that would wait for another transaction of its own thread."""
    if would_deadlock(file):
        raise WrongThread(
            f"transaction() would wait for the one that this thread has open on {file} already; "
            "use its connection for both, or begin the second after the first has ended"
        )


class AwaitedCall(NamedTuple):
    """A call whose result the caller waits for, and whether the wait blocks the thread."""

    name: str
    method: Callable[..., object]
    blocking: bool


@contextmanager
def declare_wait(
    name: str, method: Callable[..., object], *, blocking: bool = True
) -> Iterator[None]:
    """Declare that the caller will wait for whatever it submits to the writer in this block.

    Where declarations are nested, a refusal names the outermost call: the one the user has written.
    """
    before: AwaitedCall | None = getattr(_calling_thread, "awaited", None)
    _calling_thread.awaited = before or AwaitedCall(name, method, blocking)
    try:
        yield
    finally:
        _calling_thread.awaited = before


def refuse_declared_wait(file: Path | None) -> None:
    """Refuse to submit an operation if the declared wait for it would never end."""
    awaited: AwaitedCall | None = getattr(_calling_thread, "awaited", None)
    if awaited is not None and would_deadlock(file, blocking=awaited.blocking):
        joins = "connection" in inspect.signature(awaited.method).parameters
        pass_on = "pass its connection on as connection=…, or " if joins else ""
        raise WrongThread(_describe_deadlock(awaited.name, file, pass_on))


def refuse_deadlock(name: str, file: Path | None, *, blocking: bool = True) -> None:
    """Refuse the call `name` if it would wait for a transaction that the caller has open."""
    if would_deadlock(file, blocking=blocking):
        raise WrongThread(_describe_deadlock(name, file))


def _describe_deadlock(name: str, file: Path | None, pass_on: str = "") -> str:
    held = f"{name} would wait for the transaction that is open here on {file}"
    return f"{held}; {pass_on}call it after the transaction has ended"


def _transactions_of_thread() -> list[OpenTransaction]:
    """The open transactions of this thread."""
    held: list[OpenTransaction] = _calling_thread.__dict__.setdefault("held", [])
    return held


# For a thread that writes groups: its `queue`, and the `callbacks` to be called after the replies.
writer_thread = threading.local()


def is_writer_thread() -> bool:
    """Whether this thread is writing a group, and so must not wait for a reply."""
    return getattr(writer_thread, "queue", None) is not None


def call_after_replies(callback: Callable[[], None]) -> None:
    """Call `callback` after all replies of the current group; outside of a group call it at once.

    A thread that is woken earlier competes with the writer for the interpreter.
    """
    callbacks: list[Callable[[], None]] | None = getattr(writer_thread, "callbacks", None)
    if callbacks is None:
        callback()
    else:
        callbacks.append(callback)
