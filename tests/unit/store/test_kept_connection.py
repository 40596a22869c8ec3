"""Work on a kept connection is done once more after a loss, and not after a wait in vain."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import StoreUnreachable
from holdfast.store.application_connections import KeptConnection
from holdfast.store.connection_pool import ConnectionPool
from holdfast.threads import SystemThreads


class Line:
    """A connection of nothing to nowhere."""

    usable = True


def test_who_found_no_connection_free_does_not_wait_for_one_again() -> None:
    asked = 0

    def open_or_refuse() -> Line:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise StoreUnreachable
        return Line()

    pool = ConnectionPool(
        open_or_refuse,
        close=lambda _: None,
        usable=lambda line: line.usable,
        threads=SystemThreads(),
        clock=SystemClock(),
        most=1,
        patience=1.0,
        what="transactions",
    )
    kept = KeptConnection(
        pool,
        transaction=nullcontext,
        usable=lambda line: line.usable,
        can_commit=lambda line: line.usable,
    )

    def break_line(line: Line) -> None:
        line.usable = False
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        kept.run(break_line)
    assert asked == 2
    with pytest.raises(StoreUnreachable):
        kept.run(break_line)
    assert asked == 3
