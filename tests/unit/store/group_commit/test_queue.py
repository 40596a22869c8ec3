"""Group commit: who is written together, who hears of what, and what a failure costs."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ShuttingDown, StoreUnreachable, UnknownOutcome, WrongThread
from holdfast.store.group_commit.queue import GROUP_BYTES
from tests.unit.store.group_commit.memory_group import Desk, Note, notes


def test_waiting_operations_are_written_as_one_group() -> None:
    desk = Desk()
    futures = desk.submit(*notes("a", "b", "c"))
    assert desk.group.step() == 3
    assert desk.numbers == [[0, 1, 2]]
    assert [future.result(0) for future in futures] == [0, 1, 2]
    assert desk.group.step() == 0


def test_a_group_holds_one_operation_for_a_key_and_keeps_their_order() -> None:
    desk = Desk()
    desk.submit(*notes("a", "b", "a", "c", "a"))
    desk.step_all()
    assert desk.numbers == [[0, 1, 3], [2], [4]]


def test_an_operation_does_not_overtake_one_that_waits_for_another_key() -> None:
    desk = Desk()
    desk.submit(
        Note(keys=("a",), number=0), Note(keys=("a", "b"), number=1), Note(keys=("b",), number=2)
    )
    desk.step_all()
    assert desk.numbers == [[0], [1], [2]]


def test_a_group_has_a_greatest_size() -> None:
    desk = Desk(size=2)
    desk.submit(*notes("a", "b", "c", "d", "e"))
    desk.step_all()
    assert desk.numbers == [[0, 1], [2, 3], [4]]


def test_a_group_ends_where_it_has_enough_bytes_and_nothing_is_too_big_to_be_written() -> None:
    desk = Desk()
    sizes = [GROUP_BYTES - 1, 1, GROUP_BYTES // 2, 3 * GROUP_BYTES, 1]
    desk.submit(*(Note(keys=(str(n),), number=n, size=size) for n, size in enumerate(sizes)))
    desk.step_all()
    assert desk.numbers == [[0, 1], [2, 3], [4]]


@given(st.lists(st.frozensets(st.sampled_from("abcd"), max_size=3), max_size=40), st.integers(1, 5))
def test_every_submitted_operation_is_written_once_in_the_order_of_each_key(
    keys: list[frozenset[str]], size: int
) -> None:
    desk = Desk(size=size)
    desk.submit(*(Note(keys=tuple(each), number=n) for n, each in enumerate(keys)))
    desk.step_all()
    assert sorted(number for group in desk.numbers for number in group) == list(range(len(keys)))
    for written in desk.paper.groups:
        named = [key for note in written for key in note.keys]
        assert len(named) == len(set(named))
        assert len(written) <= size
    for key in "abcd":
        order = [note.number for group in desk.paper.groups for note in group if key in note.keys]
        assert order == sorted(order)


def test_a_culprit_fails_alone_and_the_others_are_written() -> None:
    desk = Desk()
    culprit = Note(keys=("b",), error=ZeroDivisionError())
    first, second, third = desk.submit(Note(keys=("a",), number=1), culprit, Note(keys=("c",)))
    desk.step_all()
    assert (first.result(0), third.result(0)) == (1, 0)
    assert isinstance(second.exception(0), ZeroDivisionError)
    assert desk.numbers == [[1], [0]]


def test_a_refused_operation_hears_its_error_and_its_group_stands() -> None:
    desk = Desk()
    refusal = Note(keys=("a",), refusal=KeyError("no"))
    refused, other = desk.submit(refusal, Note(keys=("b",), number=2))
    desk.group.step()
    assert isinstance(refused.exception(0), KeyError)
    assert other.result(0) == 2
    assert len(desk.paper.groups) == 1


@pytest.mark.parametrize("error", [StoreUnreachable("away"), UnknownOutcome("who knows")])
def test_an_error_of_the_store_is_everyones_and_nothing_is_repeated(error: Exception) -> None:
    desk = Desk()
    tries = []

    def fail() -> None:
        tries.append(1)
        raise error

    desk.paper.before_commit = fail
    futures = desk.submit(*notes("a", "b"))
    desk.group.step()
    assert [future.exception(0) for future in futures] == [error, error]
    assert len(tries) == 1


def test_a_store_that_goes_away_half_way_is_not_awaited_once_per_operation() -> None:
    desk = Desk()
    tries = []

    def fail() -> None:
        tries.append(1)
        if len(tries) == 2:
            raise StoreUnreachable("away")

    desk.paper.before_commit = fail
    culprit = Note(keys=("d",), error=ZeroDivisionError())
    futures = desk.submit(*notes("a", "b", "c"), culprit)
    desk.group.step()
    assert futures[0].result(0) == 0
    assert all(isinstance(future.exception(0), StoreUnreachable) for future in futures[1:])
    assert len(tries) == 2


def test_the_hook_runs_after_the_commit_and_before_anyone_hears() -> None:
    desk = Desk()
    future = desk.submit(Note(keys=("a",), number=5))[0]
    states: list[tuple[int, bool]] = []
    desk.hook = lambda: states.append((len(desk.paper.groups), future.done()))
    desk.group.step()
    assert states == [(1, False)]


def test_a_hook_that_fails_takes_nothing_back(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()

    def fail() -> None:
        raise ZeroDivisionError

    desk.hook = fail
    future = desk.submit(Note(keys=("a",), number=5))[0]
    desk.group.step()
    assert future.result(0) == 5
    assert "the commit stands" in caplog.text


def test_a_result_is_made_once_by_who_asks_for_it_and_so_is_its_error() -> None:
    desk = Desk()
    made: list[object] = []
    kept = desk.group.submit(Note(keys=("a",), number=5), made.append)
    broken = desk.group.submit(Note(keys=("b",), number=0), lambda number: 1 // number)
    refused = desk.group.submit(Note(keys=("c",), refusal=ValueError()), made.append)
    desk.group.step()
    assert kept.done()
    assert made == []
    assert (kept.exception(0), kept.result(0), kept.result(0)) == (None, None, None)
    assert made == [5]
    assert isinstance(broken.exception(0), ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        broken.result(0)
    assert isinstance(refused.exception(0), ValueError)


def test_nobody_is_told_of_a_commit_that_failed() -> None:
    desk = Desk()
    desk.submit(Note(keys=("a",), error=ZeroDivisionError()))
    desk.group.step()
    assert desk.seen == []


def test_too_few_replies_are_an_error_and_not_a_success() -> None:
    desk = Desk()
    desk.group._apply = lambda *_: []  # noqa: SLF001
    future = desk.submit(Note(keys=("a",)))[0]
    desk.group.step()
    assert isinstance(future.exception(0), RuntimeError)
    assert desk.paper.groups == []


def test_a_cancelled_operation_is_never_written() -> None:
    desk = Desk()
    first, second = desk.submit(*notes("a", "b"))
    assert first.cancel()
    desk.group.step()
    assert desk.numbers == [[1]]
    assert not second.cancel()


def test_closing_writes_what_is_waiting_and_takes_no_more() -> None:
    desk = Desk()
    futures = desk.submit(*notes("a", "a", "b"))
    desk.group.start()
    desk.group.close()
    assert [future.result(0) for future in futures] == [0, 1, 2]
    with pytest.raises(ShuttingDown):
        desk.submit(Note(keys=("c",)))


def test_closing_without_the_writers_thread_writes_waiting_operations_too() -> None:
    desk = Desk()
    futures = desk.submit(*notes("a", "a"))
    desk.group.close()
    assert [future.result(0) for future in futures] == [0, 1]


def test_a_callback_of_a_commit_cannot_wait_for_the_end_of_the_writer() -> None:
    desk = Desk()
    refused: list[WrongThread] = []

    def close() -> None:
        with pytest.raises(WrongThread) as caught:
            desk.group.close()
        refused.append(caught.value)

    desk.hook = close
    desk.group.start()
    assert desk.submit(Note(keys=("a",), number=1))[0].result(10) == 1
    desk.group.close()
    assert len(refused) == 1


def test_operations_that_arrive_during_a_commit_form_the_next_group() -> None:
    desk = Desk()
    committing, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        committing.set()
        assert go_on.wait(10)

    desk.paper.before_commit = wait
    desk.group.start()
    first = desk.submit(Note(keys=("a",), number=0))[0]
    assert committing.wait(10)
    later = desk.submit(Note(keys=("b",), number=1)) + desk.submit(Note(keys=("c",), number=2))
    assert not first.done()
    go_on.set()
    assert [future.result(10) for future in (first, *later)] == [0, 1, 2]
    desk.group.close()
    assert desk.numbers == [[0], [1, 2]]


def test_a_writer_that_dies_leaves_nobody_waiting() -> None:
    desk = Desk()
    futures = desk.submit(Note(keys=("a",), error=SystemExit()), *notes("a", "b"))
    with pytest.raises(SystemExit):
        desk.group._loop()  # noqa: SLF001 - here, so that what ends it can be seen
    errors = [future.exception(0) for future in futures]
    assert [type(error) for error in errors] == [SystemExit, ShuttingDown, SystemExit]
    with pytest.raises(ShuttingDown):
        desk.submit(Note(keys=("c",)))


def test_several_operations_have_one_future_of_their_replies_in_order() -> None:
    desk = Desk()
    asked = desk.group.submit_all(notes("a", "b", "a"))
    desk.group.step()
    assert not asked.done()
    desk.step_all()
    assert asked.result(0) == [0, 1, 2]
    assert desk.group.submit_all([]).result(0) == []


def test_the_first_error_of_several_is_told_after_all_of_them_were_written() -> None:
    desk = Desk()
    first, second = RuntimeError("first"), RuntimeError("second")
    asked = desk.group.submit_all(
        [
            Note(keys=("a",), number=1),
            Note(keys=("b",), refusal=first),
            Note(keys=("b",), error=second),
            Note(keys=("c",), number=2),
        ]
    )
    desk.group.step()
    assert not asked.done()
    desk.step_all()
    assert asked.exception(0) is first
    assert desk.numbers == [[1, 0, 2]]


def test_several_operations_that_nobody_waits_for_any_more_are_written_all_the_same() -> None:
    desk = Desk()
    asked = desk.group.submit_all(notes("a", "b"))
    assert asked.cancel()
    desk.step_all()
    assert desk.numbers == [[0, 1]]
