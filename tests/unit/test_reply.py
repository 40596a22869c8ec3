"""The future of a reply: nobody who waits, listens or cancels misses that it ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, InvalidStateError, as_completed, wait

import pytest

from holdfast.store.reply import Reply

PATIENCE = 10.0
IN_CHILD = """
import os, threading
from holdfast.store.reply import Reply

def end():
    reply = Reply()
    reply.set_result(1)
    assert reply.result() == 1

with Reply()._condition:
    child = os.fork()
    if not child:
        # The thread that forked holds the lock there too; another could not have it.
        other = threading.Thread(target=end, daemon=True)
        other.start()
        other.join(5)
        os._exit(other.is_alive())
assert os.waitpid(child, 0)[1] == 0
"""


def ended(value: object, read: Callable[[object], object] | None = None) -> Reply:
    reply = Reply(read)
    assert reply.set_running_or_notify_cancel()
    reply.set_result(value)
    return reply


def condition_of(reply: Reply) -> threading.Condition:
    """What the standard library waits with, as it reaches for it."""
    return reply._condition  # noqa: SLF001


def test_a_reply_that_is_there_is_given_to_whoever_asks() -> None:
    reply = ended(1)
    assert (reply.result(), reply.exception(), reply.done()) == (1, None, True)


def test_who_waits_already_hears_of_the_end() -> None:
    reply = Reply()
    heard: list[object] = []
    waiting = threading.Thread(target=lambda: heard.append(reply.result(PATIENCE)))
    waiting.start()
    # Held by whoever looks, so the other waits as soon as it is among the waiters.
    while not getattr(condition_of(reply), "_waiters"):  # noqa: B009 - nothing else tells it
        os.sched_yield()
    reply.set_result("it")
    waiting.join(PATIENCE)
    assert heard == ["it"]


def test_who_begins_to_wait_before_the_end_and_looks_after_it_does_not_wait() -> None:
    reply = Reply()
    condition = condition_of(reply)
    reply.set_result("it")
    with condition:
        assert reply.result(0) == "it"


@pytest.mark.parametrize("late", [False, True])
def test_callbacks_are_called_once_before_or_after_the_end(late: bool) -> None:  # noqa: FBT001
    reply = Reply()
    called: list[object] = []
    if late:
        reply.set_result(1)
    reply.add_done_callback(called.append)
    if not late:
        reply.set_result(1)
    assert called == [reply]


def test_the_standard_ways_to_wait_for_several_take_it() -> None:
    quiet, awaited = ended(1), Reply()
    assert wait([quiet, awaited], timeout=0).not_done == {awaited}
    pending = as_completed([quiet, awaited], timeout=PATIENCE)
    assert next(pending) is quiet
    awaited.set_result(2)
    assert next(pending) is awaited


def test_what_was_cancelled_in_time_is_not_begun() -> None:
    reply = Reply()
    assert reply.cancel()
    assert not reply.set_running_or_notify_cancel()
    with pytest.raises(CancelledError):
        reply.result()
    with pytest.raises(InvalidStateError):
        reply.set_result(1)


def test_what_is_under_way_cannot_be_cancelled() -> None:
    reply = Reply()
    assert reply.set_running_or_notify_cancel()
    assert not reply.cancel()
    reply.set_result(1)
    assert reply.result() == 1


def test_it_ends_once() -> None:
    reply = ended(1)
    with pytest.raises(InvalidStateError):
        reply.set_result(2)
    assert reply.result() == 1


def test_an_error_is_raised_and_nothing_is_made_of_it() -> None:
    reply = Reply(lambda _: pytest.fail("there is nothing to read"))
    reply.set_exception(KeyError("gone"))
    with pytest.raises(KeyError):
        reply.result()
    assert isinstance(reply.exception(), KeyError)


def test_what_is_made_of_it_is_made_once_and_so_is_its_error() -> None:
    made: list[object] = []

    def read(reply: object) -> object:
        made.append(reply)
        raise ValueError(reply)

    reply = ended(1, read)
    for _ in range(2):
        with pytest.raises(ValueError, match="1"):
            reply.result()
    assert isinstance(reply.exception(), ValueError)
    assert made == [1]


def test_a_time_that_is_over_is_said() -> None:
    with pytest.raises(TimeoutError):
        Reply().result(0)


def test_a_child_of_a_fork_is_not_kept_waiting_by_a_thread_of_its_parent() -> None:
    subprocess.run([sys.executable, "-c", IN_CHILD], check=True, timeout=PATIENCE)
