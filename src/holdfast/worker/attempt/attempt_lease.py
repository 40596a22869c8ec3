"""How long an attempt may act, and how it keeps telling the store of itself until then."""

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

# Said again after one of these it counts once: it was not written, or nobody knows whether it was.
RESENDABLE_ERRORS = (StoreUnreachable, UnknownOutcome)

T = TypeVar("T")
log = logging.getLogger("holdfast.worker")


class AttemptEnded(HoldfastError):
    """The attempt was cancelled or lost its lease: stop, and change nothing more."""


class AttemptLease(Flag):
    """How long an attempt may act: until it is known to be over, or its lease has run out."""

    __slots__ = ("deadline",)

    def __init__(self, deadline: float) -> None:
        self._set = False
        self.deadline = deadline


def send_until_over(send: Callable[[], Future[T]], is_over: Callable[[], bool]) -> Future[T]:
    """The future of what is sent, and sent again while the store is away, until it is `over`.

    Nobody is held up: it is sent again by whoever brings the news.
    """

    def hear(reply: Future[T]) -> None:
        error = reply.exception()
        if not isinstance(error, RESENDABLE_ERRORS):
            settle_future(kept, reply.result)
        elif is_over():
            ended = AttemptEnded(f"the lease ran out before it could be written: {error}")
            ended.__cause__ = error
            if kept.set_running_or_notify_cancel():
                kept.set_exception(ended)
        else:
            # Where it cannot be sent again, what the store said is the better reason.
            with suppress(Exception):
                send().add_done_callback(hear)
                log.warning("what a step has done is not written yet; it is sent again: %s", error)
                return
            settle_future(kept, reply.result)

    sent = send()
    kept: Future[T] = follow_future(sent)
    sent.add_done_callback(hear)
    return kept
