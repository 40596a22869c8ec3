"""Group commit: all waiting operations are written in one transaction, without any added delay."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from holdfast.clock import Clock
from holdfast.errors import (
    ShuttingDown,
    StoreBusy,
    StoreGone,
    StoreUnreachable,
    UnknownOutcome,
    WrongThread,
)
from holdfast.settings import MEBIBYTE, Settings
from holdfast.store.database import LateReply, Transaction
from holdfast.store.deadlocks import refuse_declared_wait, writer_thread
from holdfast.store.fork_guard import OwningProcess
from holdfast.store.group_commit.deferred_entries import DeferredEntries
from holdfast.store.group_commit.entries import Entry, FutureEntry, JointEntry, JointReplies, O
from holdfast.threads import RunningThread, Threads

logger = logging.getLogger(__name__)

# A bound for the operations of one group, which are in memory several times while they are written.
GROUP_BYTES = 16 * MEBIBYTE
# The seconds that a group waits for a locked row while entries are deferred, and that a part of a
# group waits while the entry about the locked row is searched for.
PATIENCE_WHILE_DEFERRED = 0.06
PATIENCE_FOR_PART = 0.01


T = TypeVar("T")


class Writable(Protocol):
    """The part of a database that group commit uses."""

    @property
    def file(self) -> Path | None: ...

    def transact(self, work: Callable[[Transaction], T], *, patience: float | None = None) -> T: ...


Replies = Sequence[Any]


class GroupCommit(Generic[O]):
    """The queue before the writer of a process, and the thread that writes what is in it.

    `apply` writes a group and gives one reply for each operation; an exception among the replies
    is raised to that operation's caller alone.
    """

    def __init__(  # noqa: PLR0913 - where it writes, how, and who hears of it
        self,
        database: Writable,
        apply: Callable[[Transaction, Sequence[O]], Replies],
        threads: Threads,
        settings: Settings,
        clock: Clock,
        *,
        on_commit: Callable[[Replies], None],
        on_take: Callable[[], None] = lambda: None,
    ) -> None:
        self._owner = OwningProcess()
        self._database = database
        self._file = database.file
        self._apply = apply
        self._threads = threads
        self._size = settings.group_size
        self._on_commit = on_commit
        self._on_take = on_take
        self._inbox_changed = threads.condition()
        self._inbox: list[Entry[O]] = []
        self._idle = False
        self._closed = False
        self._waiting: deque[Entry[O]] = deque()
        self._deferred: DeferredEntries[O] = DeferredEntries(clock, settings)
        self._busy = StoreBusy("another transaction holds a row that this needs")
        self._thread: RunningThread | None = None
        # For measurements: the number of groups by the bit length of their size.
        self.sizes: Counter[int] = Counter()
        self.written = 0

    def start(self) -> None:
        self._thread = self._threads.start("holdfast-writer", self._loop)

    def submit(self, operation: O, read: Callable[[Any], Any] | None = None) -> Future[Any]:
        """Have an operation written; the future gives the reply, or what `read` makes of it."""
        entry = FutureEntry(operation, read, self._file)
        self._enqueue((entry,))
        return entry.future

    def enter(self, entry: Entry[O], entered: Callable[[], None]) -> None:
        """Have an operation written, whose entry takes the reply or the error.

        `entered` is called under the queue's lock: a group that is taken later has the entry, if
        there is room.
        """
        self._enqueue((entry,), entered)

    def submit_many(self, operations: Sequence[O]) -> list[Future[Any]]:
        entries = [FutureEntry(operation, file=self._file) for operation in operations]
        self._enqueue(entries)
        return [entry.future for entry in entries]

    def submit_all(self, operations: Sequence[O]) -> Future[list[Any]]:
        """Have operations written; the future gives their replies in order, or the first error."""
        joint_replies = JointReplies(len(operations), self._file)
        if operations:
            self._enqueue(
                [JointEntry(each, joint_replies, place) for place, each in enumerate(operations)]
            )
        else:
            joint_replies.future.set_result([])
        return joint_replies.future

    def _enqueue(
        self, entries: Sequence[Entry[O]], entered: Callable[[], None] = lambda: None
    ) -> None:
        refuse_declared_wait(self._file)
        # Checked before the lock, which another thread may have held when the process was forked.
        self._owner.check()
        with self._inbox_changed:
            if self._closed:
                raise ShuttingDown("the engine is closing and takes no more operations")
            self._inbox += entries
            entered()
            if self._idle:
                self._inbox_changed.notify()

    def step(self) -> int:
        """Write one group, and retry deferred entries; the number of operations that were tried."""
        with self._inbox_changed:
            self._waiting += self._inbox
            self._inbox.clear()
            self._on_take()
        group = self._take_group()
        if group:
            self._write(group, PATIENCE_WHILE_DEFERRED if self._deferred else None)
        return len(group) + (self._retry_deferred() if self._deferred else 0)

    def _retry_deferred(self) -> int:
        """Retry deferred entries if that is due, and fail those that waited too long."""
        tried = self._deferred.retry_due(lambda entry, patience: self._write([entry], patience))
        if late := self._deferred.take_expired():
            _fail_entries(late, self._busy)
        self._waiting.extendleft(reversed(self._deferred.release_followers([*tried, *late])))
        return len(tried)

    def close(self) -> None:
        """Write all waiting operations, then stop; in a forked child there is nothing to stop."""
        if not self._owner.is_current():
            return
        if getattr(writer_thread, "queue", None) is self:
            raise WrongThread(
                "close() would wait for the commit that calls it; let it return first"
            )
        with self._inbox_changed:
            self._closed = True
            self._inbox_changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        else:
            self._drain()

    def _loop(self) -> None:
        writer_thread.queue = self
        try:
            while self._wait_for_work():
                self.step()
            self._drain()
        except BaseException:
            self._fail_all()
            raise
        finally:
            writer_thread.queue = None

    def _wait_for_work(self) -> bool:
        with self._inbox_changed:
            while not (self._inbox or self._waiting or self._closed):
                self._idle = True
                heard = self._inbox_changed.wait(self._deferred.seconds_to_retry())
                self._idle = False
                if not heard:
                    self._deferred.retry_soon()
                    break
            return not self._closed

    def _drain(self) -> None:
        while self.step() or self._waiting or self._deferred:
            if self._deferred:
                self._deferred.wait_for_retry()

    def _take_group(self) -> list[Entry[O]]:
        """Take the next group from the queue: one operation at most for each task and run."""
        group: list[Entry[O]] = []
        behind: list[Entry[O]] = []
        seen: set[str] = set()
        room = GROUP_BYTES
        deferred = self._deferred or None
        while self._waiting and room > 0 and max(len(group), len(behind)) < self._size:
            entry = self._waiting.popleft()
            operation = entry.operation
            keys = operation.keys
            free = seen.isdisjoint(keys)
            if free and deferred and deferred.defer_behind(entry):
                continue
            seen.update(keys)
            if not free:
                behind.append(entry)
            elif entry.begin():
                group.append(entry)
                room -= operation.size
        self._waiting.extendleft(reversed(behind))
        return group

    def _write(
        self, group: Sequence[Entry[O]], patience: float | None = None
    ) -> BaseException | None:
        """Write a group and deliver its replies; the result is the error that all of it got."""
        try:
            replies = self._commit(group, patience)
        except StoreBusy as error:
            return self._defer(group[0], error) if len(group) == 1 else self._write_in_halves(group)
        except Exception as error:  # noqa: BLE001 - any error may belong to one caller
            if len(group) == 1 or _concerns_everyone(error):
                return _fail_entries(group, error)
            return self._write_separately([[entry] for entry in group], patience)
        except BaseException as error:
            _fail_entries(group, error)
            raise
        self._deliver_replies(group, replies)
        return None

    def _defer(self, entry: Entry[O], error: StoreBusy) -> BaseException | None:
        self._busy = error
        return None if self._deferred.defer(entry) else _fail_entries([entry], error)

    def _write_in_halves(self, group: Sequence[Entry[O]]) -> BaseException | None:
        """Write a group in two halves, so that only entries about locked rows fail in the end."""
        middle = len(group) // 2
        return self._write_separately([group[:middle], group[middle:]], PATIENCE_FOR_PART)

    def _write_separately(
        self, groups: Sequence[Sequence[Entry[O]]], patience: float | None
    ) -> BaseException | None:
        for index, group in enumerate(groups):
            left = [entry for other in groups[index + 1 :] for entry in other]
            try:
                error = self._write(group, patience)
            except BaseException as error:
                _fail_entries(left, error)
                raise
            if error is not None and _concerns_everyone(error):
                # The other groups would fail with the same error, after as long a wait.
                return _fail_entries(left, error)
        return None

    def _commit(self, group: Sequence[Entry[O]], patience: float | None) -> Replies:
        operations = [entry.operation for entry in group]
        replies = self._database.transact(
            lambda transaction: self._apply_group(transaction, operations), patience=patience
        )
        return [_read_reply(reply) for reply in replies]

    def _apply_group(self, transaction: Transaction, operations: Sequence[O]) -> Replies:
        replies = self._apply(transaction, operations)
        if len(replies) != len(operations):
            raise RuntimeError(f"{len(operations)} operations got {len(replies)} replies")
        return replies

    def _deliver_replies(self, group: Sequence[Entry[O]], replies: Replies) -> None:
        self.sizes[len(group).bit_length()] += 1
        self.written += len(group)
        try:
            self._on_commit(replies)
        except Exception:
            logger.exception("a hook failed after a commit; the commit stands")
        waiting: list[Callable[[], None]] = []
        writer_thread.callbacks = waiting
        try:
            for entry, reply in zip(group, replies, strict=True):
                entry.deliver(reply)
        finally:
            writer_thread.callbacks = None
            for wake in waiting:
                wake()

    def _fail_all(self) -> None:
        with self._inbox_changed:
            self._closed = True
            left = [*self._waiting, *self._inbox]
            self._waiting.clear()
            self._inbox.clear()
            begun, behind = self._deferred.take_all()
        error = ShuttingDown("the writer stopped before this operation was written")
        _fail_entries([*begun, *(entry for entry in (*behind, *left) if entry.begin())], error)


def _read_reply(reply: object) -> object:
    """Read a reply after the commit, when an error concerns one operation and undoes nothing."""
    if type(reply) is not LateReply:
        return reply
    try:
        return reply.read()
    except UnknownOutcome as error:
        return error
    except Exception as error:  # noqa: BLE001 - the operation is committed, whatever it is
        return UnknownOutcome(f"it was committed, and its reply cannot be read: {error!r}")


def _concerns_everyone(error: BaseException) -> bool:
    """Whether other operations would fail likewise, as when the store is away; not for a lock."""
    away = isinstance(error, StoreGone | StoreUnreachable | UnknownOutcome)
    return away and not isinstance(error, StoreBusy)


def _fail_entries(entries: Sequence[Entry[O]], error: BaseException) -> BaseException:
    for entry in entries:
        entry.deliver(error)
    return error
