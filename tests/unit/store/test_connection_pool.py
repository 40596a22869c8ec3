"""A pool never has more connections than it may, and serves those who wait in their order."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreUnreachable
from holdfast.store.connection_pool import LONG_WAIT, ConnectionPool, PoolSizes
from holdfast.threads import SystemThreads, ThreadEvent


class Line:
    """A connection of nothing to nowhere."""

    usable = True
    closed = False


class NotedThreads(SystemThreads):
    """Tells whenever a thread is about to wait for its turn."""

    def __init__(self) -> None:
        self.queued = threading.Semaphore(0)

    def event(self) -> ThreadEvent:
        queued = self.queued

        class Noted(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                queued.release()
                return super().wait(timeout)

        return Noted()


class Bench:
    """A pool, and what it has opened."""

    def __init__(self, most: int, patience: float = 20.0) -> None:
        self.opened: list[Line] = []
        self.threads = NotedThreads()
        self.connect: Callable[[], Line] = Line
        self.pool = ConnectionPool(
            self._open,
            close=lambda line: setattr(line, "closed", True),
            usable=lambda line: line.usable,
            threads=self.threads,
            clock=SystemClock(),
            most=most,
            patience=patience,
            what="views",
        )

    def _open(self) -> Line:
        line = self.connect()
        self.opened.append(line)
        return line

    @property
    def open(self) -> int:
        return sum(not line.closed for line in self.opened)

    def wait_in_thread(self, got: list[Any], name: str) -> threading.Thread:
        """A thread that waits in the queue, takes its connection and gives it back."""

        def work() -> None:
            with self.pool.borrow() as line:
                got.append((name, line))

        thread = threading.Thread(target=work)
        thread.start()
        assert self.threads.queued.acquire(timeout=20)
        return thread


def test_a_connection_is_used_again_and_no_second_one_is_opened() -> None:
    bench = Bench(3)
    for _ in range(5):
        with bench.pool.borrow():
            pass
    assert len(bench.opened) == 1


def test_who_waits_is_served_in_the_order_of_coming() -> None:
    bench = Bench(1)
    got: list[Any] = []
    first = bench.pool.take()
    threads = [bench.wait_in_thread(got, name) for name in "abcde"]
    bench.pool.give_back(first)
    for each in threads:
        each.join(20)
    assert got == [(name, first) for name in "abcde"]
    assert len(bench.opened) == 1


def test_a_connection_that_broke_gives_its_place_to_the_next() -> None:
    bench = Bench(1)
    got: list[Any] = []
    first = bench.pool.take()
    thread = bench.wait_in_thread(got, "a")
    first.usable = False
    bench.pool.give_back(first)
    thread.join(20)
    assert first.closed
    assert got == [("a", bench.opened[1])]
    assert bench.open == 1


def test_a_connection_that_could_not_be_opened_leaves_its_place() -> None:
    bench = Bench(1)

    def refuse() -> Line:
        raise ZeroDivisionError

    bench.connect = refuse
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            bench.pool.take()
    bench.connect = Line
    assert bench.pool.take() is bench.opened[0]


def test_who_waits_longer_than_the_patience_is_told_what_to_set() -> None:
    bench = Bench(2, patience=0.01)
    held = [bench.pool.take(), bench.pool.take()]
    with pytest.raises(StoreUnreachable, match=r"all 2 connections for views.*`connections`"):
        bench.pool.take()
    for each in held:
        bench.pool.give_back(each)
    assert bench.pool.take() in held


def test_a_long_wait_is_logged_once_with_how_many_wait(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(1, patience=LONG_WAIT + 0.05)
    bench.pool.take()
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnreachable):
        bench.pool.take()
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnreachable):
        bench.pool.take()
    (line,) = caplog.messages
    assert line.startswith("all 1 connections for views of this process are in use: 1 threads")


def test_a_fresh_connection_takes_the_place_of_an_idle_one_and_is_not_kept() -> None:
    bench = Bench(1)
    kept = bench.pool.take()
    bench.pool.give_back(kept)
    fresh = bench.pool.take(fresh=True)
    assert (fresh is kept, kept.closed, bench.open) == (False, True, 1)
    bench.pool.give_back(fresh, keep=False)
    assert bench.open == 0


def test_what_one_borrower_had_is_given_to_nobody_else_but_replaced() -> None:
    bench = Bench(1)
    lent = bench.pool.take(borrower="consumer")
    bench.pool.give_back(lent)
    assert bench.pool.take(borrower="consumer") is lent
    bench.pool.give_back(lent)
    other = bench.pool.take()
    assert (other is lent, lent.closed, bench.open) == (False, True, 1)
    bench.pool.give_back(other)
    assert bench.pool.take(borrower="consumer") is other
    bench.pool.give_back(other)
    assert bench.pool.take(borrower="another") is not other
    assert (other.closed, bench.open) == (True, 1)


def test_who_waited_gets_a_new_connection_in_place_of_a_borrowers() -> None:
    bench = Bench(1)
    got: list[Any] = []
    lent = bench.pool.take(borrower="consumer")
    thread = bench.wait_in_thread(got, "a")
    bench.pool.give_back(lent)
    thread.join(20)
    assert lent.closed
    assert got == [("a", bench.opened[1])]
    assert bench.open == 1


def test_discarded_connections_make_room_for_new_ones() -> None:
    bench = Bench(2)
    for each in [bench.pool.take(), bench.pool.take()]:
        bench.pool.give_back(each)
    bench.pool.discard()
    assert bench.open == 0
    assert len({id(bench.pool.take()), id(bench.pool.take())}) == 2
    assert bench.open == 2


def test_a_closed_pool_keeps_nothing_that_comes_back() -> None:
    bench = Bench(2)
    late = bench.pool.take()
    bench.pool.close()
    bench.pool.give_back(late)
    assert bench.open == 0


@pytest.mark.parametrize(
    ("connections", "views", "transactions"), [(4, 1, 1), (5, 2, 1), (8, 3, 3), (11, 5, 4)]
)
def test_views_and_transactions_share_what_the_writer_and_the_listener_leave(
    connections: int, views: int, transactions: int
) -> None:
    assert PoolSizes.of(connections) == PoolSizes(views=views, transactions=transactions)
