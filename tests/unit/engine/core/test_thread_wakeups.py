"""Threads that wait for the writer are woken one after the other, and none is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from holdfast.engine.core import thread_wakeups
from holdfast.engine.core.thread_wakeups import ThreadWaiter, ThreadWakeups, wait_in_thread
from tests.unit.store.group_commit.memory_group import Desk, notes

MANY = 60


class Noted(ThreadWaiter):
    """Notes the order in which waiters are woken."""

    def __init__(self, wakeups: ThreadWakeups, woken: list[ThreadWaiter]) -> None:
        super().__init__(wakeups)
        self._woken = woken

    def wake(self) -> None:
        self._woken.append(self)
        super().wake()


def make_waiters(count: int) -> tuple[ThreadWakeups, Sequence[Noted], list[ThreadWaiter]]:
    wakeups, woken = ThreadWakeups(), list[ThreadWaiter]()
    return wakeups, [Noted(wakeups, woken) for _ in range(count)], woken


def test_each_thread_that_is_woken_wakes_the_next() -> None:
    wakeups, (first, second, third), woken = make_waiters(3)
    wakeups.add(first, second, third)
    assert woken == [first]
    first.wait()
    assert woken == [first, second]
    second.wait()
    assert woken == [first, second, third]


def test_who_comes_while_others_are_being_woken_waits_for_its_turn_in_the_same_chain() -> None:
    wakeups, (first, second, third), woken = make_waiters(3)
    wakeups.add(first, second)
    wakeups.add(third)
    assert woken == [first]
    first.wait()
    second.wait()
    assert woken == [first, second, third]


def test_a_new_chain_begins_when_the_last_one_has_ended() -> None:
    wakeups, (first, second), woken = make_waiters(2)
    wakeups.add(first)
    first.wait()
    wakeups.add(second)
    assert woken == [first, second]


def test_a_thread_that_was_interrupted_is_passed_over() -> None:
    wakeups, (first, left, last), woken = make_waiters(3)
    left.left = True
    wakeups.add(first, left, last)
    first.wait()
    assert woken == [first, left, last]


def test_after_a_fork_a_chain_begins_though_one_was_under_way() -> None:
    wakeups, (first, second), woken = make_waiters(2)
    wakeups.add(first)
    wakeups.clear()
    wakeups.add(second)
    assert woken == [first, second]


def test_an_interrupt_before_a_chain_begins_leaves_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    wakeups, (first, second, third), woken = make_waiters(3)
    with monkeypatch.context() as patched:
        patched.setattr(thread_wakeups, "call_after_replies", interrupt)
        with pytest.raises(KeyboardInterrupt):
            wakeups.add(first, second)
    assert woken == [first]
    first.wait()
    second.wait()
    wakeups.add(third)
    assert woken == [first, second, third]


def test_threads_that_wait_for_one_group_all_hear_of_it() -> None:
    desk = Desk()
    futures = desk.submit(*notes(*map(str, range(MANY))))
    heard: list[int] = []

    def wait(future: Future[Any]) -> None:
        wait_in_thread(future)
        heard.append(future.result(0))

    threads = [threading.Thread(target=wait, args=(each,)) for each in futures]
    for each in threads:
        each.start()
    desk.group.step()
    for each in threads:
        each.join(20)
    assert sorted(heard) == list(range(MANY))


def test_a_reply_that_is_there_already_is_not_waited_for() -> None:
    done: Future[int] = Future()
    done.set_result(1)
    wait_in_thread(done)
