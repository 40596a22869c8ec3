"""Commands that were meant for one version: carried out at that, waited for, or told of once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.bus.command_handlers import command_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.execution_bus import Channel, Subscription
from holdfast.bus.parked_messages import Parked
from holdfast.engine.engine import Engine
from holdfast.model.event import Event
from holdfast.model.retry import RetryPolicy
from tests.contract.bus.worlds import World, message
from tests.contract.task_states import CHAIN, StartedRun, start

RETRY = RetryPolicy(max_attempts=3, backoff=1, backoff_max=1)


class Desk:
    """A store that hears commands about one run, each sent twice."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.engine: Engine = world.engine
        self.run: StartedRun = start(world.engine, CHAIN)
        subscription = Subscription(channel=Channel.COMMANDS, group="engine")
        self.consumer = Consumer(
            world.engine,
            world.bus,
            subscription,
            [command_handler(world.engine)],
            ConsumerOptions(name="engine-1", retry=RETRY),
        )

    def command(self, kind: str, expected: object, **about: Any) -> None:
        named = replace(message(f"{kind} at {expected}"), run_id=self.run.id, type=kind, **about)
        told = replace(named, payload={"expected_version": expected})
        self.world.bus.publish_command(Channel.COMMANDS, told, told)
        self.consumer.drain()

    def wait(self) -> None:
        """As long as whatever failed waits at most, and then look at it again."""
        self.world.clock.advance(1)
        self.consumer.drain()

    @property
    def conflicts(self) -> list[Event]:
        events = self.engine.runs.events(self.run.id)
        return [each for each in events if each.type == "run.conflict"]

    @property
    def waiting(self) -> list[str]:
        return [each.state for each in Parked(self.engine).list(parked=False)]

    @property
    def version(self) -> int:
        return self.engine.runs.get(self.run.id).version


@pytest.fixture
def desk(world: World) -> Iterator[Desk]:
    made = Desk(world)
    yield made
    made.consumer.close()


def test_a_command_for_the_version_there_is_is_carried_out(desk: Desk) -> None:
    desk.command("run.pause", 1)
    assert desk.engine.runs.get(desk.run.id).holds
    task = desk.run.steps["plan"]
    version = desk.engine.tasks.get(task).version
    desk.command("task.cancel", version, task_id=task)
    assert desk.engine.tasks.get(task).status == "cancelled"
    assert desk.conflicts == []


def test_a_command_for_a_version_that_has_passed_is_told_of_once(desk: Desk) -> None:
    desk.engine.runs.pause(desk.run.id)
    desk.command("run.cancel", 1)
    assert (desk.run.status, desk.waiting) == ("running", [])
    (told,) = desk.conflicts
    assert (told.actor, told.data) == (
        "bus",
        {
            "asked": "run.cancel",
            "expected_version": 1,
            "version": 2,
            "message_id": "run.cancel at 1",
        },
    )
    desk.command("run.cancel", 2)
    assert desk.run.status == "cancelled", "a conflict that was told of is no change"
    diagnosis = desk.engine.doctor()
    assert diagnosis.ok, str(diagnosis)


def test_a_conflict_about_a_task_is_told_in_its_run_and_leaves_the_task(desk: Desk) -> None:
    task = desk.run.steps["plan"]
    desk.engine.tasks.edit(task, {"title": "other"})
    before = desk.engine.tasks.get(task)
    desk.command("task.cancel", 1, task_id=task)
    assert desk.engine.tasks.get(task) == before
    assert [each.data["task_id"] for each in desk.conflicts] == [task]


def test_a_version_that_has_not_come_is_waited_for(desk: Desk) -> None:
    desk.command("run.cancel", 2)
    assert (desk.run.status, desk.waiting) == ("running", ["retrying"])
    desk.engine.runs.pause(desk.run.id)
    desk.wait()
    assert (desk.run.status, desk.waiting, desk.conflicts) == ("cancelled", [], [])


def test_a_version_that_never_comes_is_told_of_once_after_the_last_try(desk: Desk) -> None:
    desk.command("run.cancel", 9)
    for _ in range(RETRY.max_attempts):
        desk.wait()
    assert (desk.run.status, desk.waiting) == ("running", [])
    assert [each.data["expected_version"] for each in desk.conflicts] == [9]


@pytest.mark.parametrize("expected", [1, 9])
def test_nothing_is_done_or_told_over_a_run_that_has_ended(desk: Desk, expected: int) -> None:
    desk.engine.runs.cancel(desk.run.id)
    version = desk.version
    desk.command("run.retry", expected)
    assert (desk.run.status, desk.version, desk.waiting) == ("cancelled", version, [])


def test_a_version_that_is_none_is_parked_at_once(desk: Desk) -> None:
    desk.command("run.cancel", "one")
    (kept,) = Parked(desk.engine).list()
    assert "expected_version" in str(kept.error)
    assert desk.run.status == "running"
