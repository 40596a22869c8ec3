"""Statements that are sent before their turn: either their answers stand, or nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from holdfast.clock import ManualClock
from holdfast.store.database import Database, Transaction
from holdfast.store.sql_text.queries import Rows
from tests.contract.store.small_store import add, events, opened, tasks

RENAMED: Rows = [("t_1", "uno")]


@pytest.fixture
def database(bare_url: str) -> Iterator[Database]:
    with opened(bare_url) as database:
        add(database, ("t_1", "one"))
        yield database


def counted(database: Database, work: Callable[[Transaction], object]) -> int:
    """How often a transaction is run."""
    tries: list[Transaction] = []

    def attempt(tx: Transaction) -> None:
        tries.append(tx)
        work(tx)

    database.transact(attempt)
    return len(tries)


def test_a_statement_that_was_sent_ahead_is_carried_out_once(database: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.send_ahead("rename_tasks", rows=RENAMED)
        tx.send_ahead("rename_tasks", rows=RENAMED)
        (row,) = tx.change("rename_tasks", rows=RENAMED)
        assert row["title"] == "uno"

    assert counted(database, work) == 1
    assert tasks(database) == {"t_1": "uno"}
    assert len(events(database)) == 2


def test_a_change_that_was_sent_ahead_and_not_asked_for_is_undone(
    database: Database, bare_url: str
) -> None:
    tries = counted(database, lambda tx: tx.send_ahead("rename_tasks", rows=RENAMED))
    assert tries == (1 if bare_url.startswith("sqlite") else 2)
    assert tasks(database) == {"t_1": "one"}
    assert len(events(database)) == 1


def test_nobody_sleeps_before_the_try_that_follows_a_wrong_expectation(bare_url: str) -> None:
    clock = ManualClock()
    with opened(bare_url, clock=clock) as database:
        add(database, ("t_1", "one"))
        before = clock.monotonic()
        tries = counted(database, lambda tx: tx.send_ahead("rename_tasks", rows=RENAMED))
        assert tries == (1 if bare_url.startswith("sqlite") else 2)
        assert clock.monotonic() == before


def test_a_statement_that_was_sent_ahead_and_changed_nothing_need_not_be_asked_for(
    database: Database,
) -> None:
    assert counted(database, lambda tx: tx.send_ahead("rename_tasks", rows=[("t_9", "?")])) == 1
    assert counted(database, lambda tx: tx.send_ahead("tasks")) == 1
    assert len(events(database)) == 1


def test_what_was_read_ahead_of_a_write_is_read_again_after_it(database: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.send_ahead("tasks")
        tx.change("rename_tasks", rows=RENAMED)
        (row,) = tx.read("tasks")
        assert row["title"] == "uno"

    assert counted(database, work) == 1


def test_a_change_that_was_sent_ahead_of_another_write_is_undone_and_made_after_it(
    database: Database, bare_url: str
) -> None:
    def work(tx: Transaction) -> None:
        tx.send_ahead("rename_tasks", rows=RENAMED)
        tx.change("add_tasks", rows=[("t_2", "two")])
        tx.change("rename_tasks", rows=RENAMED)

    assert counted(database, work) == (1 if bare_url.startswith("sqlite") else 2)
    assert tasks(database) == {"t_1": "uno", "t_2": "two"}
    assert [event["type"] for event in events(database)][1:] == ["task.created", "task.queued"]


def test_a_late_read_sees_the_transaction_and_is_answered_after_it(database: Database) -> None:
    def work(tx: Transaction) -> Callable[[], list[dict[str, object]]]:
        tx.change("rename_tasks", rows=RENAMED)
        return tx.read_late("tasks")

    (row,) = database.transact(work)()
    assert row["title"] == "uno"
