"""What many threads ask at once is read together, on one connection, and never too early."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.core.shared_reads import SharedReads
from holdfast.engine.core.thread_wakeups import WAKEUPS
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, StoreUnreachable
from holdfast.model.result import Refusal
from holdfast.store.database import Transaction
from tests.contract.task_states import create, take

PATIENCE = 20.0


class Asked:
    """Threads that ask something, and what each of them was told or refused."""

    def __init__(self) -> None:
        self.told: dict[int, Any] = {}
        self._threads: list[threading.Thread] = []

    def ask(self, number: int, call: Callable[[], Any]) -> None:
        def work() -> None:
            try:
                self.told[number] = call()
            except (InvalidInput, StoreUnreachable) as error:
                self.told[number] = error

        thread = threading.Thread(target=work)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        for each in self._threads:
            each.join(PATIENCE)
            assert not each.is_alive()


@contextmanager
def somebody_reading(reads: SharedReads) -> Iterator[None]:
    """A thread that has taken its snapshot, and reads until the block ends."""
    begun, go_on = threading.Event(), threading.Event()

    def read(tx: Transaction) -> None:
        tx.read("now")
        begun.set()
        assert go_on.wait(PATIENCE)

    thread = threading.Thread(target=reads.share, args=(read,))
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield
    finally:
        go_on.set()
        thread.join(PATIENCE)


def wait_until_queued(reads: SharedReads, count: int) -> None:
    deadline = threading.Event()
    for _ in range(2_000):
        if reads.waiting == count:
            return
        deadline.wait(0.01)
    raise AssertionError(f"{reads.waiting} wait, and not {count}")


def test_all_that_ask_while_somebody_reads_are_answered_by_one_read(engine: Engine) -> None:
    reads, asked = SharedReads(engine.database, engine.threads, engine.clock, PATIENCE), Asked()
    groups: list[list[int]] = []

    def read_all(tx: Transaction, numbers: list[int]) -> Sequence[int]:
        assert tx.read("now")
        groups.append(sorted(numbers))
        return [number * 2 for number in numbers]

    with somebody_reading(reads):
        for number in range(9):
            asked.ask(number, lambda number=number: reads.ask(read_all, number))  # type: ignore[misc]
        wait_until_queued(reads, 9)
    asked.join()
    assert groups == [list(range(9))]
    assert asked.told == {number: number * 2 for number in range(9)}


def test_an_error_of_one_question_is_told_to_its_caller_alone(engine: Engine) -> None:
    reads, asked = SharedReads(engine.database, engine.threads, engine.clock, PATIENCE), Asked()

    def read(number: int) -> Callable[[Transaction], int]:
        def look(tx: Transaction) -> int:
            tx.read("now")
            if number == 2:
                raise InvalidInput("number", "is two")
            return number

        return look

    with somebody_reading(reads):
        for number in range(5):
            asked.ask(number, lambda number=number: reads.share(read(number)))  # type: ignore[misc]
        wait_until_queued(reads, 5)
    asked.join()
    assert isinstance(asked.told.pop(2), InvalidInput)
    assert asked.told == {number: number for number in (0, 1, 3, 4)}


def test_an_interrupt_of_who_reads_leaves_the_others_their_turn(engine: Engine) -> None:
    reads, asked = SharedReads(engine.database, engine.threads, engine.clock, PATIENCE), Asked()

    def interrupt(tx: Transaction) -> None:
        tx.read("now")
        asked.ask(1, lambda: reads.share(lambda tx: tx.read("now") != []))
        wait_until_queued(reads, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reads.share(interrupt)
    asked.join()
    assert asked.told == {1: True}


@pytest.mark.parametrize("interrupted", ["before", "after"])
def test_an_interrupt_of_who_has_read_for_others_leaves_nobody_waiting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, interrupted: str
) -> None:
    reads, asked = SharedReads(engine.database, engine.threads, engine.clock, PATIENCE), Asked()
    leading, hand_over = threading.Event(), reads._hand_over  # noqa: SLF001

    def interrupt_hand_over() -> None:
        if threading.current_thread() is not threading.main_thread():
            hand_over()
            return
        leading.set()
        if interrupted == "after":
            hand_over()
        raise KeyboardInterrupt

    def wait_behind_others() -> None:
        if threading.current_thread() is threading.main_thread():
            asked.ask(1, lambda: reads.share(lambda tx: tx.read("now") != []))
            wait_until_queued(reads, 1)

    monkeypatch.setattr(reads, "_hand_over", interrupt_hand_over)
    monkeypatch.setattr(WAKEUPS, "wait_behind_others", wait_behind_others)
    with pytest.raises(KeyboardInterrupt):
        reads.share(lambda tx: tx.read("now"))
    asked.join()
    assert leading.is_set()
    assert asked.told == {1: True}


def test_who_is_asked_about_separately_pays_no_patience_after_the_store_has_gone_away(
    engine: Engine,
) -> None:
    reads, asked = SharedReads(engine.database, engine.threads, engine.clock, PATIENCE), Asked()
    read: list[int] = []

    def read_one(number: int) -> Callable[[Transaction], int]:
        def look(tx: Transaction) -> int:
            tx.read("now")
            read.append(number)
            if len(read) == 1:
                raise InvalidInput("number", "is alone in being wrong")
            raise StoreUnreachable("it went away meanwhile")

        return look

    with somebody_reading(reads):
        for number in range(5):
            asked.ask(number, lambda number=number: reads.share(read_one(number)))  # type: ignore[misc]
        wait_until_queued(reads, 5)
    asked.join()
    assert len(read) == 2
    assert {type(each) for each in asked.told.values()} == {StoreUnreachable}


def test_who_asked_while_a_read_failed_does_not_wait_for_a_second_whole_patience(
    engine: Engine,
) -> None:
    clock = ManualClock(0)
    reads = SharedReads(engine.database, engine.threads, clock, PATIENCE)
    asked = Asked()

    def fail(tx: Transaction) -> None:
        tx.read("now")
        asked.ask(1, lambda: reads.share(lambda tx: tx.read("now") != []))
        wait_until_queued(reads, 1)
        clock.sleep(0.6 * PATIENCE)
        asked.ask(2, lambda: reads.share(lambda tx: tx.read("now") != []))
        wait_until_queued(reads, 2)
        clock.sleep(0.4 * PATIENCE)
        raise StoreUnreachable("it does not answer")

    asked.ask(0, lambda: reads.share(fail))
    asked.join()
    assert asked.told[2] is True
    assert [type(asked.told[each]) for each in (0, 1)] == [StoreUnreachable] * 2


def test_a_guard_after_a_cancel_is_refused_though_somebody_read_before_it(engine: Engine) -> None:
    assignment = take(engine, create(engine))
    asked = Asked()
    with somebody_reading(engine.reads):
        assert engine.tasks.cancel(assignment.task_id).ok
        asked.ask(1, lambda: engine.work.guard(assignment.task_id, assignment.token))
        wait_until_queued(engine.reads, 1)
    asked.join()
    assert asked.told[1].reason is Refusal.CANCELLED


def test_guards_that_are_read_together_are_answered_each_for_its_attempt(engine: Engine) -> None:
    held = [take(engine, create(engine)) for _ in range(6)]
    asked = Asked()
    engine.tasks.cancel(held[4].task_id)
    engine.work.complete(held[5].task_id, held[5].token, {})
    with somebody_reading(engine.reads):
        for number, each in enumerate([*held, held[0]]):
            asked.ask(number, lambda each=each: engine.work.guard(each.task_id, each.token))  # type: ignore[misc]
        asked.ask(7, lambda: engine.work.guard(held[1].task_id, held[0].token))
        wait_until_queued(engine.reads, 8)
    asked.join()
    told = [asked.told[number].reason for number in range(8)]
    refused = [Refusal.CANCELLED, Refusal.ALREADY_TERMINAL]
    assert told == [None] * 4 + refused + [None, Refusal.STALE_TOKEN]


def test_who_is_told_of_a_commit_may_look_at_the_store_though_others_read(engine: Engine) -> None:
    looked: list[int] = []
    leave = engine.on_commit(lambda: looked.append(engine.now()))
    with somebody_reading(engine.reads):
        create(engine)
    leave()
    assert looked
