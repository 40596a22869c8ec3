"""A position: whatever order transactions end in, each number is read once and none is skipped."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.bus.position import Hole, Horizon, Position, read_position

ONE_AT_A_TIME = Horizon(oldest=5, next=5)


def test_numbers_without_gaps_leave_no_hole() -> None:
    assert Position().move([1, 2, 3], ONE_AT_A_TIME) == Position(passed=3)
    assert Position(passed=3).move([], ONE_AT_A_TIME) == Position(passed=3)


def test_a_gap_is_a_hole_while_somebody_may_fill_it() -> None:
    moved = Position(passed=1).move([2, 5], Horizon(oldest=7, next=9))
    assert moved == Position(passed=5, holes=(Hole(low=3, high=4, until=9),))
    assert moved.floor == 2
    assert moved.move([], Horizon(oldest=8, next=20)) == moved
    assert moved.move([], Horizon(oldest=9, next=20)) == Position(passed=5)


def test_a_gap_that_nobody_can_fill_any_more_is_none() -> None:
    assert Position(passed=1).move([9], ONE_AT_A_TIME) == Position(passed=9)


def test_a_number_that_comes_late_splits_its_hole() -> None:
    position = Position(passed=9, holes=(Hole(low=3, high=7, until=9),))
    moved = position.move([5, 7, 10], Horizon(oldest=8, next=12))
    assert moved.ranges == [(3, 4), (6, 6)]
    assert {hole.until for hole in moved.holes} == {9}
    assert moved.passed == 10


def test_a_hole_from_another_servers_count_is_noticed_anew() -> None:
    position = Position(passed=9, holes=(Hole(low=3, high=3, until=5_000_000),))
    moved = position.move([], Horizon(oldest=8, next=12))
    assert moved.holes == (Hole(low=3, high=3, until=12),)
    assert moved.move([], Horizon(oldest=12, next=12)) == Position(passed=9)


def test_a_position_is_read_as_it_was_written() -> None:
    position = Position(passed=9, holes=(Hole(low=3, high=3, until=5),))
    assert read_position(9, position.write_holes()) == position


def test_a_position_that_was_rewound_has_no_holes_where_all_is_still_to_come() -> None:
    holes = (Hole(low=3, high=7, until=9), Hole(low=9, high=9, until=9))
    rewound = Position(passed=4, holes=(Hole(low=3, high=4, until=9),))
    assert read_position(4, Position(passed=9, holes=holes).write_holes()) == rewound


class Server:
    """Hands out numbers to transactions, which end in any order, by commit or by rollback."""

    def __init__(self) -> None:
        self.next, self.number = 1, 1
        self.open: dict[int, list[int]] = {}
        self.committed: set[int] = set()

    def act(self, choice: random.Random) -> None:
        action = choice.choice(["begin", "write", "write", "commit", "roll back"])
        if action == "begin" or not self.open:
            self.open[self.next] = []
            self.next += 1
            return
        chosen = choice.choice(sorted(self.open))
        if action == "write":
            self.open[chosen].append(self.number)
            self.number += 1
        else:
            numbers = self.open.pop(chosen)
            self.committed |= set(numbers) if action == "commit" else set()

    def read(self, position: Position, count: int) -> tuple[list[int], Horizon]:
        newer = sorted(each for each in self.committed if each > position.passed)[:count]
        late = [
            each
            for each in sorted(self.committed)
            if any(low <= each <= high for low, high in position.ranges)
        ]
        return late + newer, Horizon(oldest=min(self.open, default=self.next), next=self.next)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 5))
def test_each_number_is_read_once_whatever_order_transactions_end_in(seed: int, count: int) -> None:
    choice, server, position = random.Random(seed), Server(), Position()  # noqa: S311 - repeatable
    read: list[int] = []
    for _ in range(120):
        server.act(choice)
        if choice.random() < 0.5:
            floor = position.floor
            found, horizon = server.read(position, count)
            position = position.move(found, horizon)
            assert all(each > floor for each in found)
            read += found
    server.open.clear()
    while True:
        found, horizon = server.read(position, count)
        position = position.move(found, horizon)
        read += found
        if not found:
            break
    assert sorted(read) == sorted(server.committed)
    assert position.holes == ()
