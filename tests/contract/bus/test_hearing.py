"""An engine hears commands while there are some, and costs its store next to nothing otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.bus.channel import Channel
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.hearing import QUIET, Hearing
from holdfast.bus.parked import Parked
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.graph import Step, Workflow
from tests.contract.bus.worlds import message

ONE = Workflow.define("one", (Step(id="only"),))


@pytest.fixture
def bus(engine: Engine) -> Iterator[SqlBus]:
    engine.workflows.add(ONE)
    made = SqlBus(engine)
    yield made
    made.close()


@pytest.fixture
def hearing(engine: Engine, bus: SqlBus) -> Iterator[Hearing]:
    made = Hearing(engine, bus, Channel.COMMANDS)
    yield made
    made.close()


def ask(bus: SqlBus, name: str, workflow: str = "one") -> None:
    asked = replace(message(name), run_id=None, type="run.start", payload={"workflow": workflow})
    bus.publish_command(Channel.COMMANDS, asked)


def seats(engine: Engine) -> int:
    first, last = "bus/workflow.commands/", "bus/workflow.commands0"
    return len(engine.database.view(lambda tx: tx.read("live_leases", first=first, last=last)))


def test_where_nothing_comes_no_lease_is_written(engine: Engine, hearing: Hearing) -> None:
    assert hearing.step() == 0
    assert not hearing.listens
    assert seats(engine) == 0


def test_it_listens_from_the_first_message_until_none_came_for_long(
    engine: Engine, clock: ManualClock, bus: SqlBus, hearing: Hearing
) -> None:
    hearing.step()
    for name in ("first", "second"):
        ask(bus, name)
        assert hearing.step() == 1
        assert hearing.step() == 0
        assert (hearing.listens, seats(engine) > 0) == (True, True)
        clock.advance(QUIET)
        hearing.step()
        assert (hearing.listens, seats(engine)) == (False, 0)
    assert len(engine.runs.list(workflow="one")) == 2


def test_what_was_parked_and_replayed_meanwhile_is_heard(
    engine: Engine, clock: ManualClock, bus: SqlBus, hearing: Hearing
) -> None:
    ask(bus, "early", workflow="late")
    hearing.step()
    clock.advance(QUIET)
    hearing.step()
    assert not hearing.listens
    engine.workflows.add(Workflow.define("late", (Step(id="only"),)))
    (kept,) = Parked(engine).list()
    assert Parked(engine).replay(kept.handler, kept.message_id).ok
    assert hearing.step() == 1
    assert len(engine.runs.list(workflow="late")) == 1
