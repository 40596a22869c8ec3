"""Entries: operations in the queue before the writer, each with the receiver of its reply.

The receiver is mostly a future: of the reply itself, or of a value that is made of the reply.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from holdfast.store.deadlocks import refuse_deadlock

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ReplyFuture(Future[T]):
    """A future of a reply; a thread whose own transaction blocks the writer cannot wait for it."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self.file = file

    def result(self, timeout: float | None = None) -> T:
        self.refuse_to_wait(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.refuse_to_wait(timeout)
        return super().exception(timeout)

    def refuse_to_wait(self, timeout: float | None = None) -> None:
        if self.file is not None and timeout != 0 and not self.done():
            refuse_deadlock("result(…) of what was submitted", self.file)


class LazyReplyFuture(ReplyFuture[Any]):
    """A future whose result is made of the reply by the first thread that asks for the result."""

    def __init__(self, read: Callable[[Any], Any], file: Path | None = None) -> None:
        super().__init__(file)
        self._read = read
        self._making = threading.Lock()
        self._made: tuple[Any, BaseException | None] | None = None

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - whatever is made
        value, error = self._make(super().result(timeout))
        if error is not None:
            raise error
        return value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        error = super().exception(timeout)
        return self._make(super().result())[1] if error is None else error

    def _make(self, reply: object) -> tuple[Any, BaseException | None]:
        with self._making:
            if self._made is None:
                try:
                    self._made = (self._read(reply), None)
                except BaseException as error:  # noqa: BLE001 - it is the caller's to see
                    self._made = (None, error)
        return self._made


def follow_future(future: Future[Any]) -> ReplyFuture[Any]:
    """A future that another future settles; a wait for it is refused as for the other."""
    return ReplyFuture(getattr(future, "file", None))


class QueuedOperation(Protocol):
    @property
    def keys(self) -> Collection[str]:
        """The tasks and runs that the operation is about; a group has one operation for each."""

    @property
    def size(self) -> int:
        """The approximate number of bytes that the operation sends."""


O = TypeVar("O", bound=QueuedOperation)  # noqa: E741 - an operation


class Entry(ABC, Generic[O]):
    """An operation in the queue, and the receiver of its reply or error."""

    __slots__ = ("deferred_since", "operation")

    def __init__(self, operation: O) -> None:
        self.operation = operation
        # The time of the first attempt that failed because another transaction had locked a row.
        self.deferred_since: float | None = None

    @abstractmethod
    def on_reply(self, reply: Any) -> None:  # noqa: ANN401 - whatever the operation is answered
        """Take the reply or the error; the writer's thread calls this, so it must be quick."""

    def begin(self) -> bool:
        """Start the operation; False if its caller has cancelled it."""
        return True

    def deliver(self, reply: object) -> None:
        try:
            self.on_reply(reply)
        except Exception:
            logger.exception("whoever was told of a commit failed; the commit stands")


class FutureEntry(Entry[O]):
    """An entry with a future: of the reply, or of the value that `read` makes of the reply."""

    __slots__ = ("future",)

    def __init__(
        self,
        operation: O,
        read: Callable[[Any], Any] | None = None,
        file: Path | None = None,
    ) -> None:
        super().__init__(operation)
        self.future: Future[Any] = (
            ReplyFuture(file) if read is None else LazyReplyFuture(read, file)
        )

    def begin(self) -> bool:
        return self.future.set_running_or_notify_cancel()

    def on_reply(self, reply: object) -> None:
        if isinstance(reply, BaseException):
            self.future.set_exception(reply)
        else:
            self.future.set_result(reply)


class JointReplies:
    """The replies to several operations, given to one future when the last reply has come."""

    def __init__(self, count: int, file: Path | None = None) -> None:
        self.future: Future[list[Any]] = ReplyFuture(file)
        self._replies: list[Any] = [None] * count
        self._left = count

    def on_reply(self, place: int, reply: object) -> None:
        self._replies[place] = reply
        self._left -= 1
        # A future that was cancelled takes no result.
        if not self._left and self.future.set_running_or_notify_cancel():
            errors = [each for each in self._replies if isinstance(each, BaseException)]
            if errors:
                self.future.set_exception(errors[0])
            else:
                self.future.set_result(self._replies)


class JointEntry(Entry[O]):
    """One of several operations with one future: a future for each costs more than its write."""

    __slots__ = ("_joint_replies", "_place")

    def __init__(self, operation: O, joint_replies: JointReplies, place: int) -> None:
        super().__init__(operation)
        self._joint_replies = joint_replies
        self._place = place

    def on_reply(self, reply: object) -> None:
        self._joint_replies.on_reply(self._place, reply)
