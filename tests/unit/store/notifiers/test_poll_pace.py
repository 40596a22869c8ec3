"""How soon a SQLite file is looked at again."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.store.notifiers.poll_pace import (
    FIRST_GAP,
    LONGEST_GAP,
    LONGEST_REST,
    RARER_FACTOR,
    WRITES_WITHOUT_REST,
    Pause,
    PollPace,
)
from holdfast.store.sqlite.foreign_commits import CommitsSeen

NOTHING, OWN, OTHERS = CommitsSeen(), CommitsSeen(own=True), CommitsSeen(others=True)
WRITING = CommitsSeen(own=True, writing=True)
INTERVAL = 0.02


def total(pause: Pause) -> float:
    return pause.rest + pause.wait


def trusting() -> PollPace:
    return PollPace(INTERVAL, trusted=True)


def test_looks_are_seldom_where_nothing_is_written() -> None:
    pace = trusting()
    assert [pace.pause_after(NOTHING, written=False) for _ in range(3)] == [
        Pause(rest=0, wait=LONGEST_GAP)
    ] * 3


def test_after_a_write_looks_follow_each_other_in_pauses_that_double() -> None:
    pace = trusting()
    pauses = [total(pace.pause_after(NOTHING, written=True))]
    pauses += [total(pace.pause_after(NOTHING, written=False)) for _ in range(15)]
    assert pauses[0] == FIRST_GAP
    assert all(
        later == pytest.approx(min(2 * sooner, LONGEST_GAP)) for sooner, later in pairwise(pauses)
    )
    assert pauses[-1] == LONGEST_GAP


def test_a_commit_of_others_is_followed_by_looks_too() -> None:
    # The next one may have been told together with it, and not be there yet.
    pace = trusting()
    pace.pause_after(NOTHING, written=True)
    assert total(pace.pause_after(OTHERS, written=False)) < LONGEST_REST


@pytest.mark.parametrize("side", [OWN, OTHERS])
def test_most_of_the_time_in_which_one_side_alone_writes_on_is_slept_through(
    side: CommitsSeen,
) -> None:
    pace = trusting()
    rests = [pace.pause_after(side, written=True).rest for _ in range(1_000)]
    assert max(rests[:WRITES_WITHOUT_REST]) < 0.001
    assert set(rests[WRITES_WITHOUT_REST + 10 :]) == {LONGEST_REST}


def test_a_side_that_answers_the_other_is_never_kept_waiting() -> None:
    pace = trusting()
    for _ in range(1_000):
        assert pace.pause_after(OTHERS, written=True).rest < 0.001
        assert pace.pause_after(OWN, written=True).rest < 0.001


def test_after_a_silence_the_first_write_is_looked_at_at_once() -> None:
    pace = trusting()
    for _ in range(100):
        pace.pause_after(OWN, written=True)
    for _ in range(20):
        pace.pause_after(NOTHING, written=False)
    assert pace.pause_after(NOTHING, written=True).rest == FIRST_GAP


def test_a_transaction_of_ones_own_is_slept_through_and_then_looked_behind() -> None:
    pace = trusting()
    rests = [pace.pause_after(WRITING, written=True) for _ in range(20)]
    assert rests[0] == Pause(rest=FIRST_GAP, wait=0)
    assert rests[-1] == Pause(rest=LONGEST_REST, wait=0)
    # What was told meanwhile may have been of somebody who went before it.
    assert total(pace.pause_after(NOTHING, written=False)) == FIRST_GAP


def test_a_side_that_was_told_nothing_of_a_commit_looks_often_until_it_is_told() -> None:
    pace = trusting()
    assert pace.pause_after(OTHERS, written=False).wait <= INTERVAL
    for _ in range(10):
        assert pace.pause_after(NOTHING, written=False).wait <= INTERVAL
    # That one's own writes are told proves nothing.
    pace.pause_after(OWN, written=True)
    assert not pace.trusted
    pace.pause_after(NOTHING, written=True)
    pace.pause_after(OTHERS, written=False)
    assert pace.trusted


def test_without_a_watch_looks_are_rarer_when_all_is_quiet() -> None:
    pace = PollPace(INTERVAL, trusted=False)
    waits = [pace.pause_after(NOTHING, written=False).wait for _ in range(100)]
    assert waits[0] == INTERVAL
    assert waits[-1] == INTERVAL * RARER_FACTOR
    assert pace.pause_after(OTHERS, written=False).wait <= INTERVAL
