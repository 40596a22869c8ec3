"""Many rows changed by one statement: each told and recorded as if it had been changed alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import StoreError
from holdfast.model.result import Refusal
from holdfast.model.task import NewTask
from holdfast.randomness import SeededRandomness
from holdfast.store.database import Row, Transaction
from holdfast.store.sql_text import queries
from holdfast.store.sqlite import bulk_changes
from holdfast.store.sqlite.database import SqliteDatabase
from tests.contract.raw_store import dump
from tests.contract.task_states import CHAIN, FORK, create, start
from tests.engines import opened

# More than are told with one statement.
COUNT = 2 * bulk_changes.LARGEST_PAGE + 3
LEASE = 30_000_000


class Undone(Exception):
    """Raised to leave nothing behind."""


def fill(engine: Engine, count: int) -> list[str]:
    made = [engine.tasks.create.submit(NewTask(title=f"task {n}")) for n in range(count)]
    return [each.result().id for each in made]


def claim(tx: Transaction, count: int) -> list[Row]:
    return tx.change(
        "claim_tasks",
        agent="default",
        line="[]",
        bare=True,
        tags="[]",
        count=count,
        keys=[],
        peeked=True,
        passed=[],
        worker="worker",
        lease=LEASE,
    )


def warm(engine: Engine) -> None:
    """From now on, what is changed together is told together."""
    assert engine.database.transact(lambda tx: claim(tx, COUNT)) == []


def test_tasks_claimed_together_are_reported_each_by_its_own_attempt(engine: Engine) -> None:
    warm(engine)
    tasks = fill(engine, COUNT)
    held = engine.work.claim("worker", count=COUNT)
    assert [each.task_id for each in held] == tasks
    late = set(tasks[::7])
    for each in held:
        if each.task_id in late:
            assert engine.tasks.cancel(each.task_id).ok
    told = [
        engine.work.complete.submit(each.task_id, each.token, {"n": n, "text": 'a "b" \\ ü\n'})
        for n, each in enumerate(held)
    ]
    for each, answer in zip(held, told, strict=True):
        refused = Refusal.ALREADY_TERMINAL if each.task_id in late else None
        assert answer.result().reason == refused
    for n, each in enumerate(held):
        if each.task_id not in late:
            assert engine.tasks.get(each.task_id).output == {"n": n, "text": 'a "b" \\ ü\n'}


def play(url: str) -> None:
    """The life of many tasks and runs, in groups that hold many of a kind."""
    clock = ManualClock()
    with opened(url, clock=clock, randomness=SeededRandomness(3)) as engine:
        warm(engine)
        runs = [start(engine, each).id for each in (CHAIN, FORK) * 10]
        tasks = fill(engine, 40)
        for number in range(12):
            held = engine.work.claim("worker", count=50)
            reports = [
                engine.work.fail.submit(each.task_id, each.token, "broken", retryable=n % 2 == 0)
                if n % 5 == 4
                else engine.work.complete.submit(each.task_id, each.token, n)
                for n, each in enumerate(held)
            ]
            for report in reports:
                assert report.result().ok
            if number == 3:
                for run in runs[::4]:
                    engine.runs.cancel(run)
                for task in tasks[::9]:
                    engine.tasks.retry(task)
            if number == 6:
                for run in runs:
                    engine.runs.retry(run)
            clock.advance(600)


def history(url: str) -> dict[str, list[Row]]:
    """All that is in a store but its secret, and which events of one group were written first."""
    tables = dump(url)
    del tables["holdfast_meta"]
    events = [{**row, "seq": None} for row in tables["holdfast_event"]]
    return {**tables, "holdfast_event": sorted(events, key=lambda e: (e["entity"], e["version"]))}


@pytest.mark.parametrize("many", [1, 5])
def test_changes_told_together_and_one_by_one_write_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(bulk_changes, "BULK_MINIMUM", 10**9)
    one_by_one, at_once = (f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "many"))
    play(one_by_one)
    monkeypatch.setattr(bulk_changes, "BULK_MINIMUM", many)
    monkeypatch.setattr(bulk_changes, "FIRST_PAGE", 7)
    monkeypatch.setattr(bulk_changes, "LARGEST_PAGE", 7)
    play(at_once)
    written = history(one_by_one)
    assert written == history(at_once)
    assert {row["status"] for row in written["holdfast_task"]} == {"done", "failed"}


def test_rows_of_a_transaction_that_was_rolled_back_are_not_told_again(engine: Engine) -> None:
    warm(engine)
    tasks = fill(engine, COUNT)

    def give_up(tx: Transaction) -> None:
        assert len(claim(tx, COUNT - 1)) == COUNT - 1
        raise Undone

    with pytest.raises(Undone):
        engine.database.transact(give_up)
    first, second = engine.database.transact(
        lambda tx: (claim(tx, bulk_changes.BULK_MINIMUM), claim(tx, bulk_changes.BULK_MINIMUM))
    )
    assert [row["entity"] for row in (*first, *second)] == tasks[: 2 * bulk_changes.BULK_MINIMUM]


def test_a_connection_that_is_opened_again_notes_what_is_changed_too(sqlite_url: str) -> None:
    with opened(sqlite_url) as engine:
        warm(engine)
        tasks = fill(engine, COUNT)
        assert len(engine.work.claim("worker", count=20)) == 20
        assert isinstance(engine.database, SqliteDatabase)
        engine.database._close_writer()  # noqa: SLF001 - as after a COMMIT that failed
        assert [each.task_id for each in engine.work.claim("worker", count=20)] == tasks[20:40]
        writer = engine.database._open_writer()  # noqa: SLF001
        assert writer.execute("SELECT name FROM temp.sqlite_schema").fetchall()


def test_rows_longer_together_than_a_text_may_be_are_told_in_parts(sqlite_url: str) -> None:
    with opened(sqlite_url) as engine:
        warm(engine)
        made = [
            engine.tasks.create.submit(NewTask(title=f"task {n}", payload='"' * 1_000 * (n % 7)))
            for n in range(100)
        ]
        tasks = [each.result().id for each in made]
        assert isinstance(engine.database, SqliteDatabase)
        writer = engine.database._open_writer()  # noqa: SLF001
        writer.limit(apsw.SQLITE_LIMIT_LENGTH, 40_000)
        held = engine.work.claim("worker", count=100)
        assert [each.task_id for each in held] == tasks
        assert [len(each.payload) for each in held] == [1_000 * (n % 7) for n in range(100)]


def test_a_transaction_of_the_application_is_told_of_row_by_row(sqlite_url: str) -> None:
    with opened(sqlite_url) as engine:
        warm(engine)
        (need,) = fill(engine, 1)
        waiting = [create(engine, f"after {n}", needs=[need]) for n in range(20)]
        with engine.database.begin() as connection:
            joined = engine.database.join(connection)
            changed = claim(joined, 1)
            assert [row["entity"] for row in changed] == [need]
            assert joined.change("complete_tasks", rows=[report(changed[0])])
            assert len(joined.change("unblock_dependents", ids=[need] * 20)) == len(waiting)


def report(row: Row) -> tuple[object, ...]:
    return (row["entity"], row["attempt"], "null", "digest", None, False, False)


def test_rows_told_together_are_told_as_text_and_numbers() -> None:
    """A value that is JSON to SQLite would come back taken apart."""
    for query in queries.load("sqlite").values():
        if query.bulk_change is not None:
            assert "json" not in query.bulk_change.read_back.partition("json_array(")[2], query.name
            assert "->" not in query.bulk_change.read_back, query.name


CHANGES: dict[str, Callable[[Engine, str], object]] = {
    "claim": lambda engine, _: engine.work.claim("worker", count=20),
    "hold": lambda engine, task: engine.tasks.hold(task, "paused"),
    "cancel": lambda engine, task: engine.tasks.cancel(task),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_nobody_noted_is_not_written_and_made_the_next_time(
    sqlite_url: str, change: str
) -> None:
    with opened(sqlite_url) as engine:
        warm(engine)
        tasks = fill(engine, 20)
        assert isinstance(engine.database, SqliteDatabase)
        writer = engine.database._open_writer()  # noqa: SLF001
        engine.database.transact(lambda _: None)
        writer.execute("DROP TRIGGER holdfast_task_changed")
        before = dump(sqlite_url)
        with pytest.raises(StoreError):
            CHANGES[change](engine, tasks[0])
        assert dump(sqlite_url) == before
        CHANGES[change](engine, tasks[0])
        assert engine.tasks.get(tasks[0]).version == 2


def test_a_temporary_table_that_was_half_prepared_is_prepared_another_time(sqlite_url: str) -> None:
    with opened(sqlite_url) as engine:
        warm(engine)
        tasks = fill(engine, 20)
        assert isinstance(engine.database, SqliteDatabase)
        engine.database._close_writer()  # noqa: SLF001
        writer = engine.database._open_writer()  # noqa: SLF001
        writer.execute(
            "CREATE TABLE temp.holdfast_changed (place INTEGER PRIMARY KEY, changed_row)"
        )
        assert [each.task_id for each in engine.work.claim("worker", count=20)] == tasks
