"""What finds its rows locked by another transaction waits, and nobody else with it."""

from __future__ import annotations

from itertools import chain

import pytest

from holdfast.errors import StoreBusy
from tests.unit.paper import Desk, Note, notes


def test_who_finds_its_row_locked_is_put_aside_and_those_behind_it_wait_with_it() -> None:
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


def test_only_the_first_who_finds_a_row_locked_is_waited_for() -> None:
    desk = Desk()
    desk.paper.locked = {"h"}
    desk.submit(*notes(*"abcdefgh"))
    desk.step_all()
    desk.submit(*notes("i"))
    desk.step_all()
    assert desk.paper.hurried == [False, *[True] * 7]
    assert len(desk.numbers) == 4


def test_few_of_many_whose_rows_are_locked_are_tried_at_a_time_and_each_in_its_turn() -> None:
    desk = Desk()
    desk.paper.locked = set("abcdefgh")
    *_, last = desk.submit(*notes(*"abcdefgh"))
    desk.step_all()
    desk.paper.locked.remove("h")
    for times in (3, 3, 4):
        before = len(desk.paper.hurried)
        desk.clock.advance(1)
        assert desk.group.step() == len(desk.paper.hurried) - before == times
    assert last.result(0) == 7
    desk.paper.locked.clear()
    desk.step_all()
    assert sorted(chain(*desk.numbers)) == list(range(8))


def test_who_has_waited_long_enough_for_a_row_is_told_and_who_follows_is_written() -> None:
    desk = Desk()
    desk.paper.locked = {"a"}
    first, second = desk.submit(Note(keys=("a",)), Note(keys=("a", "b"), number=1))
    desk.step_all()
    desk.clock.advance(9.5)
    desk.step_all()
    assert not first.done()
    desk.clock.advance(0.5)
    desk.step_all()
    assert isinstance(first.exception(0), StoreBusy)
    desk.paper.locked.clear()
    desk.clock.advance(1)
    desk.step_all()
    assert second.result(0) == 1


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
