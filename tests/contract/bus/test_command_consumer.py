"""An engine hears commands while there are some, and costs its store next to nothing otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.bus.command_consumer import (
    CONSUMED_CHANNELS,
    IDLE_SECONDS,
    OWNER_CHECK_SECONDS,
    BusOwnership,
    CommandConsumer,
)
from holdfast.bus.envelope import write_envelope
from holdfast.bus.execution_bus import Channel, ExecutionBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.parked_messages import Parked
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.bus.worlds import message, redis_world
from tests.contract.engine.read.test_pages import plan_of
from tests.contract.raw_store import raw
from tests.engines import opened

ONE = Workflow.define("one", (Step(id="only"),))


@pytest.fixture
def bus(engine: Engine) -> Iterator[SqlBus]:
    engine.workflows.add(ONE)
    made = SqlBus(engine)
    yield made
    made.close()


@pytest.fixture
def hearing(engine: Engine, bus: SqlBus) -> Iterator[CommandConsumer]:
    with heard(engine, bus) as made:
        yield made


def ask(bus: ExecutionBus, name: str, workflow: str = "one") -> None:
    asked = replace(message(name), run_id=None, type="run.start", payload={"workflow": workflow})
    bus.publish_command(Channel.COMMANDS, asked)


@contextmanager
def heard(
    engine: Engine, bus: ExecutionBus, channel: Channel = Channel.COMMANDS
) -> Iterator[CommandConsumer]:
    made = CommandConsumer(engine, bus, channel)
    yield made
    made.close()


def seats(engine: Engine) -> int:
    first, last = "bus/workflow.commands/", "bus/workflow.commands0"
    return len(engine.database.view(lambda tx: tx.read("live_leases", first=first, last=last)))


def test_an_engine_to_which_no_message_comes_writes_no_lease(
    engine: Engine, hearing: CommandConsumer
) -> None:
    assert hearing.step() == 0
    assert not hearing.is_consuming
    assert seats(engine) == 0


def test_a_run_that_a_message_starts_has_the_labels_of_the_message(
    engine: Engine, bus: SqlBus, hearing: CommandConsumer
) -> None:
    hearing.step()
    payload = {"workflow": "one", "labels": {"customer": 7}}
    asked = replace(message("first"), run_id=None, type="run.start", payload=payload)
    bus.publish_command(Channel.COMMANDS, asked)
    assert hearing.step() == 1
    assert [each.workflow for each in engine.runs.list(labels={"customer": "7"})] == ["one"]


def test_an_engine_listens_from_the_first_message_until_none_came_for_long(
    engine: Engine, clock: ManualClock, bus: SqlBus, hearing: CommandConsumer
) -> None:
    hearing.step()
    for name in ("first", "second"):
        ask(bus, name)
        assert hearing.step() == 1
        assert hearing.step() == 0
        assert (hearing.is_consuming, seats(engine) > 0) == (True, True)
        clock.advance(IDLE_SECONDS)
        hearing.step()
        assert (hearing.is_consuming, seats(engine)) == (False, 0)
    assert len(engine.runs.list(workflow="one")) == 2


def test_a_message_that_was_parked_and_replayed_meanwhile_is_heard(
    engine: Engine, clock: ManualClock, bus: SqlBus, hearing: CommandConsumer
) -> None:
    hearing.step()
    ask(bus, "early", workflow="late")
    hearing.step()
    clock.advance(IDLE_SECONDS)
    hearing.step()
    assert not hearing.is_consuming
    engine.workflows.add(Workflow.define("late", (Step(id="only"),)))
    (kept,) = Parked(engine).list()
    assert Parked(engine).replay(kept.handler, kept.message_id).ok
    assert hearing.step() == 1
    assert len(engine.runs.list(workflow="late")) == 1


def test_a_command_published_before_any_engine_heard_is_not_carried_out(
    engine: Engine, bus: SqlBus, redis_url: str
) -> None:
    with redis_world(engine, redis_url) as world:
        for number, each in enumerate((bus, world.bus)):
            ask(each, f"before-{number}")
            with heard(engine, each) as hearing:
                hearing.step()
                ask(each, f"after-{number}")
                assert hearing.step() == 1
                assert hearing.step() == 0
            # What comes while nobody hears waits for the next who does.
            ask(each, f"meanwhile-{number}")
            with heard(engine, each) as hearing:
                assert hearing.step() == 1
            assert len(engine.runs.list(workflow="one")) == 2 * (number + 1)


@pytest.mark.parametrize("channel", CONSUMED_CHANNELS)
def test_a_type_that_nothing_is_done_with_is_parked_at_once(
    engine: Engine, bus: SqlBus, channel: Channel
) -> None:
    with heard(engine, bus, channel) as hearing:
        hearing.step()
        odd = replace(message("odd"), type="order.placed")
        publish = bus.publish_event if channel is Channel.RESULTS else bus.publish_command
        publish(channel, odd)
        assert hearing.step() == 1
    (kept,) = Parked(engine).list()
    assert (kept.handler, kept.tries, kept.state) == ("holdfast/others", 1, "parked")
    assert "'order.placed' is nothing that is heard here" in str(kept.error)


WAITS = """
INSERT INTO holdfast_delivery
  (handler, message_id, channel, about, slot, tries, envelope, parked_at)
VALUES (?, ?, ?, 'r', 0, 1, ?, ?)
"""
OWN, HERE = "holdfast/commands", "workflow.commands"


@pytest.mark.parametrize(
    ("waiting", "listens"),
    [
        ([(OWN, "m1", HERE, None)], True),
        ([("holdfast/unreadable", "m1", HERE, None)], True),
        ([(OWN, "m1", HERE, 1)], False),
        ([(OWN, "m1", HERE, 1), (OWN, "m2", HERE, None)], False),
        ([("bank/pay", "m1", HERE, 1), (OWN, "m1", HERE, None)], True),
        ([("bank/pay", "m1", HERE, None)], False),
        ([(OWN, "m1", "agent.results", None)], False),
    ],
)
def test_an_engine_listens_for_messages_to_be_tried_again_and_not_for_those_that_wait_for_a_person(
    store_url: str, hearing: CommandConsumer, waiting: list[tuple[object, ...]], *, listens: bool
) -> None:
    with raw(store_url) as run:
        for *named, parked in waiting:
            run(WAITS, *named, write_envelope(message("m1")), parked)
    hearing.step()
    assert hearing.is_consuming == listens


@pytest.mark.usefixtures("engine")
def test_a_look_for_what_waits_passes_by_all_that_is_parked(store_url: str) -> None:
    asked = {"channel": HERE, "handlers": f'["{OWN}"]'}
    assert "holdfast_delivery_waiting" in plan_of(store_url, "some_delivery", asked)


def test_a_redis_is_heard_by_one_store_until_that_is_no_more(
    engine: Engine,
    clock: ManualClock,
    redis_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine.workflows.add(ONE)
    with (
        redis_world(engine, redis_url) as world,
        opened(f"sqlite:///{tmp_path}/other.db", clock=clock) as other,
        heard(engine, world.bus) as first,
    ):
        other.workflows.add(ONE)
        first.step()
        ownership = BusOwnership(other, world.bus)
        seconds = [
            CommandConsumer(other, world.bus, channel, ownership) for channel in CONSUMED_CHANNELS
        ]
        for each in (*seconds, *seconds):
            assert (each.step(), each.is_consuming) == (0, False)
        (said,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert "another store hears" in said
        assert "another Redis" in said
        assert "prefix=" in said
        ask(world.bus, "m1")
        assert (first.step(), seconds[0].step()) == (1, 0)
        key = said.rpartition(" ")[2]
        assert world.client.delete(key) == 1
        clock.advance(OWNER_CHECK_SECONDS)
        seconds[0].step()
        first.step()
        assert (seconds[0].is_consuming, first.is_consuming) == (True, False)
        ask(world.bus, "m2")
        assert (first.step(), seconds[0].step()) == (0, 1)
        assert [len(each.runs.list(workflow="one")) for each in (engine, other)] == [1, 1]
        for each in seconds:
            each.close()
