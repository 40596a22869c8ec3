"""Who has nothing else to do writes its own operation, in the place of the writer's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from holdfast.errors import ShuttingDown, WrongThread
from holdfast.store.deadlocks import is_writer_thread, writes_own_operation
from holdfast.store.group_commit.entries import Entry
from tests.unit.store.group_commit.memory_group import Desk, Note

PATIENCE = 30
# As long as somebody who does not wait would need.
MOMENT = 0.2


class Told(Entry[Note]):
    """Remembers which thread has told it what."""

    __slots__ = ("heard", "reply", "thread")

    def __init__(self, *keys: str, error: BaseException | None = None) -> None:
        super().__init__(Note(keys=keys, number=len(keys), error=error))
        self.heard = threading.Event()
        self.thread = ""
        self.reply: object = None

    def on_reply(self, reply: object) -> None:
        self.thread, self.reply = threading.current_thread().name, reply
        self.heard.set()


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    desk.group.start()
    with closing(desk.group):
        while not desk.group._idle:  # noqa: SLF001 - until its thread waits
            pass
        yield desk


def enter(desk: Desk, told: Told) -> None:
    desk.group.enter(told, lambda: None, here=True)


def at_the_commit(desk: Desk, callback: Callable[[], None]) -> None:
    """Call back once, where a group is written and not yet committed."""

    def once() -> None:
        desk.paper.before_commit = lambda: None
        callback()

    desk.paper.before_commit = once


def test_an_operation_is_written_by_the_thread_that_brings_it(desk: Desk) -> None:
    wrote: list[bool] = []
    at_the_commit(desk, lambda: wrote.append(is_writer_thread()))
    told = Told("a")
    enter(desk, told)
    assert (told.thread, told.reply) == (threading.current_thread().name, 1)
    assert wrote == [True]
    assert not is_writer_thread()


def test_a_thread_that_writes_for_others_too_is_not_the_only_one_to_be_told(desk: Desk) -> None:
    alone: list[bool] = []
    at_the_commit(desk, lambda: alone.append(writes_own_operation()))
    enter(desk, Told("a"))
    other = Told("b")
    desk.group._inbox.append(other)  # noqa: SLF001 - brought by somebody before the writer woke
    at_the_commit(desk, lambda: alone.append(writes_own_operation()))
    enter(desk, Told("c"))
    assert other.heard.is_set()
    assert alone == [True, False]
    assert not writes_own_operation()


def test_an_operation_that_comes_meanwhile_is_left_to_the_writers_thread(desk: Desk) -> None:
    second = Told("a", "b")
    # The same thread could not write again inside what it writes, and neither may another.
    at_the_commit(desk, lambda: enter(desk, second))
    enter(desk, Told("a"))
    assert second.heard.wait(PATIENCE)
    assert second.thread == "holdfast-writer"
    assert desk.numbers == [[1], [2]]


def test_another_thread_does_not_write_meanwhile(desk: Desk) -> None:
    second = Told("b", "c")
    other = threading.Thread(target=lambda: enter(desk, second))

    def bring_another() -> None:
        other.start()
        other.join(PATIENCE)
        assert not second.heard.is_set()

    at_the_commit(desk, bring_another)
    enter(desk, Told("a"))
    assert second.heard.wait(PATIENCE)
    assert second.thread == "holdfast-writer"
    assert desk.numbers == [[1], [2]]


def test_closing_waits_for_whoever_writes_and_the_rest_comes_after(desk: Desk) -> None:
    closer = threading.Thread(target=desk.group.close)
    second = Told("b", "c")

    def close() -> None:
        enter(desk, second)
        closer.start()
        closer.join(MOMENT)
        assert closer.is_alive()

    at_the_commit(desk, close)
    enter(desk, Told("a"))
    closer.join(PATIENCE)
    assert second.reply == 2
    assert desk.numbers == [[1], [2]]
    with pytest.raises(ShuttingDown):
        enter(desk, Told("d"))


def test_a_callback_of_a_commit_cannot_wait_for_the_end_of_the_writer(desk: Desk) -> None:
    refused: list[BaseException] = []

    def close() -> None:
        with pytest.raises(WrongThread) as caught:
            desk.group.close()
        refused.append(caught.value)

    desk.hook = close
    enter(desk, Told("a"))
    assert len(refused) == 1


def test_a_thread_that_dies_while_it_writes_leaves_nobody_waiting(desk: Desk) -> None:
    second = Told("a")

    def die() -> None:
        enter(desk, second)
        raise SystemExit

    at_the_commit(desk, die)
    first = Told("a", "b")
    with pytest.raises(SystemExit):
        enter(desk, first)
    assert isinstance(first.reply, SystemExit)
    assert second.heard.wait(PATIENCE)
    assert isinstance(second.reply, ShuttingDown)
    with pytest.raises(ShuttingDown):
        enter(desk, Told("c"))


def test_an_operation_that_finds_its_row_locked_is_left_to_the_writer_to_try_again(
    desk: Desk,
) -> None:
    desk.paper.locked = {"a"}
    told = Told("a")
    enter(desk, told)
    assert not told.heard.is_set()
    desk.paper.locked.clear()
    assert told.heard.wait(PATIENCE)
    assert (told.thread, told.reply) == ("holdfast-writer", 1)
