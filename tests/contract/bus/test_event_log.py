"""The events of a store as a stream: one trace for each run, and no late commit skipped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from holdfast.bus.envelope import Envelope, read_envelope, write_envelope
from holdfast.bus.event_log import read_page
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.position import Position
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.run import NewRun
from holdfast.model.task import NewTask
from holdfast.model.trace import Trace, derive_trace_id
from tests.contract.bus.worlds import COMMANDS, World, message, names, share, take_all
from tests.contract.raw_store import raw
from tests.contract.task_states import CHAIN, create, finish, start

EVENTS = Subscription(channel=Channel.EVENTS, group="audit", from_now=True)
WRITERS = 8


def published(world: World) -> list[Envelope]:
    found: list[Envelope] = []
    while batches := world.bus.fetch(share(subscription=EVENTS), count=7):
        for batch in batches:
            found += batch.envelopes
            assert world.bus.acknowledge(batch)
    return found


@pytest.fixture
def begun(sql: World) -> World:
    """A bus that is given the events from now on."""
    sql.bus.subscribe(EVENTS)
    return sql


def test_the_events_of_a_store_are_given_in_order_without_being_copied(begun: World) -> None:
    run = start(begun.engine)
    run.finish("plan", "work", "review")
    found = published(begun)
    history = begun.engine.runs.events(run.id)
    assert [each.message_id for each in found] == [
        f"{event.task_id or event.run_id}.{event.version}" for event in history
    ]
    assert [each.type for each in found] == [event.type for event in history]
    assert {each.step for each in found} == {None, "plan", "work", "review"}
    assert all(read_envelope(write_envelope(each)) == each for each in found)


def test_a_command_a_run_and_all_its_events_are_one_trace(begun: World) -> None:
    command = message("m1")
    made = begun.engine.runs.start(NewRun(workflow=CHAIN, trace=command.trace))
    begun.engine.runs.cancel(made.id)
    lone = begun.engine.tasks.create(NewTask(title="lone", trace=command.trace))
    found = published(begun)
    assert {each.trace_id for each in found} == {command.trace_id}
    assert {each.correlation_id for each in found} == {"m1"}
    assert len({each.span_id for each in found}) == len(found)
    causes = {each.message_id: each.causation_id for each in found}
    for told in found:
        at, steps = told.message_id, 0
        while at != "m1":
            at, steps = str(causes[at]), steps + 1
            assert steps < 10
    assert causes[f"{lone.id}.1"] == "m1"


def test_a_run_without_a_trace_from_outside_has_one_of_its_own(begun: World) -> None:
    first, second = start(begun.engine), start(begun.engine)
    traces = {each.run_id: each.trace_id for each in published(begun)}
    assert traces == {each.id: derive_trace_id(each.id) for each in (first, second)}
    assert len(set(traces.values())) == 2


def test_a_start_under_a_known_key_keeps_the_trace_of_the_first(begun: World) -> None:
    wanted = NewRun(workflow=CHAIN, key=f"once {begun.engine.now()}", trace=message("m1").trace)
    first = begun.engine.runs.start(wanted)
    again = begun.engine.runs.start(replace(wanted, trace=message("m2").trace))
    assert (again.id, again.created) == (first.id, False)
    assert {each.correlation_id for each in published(begun)} == {"m1"}


def test_a_trace_that_is_none_is_refused(begun: World) -> None:
    for trace in (Trace(trace_id="0" * 32), Trace(trace_id="1" * 32, causation_id="")):
        with pytest.raises(InvalidInput, match=r"^trace\."):
            begun.engine.runs.start(NewRun(workflow=CHAIN, trace=trace))
    assert published(begun) == []


def test_a_reader_of_one_partition_passes_by_the_events_of_others(begun: World) -> None:
    for _ in range(20):
        create(begun.engine)
    found = [take_all(begun.bus, share(each, subscription=EVENTS)) for each in range(4)]
    assert max(map(len, found)) < 20
    assert sum(map(len, found)) == 20
    assert begun.bus.lag(EVENTS) == 0


def test_a_batch_that_another_has_acknowledged_meanwhile_is_not_acknowledged_again(
    begun: World,
) -> None:
    create(begun.engine)
    (late,) = begun.bus.fetch(share(subscription=EVENTS), count=10)
    assert len(take_all(begun.bus, share(subscription=EVENTS))) == 1
    create(begun.engine)
    assert not begun.bus.acknowledge(late)
    assert len(published(begun)) == 1


def test_a_message_is_published_with_the_applications_own_transaction(sql: World) -> None:
    with suppress(ZeroDivisionError), sql.engine.transaction() as connection:
        sql.bus.publish_command(Channel.COMMANDS, message("m1"), connection=connection)
        raise ZeroDivisionError
    with sql.engine.transaction() as connection:
        sql.bus.publish_command(Channel.COMMANDS, message("m2"), connection=connection)
    sql.bus.publish_command(Channel.COMMANDS, message("m2"))
    assert take_all(sql.bus, share()) == ["m2"]


@pytest.fixture
def postgresql(opened_worlds: dict[str, World]) -> Iterator[World]:
    world = opened_worlds["postgresql"]
    world.bus.subscribe(EVENTS)
    yield world
    world.clean()


def test_an_event_committed_after_later_ones_is_given_all_the_same(postgresql: World) -> None:
    engine = postgresql.engine
    with engine.transaction() as connection:
        early = engine.tasks.create(NewTask(title="early"), connection=connection).id
        late = create(engine, "late")
        assert [each.task_id for each in published(postgresql)] == [late]
        assert published(postgresql) == []
    assert [each.task_id for each in published(postgresql)] == [early]
    assert published(postgresql) == []
    assert _holes(postgresql) == {"[]"}


def test_a_group_that_begins_from_now_is_given_what_is_committed_from_now(
    postgresql: World,
) -> None:
    bus = postgresql.bus
    fresh = replace(COMMANDS, from_now=True)
    with postgresql.engine.transaction() as connection:
        bus.publish_command(Channel.COMMANDS, message("early"), connection=connection)
        bus.publish_command(Channel.COMMANDS, message("past"))
        bus.subscribe(fresh)
    bus.publish_command(Channel.COMMANDS, message("next"))
    assert take_all(bus, share(subscription=fresh)) == ["early", "next"]


def test_a_group_that_reads_again_is_given_what_is_committed_late(postgresql: World) -> None:
    bus = postgresql.bus
    with postgresql.engine.transaction() as connection:
        bus.publish_command(Channel.COMMANDS, message("early"), connection=connection)
        bus.publish_command(Channel.COMMANDS, message("late"))
        assert take_all(bus, share()) == ["late"]
        bus.rewind(COMMANDS, 4_000_000_000_000_000)
        assert take_all(bus, share()) == []
    assert take_all(bus, share()) == ["early"]


def test_a_group_that_reads_again_is_given_what_came_late_in_its_order(postgresql: World) -> None:
    bus, found = postgresql.bus, list[str]()
    for name in ("one", "two"):
        bus.publish_command(Channel.COMMANDS, message(name))
    with postgresql.engine.transaction() as connection:
        bus.publish_command(Channel.COMMANDS, message("early"), connection=connection)
        bus.publish_command(Channel.COMMANDS, message("late"))
        assert take_all(bus, share()) == ["one", "two", "late"]
        bus.rewind(COMMANDS, 0)
    while batches := bus.fetch(share(), count=1):
        found += names(batches)
        assert all(map(bus.acknowledge, batches))
    assert found == ["one", "two", "early", "late"]


@pytest.mark.parametrize("query", ["horizon", "snapshot"])
def test_a_transaction_that_is_newer_than_all_that_have_ended_is_under_way(
    postgresql: World, query: str
) -> None:
    """Its numbers may be lower than those of an older one that ends before it."""
    engine = postgresql.engine
    with engine.transaction() as connection:
        (row,) = connection.execute("SELECT CAST(pg_current_xact_id() AS text) AS id").fetchall()
        (seen,) = engine.database.view(lambda tx: tx.read(query))
        assert seen["oldest"] <= int(row["id"]) < seen["next"]


def test_an_event_that_was_rolled_back_is_waited_for_only_while_it_may_still_come(
    postgresql: World,
) -> None:
    engine = postgresql.engine
    with suppress(ZeroDivisionError), engine.transaction() as connection:
        engine.tasks.create(NewTask(title="never"), connection=connection)
        create(engine, "kept")
        assert len(published(postgresql)) == 1
        assert _holes(postgresql) != {"[]"}
        raise ZeroDivisionError
    assert published(postgresql) == []
    assert _holes(postgresql) == {"[]"}


def test_no_event_of_eight_writers_with_long_transactions_is_skipped(postgresql: World) -> None:
    engine, made = postgresql.engine, list[str]()
    turns, barrier = 4, threading.Barrier(WRITERS + 1)

    def write(number: int) -> None:
        for turn in range(turns):
            with suppress(ZeroDivisionError), engine.transaction() as connection:
                own = [_task(engine, connection) for _ in range(number % 3 + 1)]
                # Each turn half of them are under way while the others have ended.
                if (number + turn) % 2:
                    barrier.wait()
                if (number + turn) % 5 == 0:
                    raise ZeroDivisionError
            if not (number + turn) % 2:
                barrier.wait()
            if (number + turn) % 5:
                made.extend(own)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for each in threads:
        each.start()
    found: list[Envelope] = []
    for _ in range(turns):
        found += published(postgresql)
        barrier.wait()
    for each in threads:
        each.join()
    found += published(postgresql)
    assert sorted(each.message_id for each in found) == sorted(f"{each}.1" for each in made)
    assert _holes(postgresql) == {"[]"}


def test_a_reader_that_has_passed_by_too_much_waits_for_it(
    postgresql: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.bus.event_log.MOST_HOLES", 1)
    engine = postgresql.engine
    with engine.transaction() as connection:
        early = engine.tasks.create(NewTask(title="early"), connection=connection).id
        first = create(engine)
        assert [each.task_id for each in published(postgresql)] == [first]
        second = create(engine)
        assert published(postgresql) == []
    assert [each.task_id for each in published(postgresql)] == [early, second]


def test_a_bus_whose_sessions_were_ended_goes_on(postgresql: World) -> None:
    postgresql.bus.publish_command(Channel.COMMANDS, message("m1"))
    assert take_all(postgresql.bus, share()) == ["m1"]
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with raw(postgresql.engine.settings.url) as run:
        run(f"{ended} AND datname = current_database()")
        postgresql.bus.publish_command(Channel.COMMANDS, message("m2"))
        run(f"{ended} AND datname = current_database()")
    assert take_all(postgresql.bus, share()) == ["m2"]


def test_a_page_holds_no_more_than_was_asked_for(sql: World) -> None:
    finish(sql.engine, create(sql.engine))
    first = read_page(sql.engine.database, Channel.EVENTS, Position(), 1)
    second = read_page(sql.engine.database, Channel.EVENTS, first.position, 1)
    assert len(first.envelopes) == len(second.envelopes) == 1
    assert first.position.passed < second.position.passed


def _task(engine: Engine, connection: object) -> str:
    return engine.tasks.create(NewTask(title="one of many"), connection=connection).id


def _holes(world: World) -> set[str]:
    with raw(world.engine.settings.url) as run:
        return {row["holes"] for row in run("SELECT holes FROM holdfast_position")}
