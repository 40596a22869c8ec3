"""Attempt leases: how long an attempt may act, and how what it sends is repeated until then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from holdfast.engine.core.sync_async import settle_future
from holdfast.errors import HoldfastError, StoreUnreachable, UnknownOutcome
from holdfast.store.group_commit.entries import follow_future
from holdfast.threads import Flag

# After these errors an operation was not written, or nobody knows whether it was. An operation that
# is sent again counts once.
RESENDABLE_ERRORS = (StoreUnreachable, UnknownOutcome)

T = TypeVar("T")
log = logging.getLogger("holdfast.worker")


class AttemptEnded(HoldfastError):
    """The attempt was cancelled or lost its lease: stop, and change nothing more."""


class AttemptLease(Flag):
    """An attempt may act until this flag is set, or until its deadline has passed."""

    __slots__ = ("deadline",)

    def __init__(self, deadline: float) -> None:
        self._set = False
        self.deadline = deadline


def send_until_over(send: Callable[[], Future[T]], is_over: Callable[[], bool]) -> Future[T]:
    """Send an operation, and send it again while the store is away, until the attempt is over.

    No thread waits: the thread that brings the error sends the operation again.
    """

    def on_reply(reply: Future[T]) -> None:
        error = reply.exception()
        if not isinstance(error, RESENDABLE_ERRORS):
            settle_future(kept, reply.result)
        elif is_over():
            ended = AttemptEnded(f"the lease ran out before it could be written: {error}")
            ended.__cause__ = error
            if kept.set_running_or_notify_cancel():
                kept.set_exception(ended)
        else:
            # If it cannot be sent again, the store's error is the better reason.
            with suppress(Exception):
                send().add_done_callback(on_reply)
                log.warning("what a step has done is not written yet; it is sent again: %s", error)
                return
            settle_future(kept, reply.result)

    sent = send()
    kept: Future[T] = follow_future(sent)
    sent.add_done_callback(on_reply)
    return kept
