"""How soon a SQLite file is looked at again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.store.notifiers.poll_pace import FIRST, FREE, LONGEST_REST, RARER, SELDOM, Pace, Pause
from holdfast.store.sqlite.foreign_commits import Seen

NOTHING, OWN, OTHERS = Seen(), Seen(own=True), Seen(others=True)
WRITING = Seen(own=True, writing=True)
INTERVAL = 0.02


def total(pause: Pause) -> float:
    return pause.rest + pause.wait


def trusting() -> Pace:
    return Pace(INTERVAL, trusted=True)


def test_looks_are_seldom_where_nothing_is_written() -> None:
    pace = trusting()
    assert [pace.after(NOTHING, written=False) for _ in range(3)] == [
        Pause(rest=0, wait=SELDOM)
    ] * 3


def test_after_a_write_looks_follow_each_other_in_pauses_that_double() -> None:
    pace = trusting()
    pauses = [total(pace.after(NOTHING, written=True))]
    pauses += [total(pace.after(NOTHING, written=False)) for _ in range(15)]
    assert pauses[0] == FIRST
    assert all(
        later == pytest.approx(min(2 * sooner, SELDOM)) for sooner, later in pairwise(pauses)
    )
    assert pauses[-1] == SELDOM


def test_a_commit_of_others_is_followed_by_looks_too() -> None:
    # The next one may have been told together with it, and not be there yet.
    pace = trusting()
    pace.after(NOTHING, written=True)
    assert total(pace.after(OTHERS, written=False)) < LONGEST_REST


@pytest.mark.parametrize("side", [OWN, OTHERS])
def test_most_of_the_time_in_which_one_side_alone_writes_on_is_slept_through(side: Seen) -> None:
    pace = trusting()
    rests = [pace.after(side, written=True).rest for _ in range(1_000)]
    assert max(rests[:FREE]) < 0.001
    assert set(rests[FREE + 10 :]) == {LONGEST_REST}


def test_a_side_that_answers_the_other_is_never_kept_waiting() -> None:
    pace = trusting()
    for _ in range(1_000):
        assert pace.after(OTHERS, written=True).rest < 0.001
        assert pace.after(OWN, written=True).rest < 0.001


def test_after_a_silence_the_first_write_is_looked_at_at_once() -> None:
    pace = trusting()
    for _ in range(100):
        pace.after(OWN, written=True)
    for _ in range(20):
        pace.after(NOTHING, written=False)
    assert pace.after(NOTHING, written=True).rest == FIRST


def test_a_transaction_of_ones_own_is_slept_through_and_then_looked_behind() -> None:
    pace = trusting()
    rests = [pace.after(WRITING, written=True) for _ in range(20)]
    assert rests[0] == Pause(rest=FIRST, wait=0)
    assert rests[-1] == Pause(rest=LONGEST_REST, wait=0)
    # What was told meanwhile may have been of somebody who went before it.
    assert total(pace.after(NOTHING, written=False)) == FIRST


def test_a_side_that_was_told_nothing_of_a_commit_looks_often_until_it_is_told() -> None:
    pace = trusting()
    assert pace.after(OTHERS, written=False).wait <= INTERVAL
    for _ in range(10):
        assert pace.after(NOTHING, written=False).wait <= INTERVAL
    # That one's own writes are told proves nothing.
    pace.after(OWN, written=True)
    assert not pace.trusted
    pace.after(NOTHING, written=True)
    pace.after(OTHERS, written=False)
    assert pace.trusted


def test_without_a_watch_looks_are_rarer_when_all_is_quiet() -> None:
    pace = Pace(INTERVAL, trusted=False)
    waits = [pace.after(NOTHING, written=False).wait for _ in range(100)]
    assert waits[0] == INTERVAL
    assert waits[-1] == INTERVAL * RARER
    assert pace.after(OTHERS, written=False).wait <= INTERVAL
