"""Pages of the whole history: nothing is skipped that commits late, and no gap is kept for ever."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from holdfast.cli.commands.events import follow_all
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.history import MAX_GAPS, Cursor, History
from holdfast.service.service import Service
from tests.contract.raw_store import raw
from tests.contract.task_states import create
from tests.engines import opened

LATE = """
INSERT INTO holdfast_event (entity, version, type, to_status, attempt, generation, actor, at)
VALUES (?, 1, 'task.created', 'queued', 0, 1, 'late', 1)
"""
ENTITY = "t_" + "0" * 20


def _types(history: History, after: str | None) -> tuple[list[str], str]:
    page = history.page(after, limit=1_000)
    return [str(each["actor"]) for each in page["items"]], str(page["next"])


def test_pages_go_on_with_what_comes_later(engine: Engine) -> None:
    history = History(engine.database.view)
    create(engine)
    create(engine)
    first, after = _types(history, None)
    assert first == ["user", "user"]
    assert _types(history, after) == ([], after)
    create(engine)
    assert _types(history, after)[0] == ["user"]
    assert Cursor.read(str(history.latest_cursor())) == history.latest_cursor()


def test_an_event_that_commits_late_is_told_all_the_same(postgres_store_url: str) -> None:
    with opened(postgres_store_url) as engine, raw(postgres_store_url) as other:
        history = History(engine.database.view)
        create(engine)
        other("BEGIN")
        other(LATE, ENTITY)
        create(engine)
        told, after = _types(history, None)
        assert told == ["user", "user"]
        assert "." in after, "the gap is not told"
        assert _types(history, after) == ([], after)
        begun = str(history.latest_cursor())
        watched = history.latest_cursor()
        create(engine)
        other("COMMIT")
        with Service(
            StoreLocation(url=postgres_store_url, home=Path(), may_be_created=True), engine
        ) as service:
            seen = list(islice(follow_all(service, watched), 2))
        assert [each["actor"] for each in seen] == ["late", "user"]
        for cursor in (after, begun):
            told, following = _types(history, cursor)
            assert told == ["late", "user"]
            assert "." not in following
        with raw(postgres_store_url) as cleaned:
            cleaned("DELETE FROM holdfast_event WHERE entity = ?", ENTITY)


def test_a_number_that_was_never_used_is_waited_for_no_longer(postgres_store_url: str) -> None:
    with opened(postgres_store_url) as engine, raw(postgres_store_url) as other:
        history = History(engine.database.view)
        other("BEGIN")
        other(LATE, ENTITY)
        create(engine)
        _, after = _types(history, None)
        assert after.count("-") == 2
        other("ROLLBACK")
        create(engine)
        told, following = _types(history, after)
        assert told == ["user"]
        assert "." not in following


def test_a_short_page_forgets_no_gap_that_it_has_not_read(postgres_store_url: str) -> None:
    with opened(postgres_store_url) as engine, raw(postgres_store_url) as other:
        history = History(engine.database.view)
        other("BEGIN")
        for number in range(3):
            other(LATE, ENTITY[:-1] + str(number))
        create(engine)
        _, after = _types(history, None)
        other("COMMIT")
        told: list[int] = []
        while page := history.page(after, limit=1)["items"]:
            told += [each["seq"] for each in page]
            after = str(history.page(after, limit=1)["next"])
        assert told == [1, 2, 3]
        with raw(postgres_store_url) as cleaned:
            cleaned("DELETE FROM holdfast_event WHERE actor = 'late'")


def test_a_reader_waits_where_one_gap_more_would_have_to_be_forgotten(
    postgres_store_url: str,
) -> None:
    with opened(postgres_store_url) as engine, raw(postgres_store_url) as other:
        history = History(engine.database.view)
        other("BEGIN")
        other(LATE, ENTITY)
        for _ in range(MAX_GAPS + 2):
            other("SELECT nextval('holdfast_event_seq_seq')")
            create(engine)
        _, after = _types(history, None)
        assert len(Cursor.read(after).gaps) == MAX_GAPS
        other("COMMIT")
        told, _ = _types(history, after)
        assert (told[0], len(told)) == ("late", 3)
        with raw(postgres_store_url) as cleaned:
            cleaned("DELETE FROM holdfast_event WHERE entity = ?", ENTITY)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.2", "1.2-3", "1.2-3-4-5", "9" * 30, "1 "])
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Cursor.read(text)
