"""What finds its rows locked by another transaction waits, and nobody else with it."""

from __future__ import annotations

from itertools import chain

import pytest

from holdfast.errors import StoreBusy
from holdfast.store.group_commit.queue import PATIENCE_FOR_PART, PATIENCE_WHILE_DEFERRED
from tests.unit.store.group_commit.memory_group import Desk, Note, notes


def test_an_operation_on_a_locked_row_is_put_aside_and_those_behind_it_wait_with_it() -> None:
    desk = Desk()
    desk.paper.locked = {"b"}
    futures = desk.submit(*notes("a", "b", "c", "b"), Note(keys=("b", "d"), number=4))
    desk.step_all()
    desk.submit(Note(keys=("d",), number=5), Note(keys=("e",), number=6))
    desk.step_all()
    assert sorted(chain(*desk.numbers)) == [0, 2, 6]
    assert [future.done() for future in futures] == [True, False, True, False, False]
    desk.paper.locked.clear()
    desk.clock.advance(1)
    desk.step_all()
    assert [*chain(*desk.numbers)][3:] == [1, 3, 4, 5]
    assert [future.result(0) for future in futures] == [0, 1, 2, 3, 4]


def test_only_the_first_operation_that_finds_a_row_locked_is_waited_for() -> None:
    desk = Desk()
    desk.paper.locked = {"h"}
    desk.submit(*notes(*"abcdefgh"))
    desk.step_all()
    desk.submit(*notes("i"))
    desk.step_all()
    assert desk.paper.patience == [None, *[PATIENCE_FOR_PART] * 6, PATIENCE_WHILE_DEFERRED]
    assert len(desk.numbers) == 4


def test_few_of_many_operations_on_locked_rows_are_tried_at_a_time_and_each_in_its_turn() -> None:
    desk = Desk()
    desk.paper.locked = set("abcdefgh")
    *_, last = desk.submit(*notes(*"abcdefgh"))
    desk.step_all()
    desk.paper.locked.remove("h")
    for times in (3, 3, 4):
        before = len(desk.paper.patience)
        desk.clock.advance(0.1)
        assert desk.group.step() == len(desk.paper.patience) - before == times
    assert last.result(0) == 7
    desk.paper.locked.clear()
    desk.step_all()
    assert sorted(chain(*desk.numbers)) == list(range(8))


def test_an_operation_that_waited_long_enough_is_told_and_the_next_is_written() -> None:
    desk = Desk()
    desk.paper.locked = {"a"}
    (first,) = desk.submit(*notes("a"))
    desk.step_all()
    desk.clock.advance(9.5)
    (second,) = desk.submit(Note(keys=("a", "b"), number=1))
    desk.step_all()
    assert not first.done()
    desk.clock.advance(0.5)
    desk.step_all()
    assert isinstance(first.exception(0), StoreBusy)
    desk.paper.locked.clear()
    desk.clock.advance(1)
    desk.step_all()
    assert second.result(0) == 1


def test_an_operation_that_has_waited_for_longer_stays_longer_in_line_for_a_row() -> None:
    desk = Desk()
    desk.paper.locked = {"a"}
    desk.submit(*notes("a"))
    desk.step_all()
    waited = []
    for _ in range(4):
        desk.clock.advance(2.4)
        desk.step_all()
        waited.append(desk.paper.patience[-1])
    assert waited == [pytest.approx(each) for each in (0.12, 0.24, 0.25, 0.25)]


def test_every_operation_is_told_in_time_however_many_wait() -> None:
    desk = Desk()
    names = [str(number) for number in range(100)]
    desk.paper.locked = set(names)
    futures = desk.submit(*notes(*names))
    desk.step_all()
    desk.clock.advance(10)
    desk.group.step()
    assert all(isinstance(future.exception(0), StoreBusy) for future in futures)


def test_an_operation_behind_another_has_waited_as_long_when_it_comes_to_its_turn() -> None:
    desk = Desk()
    desk.paper.locked = {"a"}
    futures = desk.submit(*notes(*"a" * 20))
    desk.step_all()
    begin = desk.clock.monotonic()
    desk.group.close()
    assert all(isinstance(future.exception(0), StoreBusy) for future in futures)
    assert desk.clock.monotonic() - begin < 11


def test_an_operation_behind_one_of_its_own_group_keeps_its_place_before_those_aside() -> None:
    desk = Desk()
    desk.paper.locked = {"k"}
    desk.submit(*notes("k"))
    desk.step_all()
    keys = (("a",), ("a", "b"), ("k", "b"), ("b",))
    desk.submit(*(Note(keys=each, number=number) for number, each in enumerate(keys, start=1)))
    desk.step_all()
    desk.paper.locked.clear()
    desk.clock.advance(1)
    desk.step_all()
    assert [*chain(*desk.numbers)] == [1, 2, 0, 3, 4]


def test_an_interruption_while_a_group_is_parted_is_told_to_all_of_it() -> None:
    desk = Desk()
    desk.paper.locked = {"d"}
    interrupted = Note(keys=("c",), error=KeyboardInterrupt())
    _, *others = desk.submit(*notes("d"), interrupted, *notes("a", "b"))
    with pytest.raises(KeyboardInterrupt):
        desk.group.step()
    assert all(isinstance(each.exception(0), KeyboardInterrupt) for each in others)


@pytest.mark.parametrize("free", [True, False])
def test_closing_waits_for_what_was_put_aside(*, free: bool) -> None:
    desk = Desk()
    desk.paper.locked = {"a"}
    first, second = desk.submit(*notes("a", "a"))
    desk.step_all()
    if free:
        desk.paper.locked.clear()
    desk.group.close()
    assert [future.exception(0) is None for future in (first, second)] == [free, free]


def test_a_thread_tries_again_what_was_put_aside_though_nobody_asks() -> None:
    desk = Desk()
    desk.paper.locked = {"a"}
    (future,) = desk.submit(*notes("a"))
    desk.group.start()
    assert desk.submit(*notes("b"))[0].result(20) == 0
    desk.paper.locked.clear()
    assert future.result(20) == 0
    desk.group.close()
