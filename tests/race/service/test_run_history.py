"""Pages of a run's events against who writes one and has not committed it; on PostgreSQL.

On SQLite writers take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.cli.render.live_view import watch_run
from holdfast.engine.core.operation import CancelRun
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries import run_history
from holdfast.service.queries.queries import Queries
from holdfast.service.service import Service
from holdfast.store.database import Transaction
from tests.race.explorer import Stage, staged
from tests.race.racers import COMMIT, Stopped

SIDE_BY_SIDE = (Step(id="a"), Step(id="b"))


@pytest.fixture
def server(postgres_store_url: str) -> Iterator[Stage]:
    with staged(postgres_store_url) as stage:
        yield stage


class Reader:
    """Reads page after page, as whoever follows a run does."""

    def __init__(self, stage: Stage, run_id: str, *, limit: int = 100) -> None:
        self._queries = Queries(stage.engine.database.view, lambda: stage.engine)
        self._run_id = run_id
        self._limit = limit
        self.after = 0

    def page(self) -> list[int]:
        items = self._queries.events(self._run_id, after=self.after, limit=self._limit)["items"]
        self.after = items[-1]["seq"] if items else self.after
        return [each["seq"] for each in items]


class Late:
    """A run of which one step is claimed, and not committed, before another has ended."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        world = stage.world()
        self.run_id = world.run(*SIDE_BY_SIDE)
        world.start("a")
        self.claim: Stopped = stage.first.start_up_to(COMMIT, [world.claim("bob")])
        assert self.claim.gate.reached.is_set()
        stage.second.perform([world.complete("a")])
        self.world = world

    @property
    def numbers(self) -> list[int]:
        """Of the events of the run that are committed."""
        return [each.seq for each in self.stage.engine.runs.events(self.run_id)]


def test_a_page_ends_before_what_is_not_committed_yet_and_the_next_begins_with_it(
    server: Stage,
) -> None:
    late = Late(server)
    reader = Reader(server, late.run_id)
    seen = late.numbers
    assert (seen[-1] - seen[-2], reader.page()) == (2, seen[:-1])
    assert reader.page() == []
    late.claim.finish()
    assert reader.page() == [seen[-1] - 1, seen[-1]]
    assert reader.page() == []


def test_an_event_committed_while_a_page_is_read_is_in_its_place(
    server: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Late(server)
    monkeypatch.setattr(run_history, "sleep_between_polls", late.claim.finish)
    reader = Reader(server, late.run_id, limit=5)
    told = reader.page()
    assert len(told) == 5
    told += reader.page()
    assert told == late.numbers


def test_an_event_committed_just_before_its_writer_is_looked_for_is_in_its_place(
    server: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Late(server)
    find = run_history.find_writers

    def find_too_late(tx: Transaction) -> set[str]:
        late.claim.finish()
        return find(tx)

    monkeypatch.setattr(run_history, "find_writers", find_too_late)
    reader = Reader(server, late.run_id)
    assert reader.page() == late.numbers
    assert [b - a for a, b in pairwise(late.numbers)] == [1] * (len(late.numbers) - 1)


def test_a_transaction_that_writes_no_events_holds_up_no_page(
    server: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing before the page was never used."""
    late = Late(server)
    late.claim.finish()
    monkeypatch.delattr(run_history, "sleep_between_polls")
    with server.engine.transaction() as idle:
        idle.execute("SELECT nextval('holdfast_event_seq_seq'), pg_current_xact_id()")
        server.second.perform([late.world.claim("bob")])
        server.second.perform([CancelRun(run_id=late.run_id, actor="user")])
        assert Reader(server, late.run_id).page() == late.numbers


def test_a_long_transaction_holds_up_no_page_of_the_events_before_it(server: Stage) -> None:
    """What is missing before a run began is not of it."""
    with suppress(ZeroDivisionError), server.engine.transaction() as given_up:
        server.engine.tasks.create(NewTask(title="never"), connection=given_up)
        raise ZeroDivisionError
    world = server.world()
    world.task("lone")
    run_id = world.run(*SIDE_BY_SIDE)
    with server.engine.transaction() as idle:
        server.engine.tasks.create(NewTask(title="long"), connection=idle)
        assert len(Reader(server, run_id).page()) == 3


def test_a_watcher_of_a_run_is_told_all_of_it_however_long_another_transaction_writes(
    server: Stage, postgres_store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = server.world()
    run_id = world.run(Step(id="only"))
    with server.engine.transaction() as idle:
        server.engine.tasks.create(NewTask(title="long"), connection=idle)
        world.finish("only")
        place = StoreLocation(url=postgres_store_url, home=Path(), may_be_created=True)
        with Service(place, server.engine) as service:
            assert watch_run(service, run_id) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:] for line in lines[1:5]] == [
        *(["race", "started"], ["only", "running"], ["only", "done"], ["race", "completed"])
    ]
