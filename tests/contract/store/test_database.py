"""What every database does: transactions, views, events, names, fork and refusal."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.clock import ManualClock, SystemClock
from holdfast.errors import InvalidInput, StoreError, UnknownOutcome
from holdfast.settings import Settings
from holdfast.store.connection_pool import PoolSizes
from holdfast.store.database import Database, Transaction, sqlite_path
from tests.contract.store.small_store import add, events, notes, opened, tasks, write_in_turns


@pytest.fixture
def database(bare_url: str) -> Iterator[Database]:
    with opened(bare_url) as database:
        yield database


def test_a_view_sees_the_rows_that_a_transaction_wrote(database: Database) -> None:
    changed = add(database, ("t_1", "one"), ("t_2", "two"))
    assert [row["entity"] for row in changed] == ["t_1", "t_2"]
    assert tasks(database) == {"t_1": "one", "t_2": "two"}


def test_every_changed_row_has_one_event_in_the_same_transaction(database: Database) -> None:
    add(database, ("t_1", "one"), ("t_2", "two"))

    def work(transaction: Transaction) -> None:
        rows = [("t_1", "other"), ("t_9", "nobody")]
        assert [row["title"] for row in transaction.change("rename_tasks", rows=rows)] == ["other"]
        transaction.change("remove_tasks", ids=["t_2"])

    database.transact(work)
    found = events(database)
    assert [(row["entity"], row["version"], row["type"]) for row in found] == [
        ("t_1", 1, "task.created"),
        ("t_2", 1, "task.created"),
        ("t_1", 2, "task.queued"),
        ("t_2", 2, "task.deleted"),
    ]
    assert [(row["from_status"], row["to_status"]) for row in found] == [
        (None, "queued"),
        (None, "queued"),
        ("queued", "queued"),
        (None, None),
    ]
    assert found[2]["data"] == '{"title":"other"}'


def test_a_transition_answers_the_same_on_every_database(database: Database) -> None:
    [row] = add(database, ("t_1", "one"))
    assert row.keys() == {
        *("entity", "run_id", "version", "previous", "status", "attempt", "generation"),
        *("changed_by", "changed_at", "type", "data"),
    }


def test_no_row_is_an_answer(database: Database) -> None:
    assert database.transact(lambda t: t.change("rename_tasks", rows=[("t_9", "x")])) == []
    assert database.transact(lambda t: t.change("rename_tasks", rows=[])) == []
    assert database.view(lambda t: t.read("some_tasks", ids=[])) == []
    assert events(database) == []


def test_an_error_of_the_work_rolls_everything_back(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        transaction.change("add_tasks", rows=[("t_1", "one")])
        transaction.run("add_note", text="note")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.transact(work)
    assert (tasks(database), events(database), notes(database)) == ({}, [], [])


def test_a_dry_run_tells_of_an_error_in_a_statement_that_nobody_waited_for(
    database: Database,
) -> None:
    with pytest.raises(StoreError):
        database.dry_run(lambda tx: tx.run("fail", code="P0001"))
    add(database, ("t_1", "one"))


def test_an_error_of_the_database_rolls_everything_back_and_quotes_no_row(
    database: Database,
) -> None:
    # Made here, so that only the row has it and no line of a traceback.
    secret = uuid.uuid4().hex
    add(database, (secret, "one"))
    with pytest.raises(StoreError) as failure:
        add(database, ("t_2", "two"), (secret, "three"))
    assert secret not in "".join(traceback.format_exception(failure.value))
    assert tasks(database) == {secret: "one"}
    assert len(events(database)) == 1


def test_a_statement_nobody_waits_for_still_fails_its_transaction(database: Database) -> None:
    database.transact(lambda t: t.run("add_note", text="once"))

    def last(transaction: Transaction) -> None:
        transaction.change("add_tasks", rows=[("t_1", "one")])
        transaction.run("add_note", text="once")

    def in_between(transaction: Transaction) -> None:
        transaction.run("add_note", text="once")
        transaction.change("add_tasks", rows=[("t_1", "one")])

    for work in (last, in_between):
        with pytest.raises(StoreError, match=r"(?i)unique"):
            database.transact(work)
        assert tasks(database) == {}


def test_a_rule_that_is_checked_at_the_end_fails_the_transaction_for_certain(
    database: Database,
) -> None:
    def add_and_reply(transaction: Transaction) -> None:
        transaction.change("add_tasks", rows=[("t_1", "one")])
        transaction.run("add_reply", text="to nobody")

    with pytest.raises(StoreError, match=r"(?i)foreign key") as failure:
        database.transact(lambda t: t.run("add_reply", text="to nobody"))
    assert not isinstance(failure.value, UnknownOutcome)
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        database.transact(add_and_reply)
    add(database, ("t_2", "two"))
    assert list(tasks(database)) == ["t_2"]


def test_an_error_that_the_work_swallowed_does_not_pass_for_success(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        transaction.change("add_tasks", rows=[("t_1", "one")])
        with suppress(Exception):
            transaction.change("add_tasks", rows=[("t_2", "bad")])

    with pytest.raises(StoreError, match=r"went on after an error|pipeline aborted"):
        database.transact(work)
    assert tasks(database) == {}


def test_a_database_goes_on_after_any_number_of_errors(database: Database) -> None:
    """Prepared statements survive rollbacks, or are made again."""
    for number in range(12):
        identifier = f"t_{number:02}"

        def work(transaction: Transaction, identifier: str = identifier, n: int = number) -> None:
            transaction.read("tasks")
            transaction.run("add_note", text=f"note {identifier}")
            transaction.change("add_tasks", rows=[(identifier, "fine")])
            if n % 3 == 1:
                transaction.run("add_note", text=f"note {identifier}")
            if n % 3 == 2:
                transaction.change("add_tasks", rows=[("t_bad", "bad")])
            transaction.read("some_tasks", ids=[identifier])

        if number % 3:
            with pytest.raises(StoreError, match=r"(?i)unique|check"):
                database.transact(work)
        else:
            database.transact(work)
    assert list(tasks(database)) == ["t_00", "t_03", "t_06", "t_09"]


def test_values_come_back_as_they_went_in(database: Database) -> None:
    text = "' \" \\ % : {rows} \n ☂ 🜲"
    rows = [(text, 2**62, True, 0.5, None), (None, -1, False, None, "")]
    found = database.view(lambda t: t.read("types", rows=rows))
    assert [tuple(row.values()) for row in found] == rows
    [row] = database.view(lambda t: t.read("percent", text=text))
    assert row == {"percent": "100%", "colon": ":no", "brace": "{no}", "text": text}


def test_a_view_is_one_snapshot_whatever_is_written_meanwhile(database: Database) -> None:
    add(database, ("t_1", "one"))

    def look(transaction: Transaction) -> None:
        assert len(transaction.read("tasks")) == 1
        add(database, ("t_2", "two"))
        assert len(transaction.read("tasks")) == 1

    database.view(look)
    assert len(tasks(database)) == 2


def test_a_view_cannot_write(database: Database) -> None:
    with pytest.raises(StoreError):
        database.view(lambda t: t.run("add_note", text="no"))
    assert notes(database) == []


def test_views_run_side_by_side_and_survive_an_error_of_their_work(database: Database) -> None:
    add(database, ("t_1", "one"))
    many = PoolSizes.of(Settings.connections).views
    meeting = threading.Barrier(many, timeout=20)
    found: list[int] = []

    def look() -> None:
        def work(transaction: Transaction) -> int:
            meeting.wait()
            return len(transaction.read("tasks"))

        found.append(database.view(work))

    viewers = [threading.Thread(target=look) for _ in range(many)]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()
    assert found == [1] * many

    def fail(transaction: Transaction) -> None:
        transaction.read("tasks")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.view(fail)
    assert len(tasks(database)) == 1


def test_the_wrong_arguments_are_refused_before_the_database_sees_them(
    database: Database,
) -> None:
    with pytest.raises(TypeError, match="percent"):
        database.view(lambda t: t.read("percent"))
    with pytest.raises(TypeError, match="percent"):
        database.view(lambda t: t.read("percent", text="a", more="b"))
    with pytest.raises(TypeError, match="change"):
        database.transact(lambda t: t.run("add_tasks", rows=[]))
    with pytest.raises(TypeError, match="transition"):
        database.transact(lambda t: t.change("add_note", text="x"))
    with pytest.raises(KeyError):
        database.view(lambda t: t.read("nothing"))


def test_the_database_tells_the_time_of_a_clock_moved_by_hand(bare_url: str) -> None:
    clock = ManualClock(1_000)

    def now(transaction: Transaction) -> int:
        return int(transaction.read("clock")[0]["now"])

    with opened(bare_url, clock=clock) as database:
        assert (database.transact(now), database.view(now)) == (1_000, 1_000)
        clock.advance(1)

        def work(transaction: Transaction) -> tuple[int, int]:
            first = now(transaction)
            clock.advance(1)
            return first, now(transaction)

        assert database.transact(work) == (1_001_000, 2_001_000)
        with pytest.raises(ZeroDivisionError):
            database.transact(lambda t: now(t) / 0)
        clock.set(7)
        assert (database.transact(now), database.view(now)) == (7, 7)


def test_the_database_tells_its_own_time_otherwise(database: Database) -> None:
    before = SystemClock().now()
    [row] = database.view(lambda t: t.read("clock"))
    assert before - 1_000_000 < row["now"] < SystemClock().now() + 1_000_000


def test_processes_that_share_a_store_lose_nothing_of_one_another(bare_url: str) -> None:
    with opened(bare_url):
        pass
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_in_turns, args=(bare_url, 40)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(90)
    assert [writer.exitcode for writer in writers] == [0] * 4
    with opened(bare_url) as database:
        assert len(tasks(database)) == 160
        assert len(events(database)) == 320


FORK = """
import os, sys
from holdfast.errors import StoreError
from tests.contract.store.small_store import add, opened, tasks
with opened(sys.argv[1]) as database:
    add(database, ("t_1", "one"))
    child = os.fork()
    if not child:
        try:
            tasks(database)
        except StoreError as error:
            database.close()
            os._exit(7 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    add(database, ("t_2", "two"))
    assert len(tasks(database)) == 2
"""


def test_a_forked_child_is_refused_and_its_parent_goes_on(bare_url: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, bare_url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, check=True, env=environment, timeout=60)


@pytest.mark.parametrize(
    ("url", "path"),
    [("sqlite:///a/b.db", "a/b.db"), ("sqlite:////a/b.db", "/a/b.db")],
)
def test_a_sqlite_url_is_a_path_from_here_or_from_the_root(url: str, path: str) -> None:
    assert sqlite_path(url) == Path(path)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sqlite://:memory:", "file"),
        ("sqlite:///:memory:", "file"),
        ("sqlite://", "file"),
        ("sqlite:///", "file"),
        ("sqlite://a.db", "sqlite:///file.db"),
        ("sqlite://me:hush@host/db", "sqlite:///file.db"),
        ("mysql://me:hush@host/db", "postgresql://"),
        ("a.db", "sqlite:///"),
        ("postgres//me:hush@h/d", "postgresql://"),
        ("postgresql:/me:hush@host/db", "postgresql://"),
        ("me:hush://host/db", "postgresql://"),
        ("sqlite:///a.db?mode=ro&key=hush", "without ?"),
        ("sqlite:///a.db#hush", "without ? and #"),
        ("postgresql://me:hush@host/db?no=such", "postgresql://"),
        ("postgresql://me:hush%zz@host/db", "postgresql://"),
    ],
)
def test_a_url_that_cannot_work_is_refused_with_a_hint_and_without_its_password(
    url: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as refusal, opened(url):
        pass
    assert hint in refusal.value.reason
    assert "hush" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_a_closed_database_can_be_opened_again(bare_url: str) -> None:
    with opened(bare_url) as database:
        add(database, ("t_1", "one"))
        tasks(database)
    with opened(bare_url) as database:
        assert tasks(database) == {"t_1": "one"}
