"""Who has a transaction open on a SQLite file, and so must not wait for what others would write.

The transaction is its thread's: nothing that blocks that thread can end before it. What a coroutine
awaits blocks no thread, and is refused only inside the transaction: in the coroutine that has it
open, and in the tasks that were started from there. The others of its loop can well wait for it. A
thread to which that coroutine hands a call with all that is around it is waited for there, too.

Which thread writes, for those whom it calls back.
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
    """One transaction, and whether it is open still: a task that outlives it has it around, too."""

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
    """Whether a transaction of this thread, or around it, may keep all others from writing."""
    return bool(_transactions_of_thread() or _transactions_of_context.get())


def is_inside_transaction() -> bool:
    """Whether such a transaction was open where this was started, and maybe still is."""
    return bool(_transactions_of_context.get())


def would_deadlock(file: Path | None, *, blocking: bool = True) -> bool:
    """Whether who would wait here, blocking its thread or not, itself keeps others from writing."""
    if file is None:
        return False
    around = _transactions_of_context.get()
    held = (*_transactions_of_thread(), *around) if blocking else around
    return any(each.open and each.file == file for each in held)


def refuse_second_transaction(file: Path) -> None:
    """Refuse a transaction that would wait for another of the thread that it is begun in."""
    if would_deadlock(file):
        raise WrongThread(
            f"transaction() would wait for the one that this thread has open on {file} already; "
            "use its connection for both, or begin the second after the first has ended"
        )


class AwaitedCall(NamedTuple):
    """What a caller asks for and waits for, and whether its thread is blocked meanwhile."""

    name: str
    method: Callable[..., object]
    blocking: bool


@contextmanager
def declare_wait(
    name: str, method: Callable[..., object], *, blocking: bool = True
) -> Iterator[None]:
    """Whatever is asked of the writer meanwhile is going to be waited for.

    It is refused by the outermost name, which is what the caller has written.
    """
    before: AwaitedCall | None = getattr(_calling_thread, "awaited", None)
    _calling_thread.awaited = before or AwaitedCall(name, method, blocking)
    try:
        yield
    finally:
        _calling_thread.awaited = before


def refuse_declared_wait(file: Path | None) -> None:
    """Refuse what somebody would wait for who keeps the writer from writing it."""
    awaited: AwaitedCall | None = getattr(_calling_thread, "awaited", None)
    if awaited is not None and would_deadlock(file, blocking=awaited.blocking):
        joins = "connection" in inspect.signature(awaited.method).parameters
        pass_on = "pass its connection on as connection=…, or " if joins else ""
        raise WrongThread(_describe_deadlock(awaited.name, file, pass_on))


def refuse_deadlock(name: str, file: Path | None, *, blocking: bool = True) -> None:
    """Refuse what cannot be asked for inside a transaction, where that keeps it from coming."""
    if would_deadlock(file, blocking=blocking):
        raise WrongThread(_describe_deadlock(name, file))


def _describe_deadlock(name: str, file: Path | None, pass_on: str = "") -> str:
    held = f"{name} would wait for the transaction that is open here on {file}"
    return f"{held}; {pass_on}call it after the transaction has ended"


def _transactions_of_thread() -> list[OpenTransaction]:
    """The transactions that this thread has open."""
    held: list[OpenTransaction] = _calling_thread.__dict__.setdefault("held", [])
    return held


# What the thread that asks is about: whose writer it is, and whom it has still to tell.
writer_thread = threading.local()


def is_writer_thread() -> bool:
    """Whether this thread writes for everybody else, and so must not wait for a reply."""
    return getattr(writer_thread, "queue", None) is not None


def writes_own_operation() -> bool:
    """Whether this thread writes one operation, which it brought itself."""
    return getattr(writer_thread, "writes_own", False)


def call_after_replies(callback: Callable[[], None]) -> None:
    """Call back when everybody was told whose group is being answered; elsewhere at once.

    To wake another thread before that would have both want the interpreter.
    """
    callbacks: list[Callable[[], None]] | None = getattr(writer_thread, "callbacks", None)
    if callbacks is None:
        callback()
    else:
        callbacks.append(callback)
