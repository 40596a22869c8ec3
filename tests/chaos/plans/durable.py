"""Groups of what durable functions leave behind: effects, waits, signals and children."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Claim, Complete, Operation, ReopenTask
from holdfast.engine.state.durable import RecordEffect, SendSignal, Spawn, Suspend, TakeSignal
from holdfast.model.workflow.graph import Step
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import about
from tests.race.state.test_waits import family, listen, signal, wait, wait_for_children
from tests.race.worlds import LEASE, World


def running(world: World, *names: str) -> None:
    shared = world.concurrency(len(names))
    for name in names:
        world.task(name, concurrency=shared)
        world.start(name)


def spawn(world: World, name: str) -> Spawn:
    rows = [row for child in ("elder", "younger") for row in world.create(child).tasks]
    return Spawn(
        task_id=world.ids[name],
        fence=world.fences[name],
        name="map",
        tasks=tuple(rows),
        actor="worker",
    )


@group_of(RecordEffect)
def record_effects(world: World) -> Sequence[Operation]:
    running(world, "one", "two")
    return [
        RecordEffect(task_id=world.ids[name], fence=1, name="charge", value='{"paid":7}')
        for name in ("one", "two")
    ]


@group_of(Suspend, Claim)
def suspend_for_a_time_and_for_a_signal_that_is_there(world: World) -> Sequence[Operation]:
    running(world, "sleeping", "waiting", "patient")
    assert world.engine.signals.send(world.ids["waiting"], "go").ok
    until = world.day.now() + 2 * LEASE
    sleep = Suspend(
        task_id=world.ids["sleeping"], fence=1, until=until, notes=(("sleep", str(until)),)
    )
    waits = [wait(world, name, name) for name in ("waiting", "patient")]
    return [sleep, *waits, world.claim("anna")]


@group_of(SendSignal, Claim)
def send_a_signal_that_is_waited_for(world: World) -> Sequence[Operation]:
    world.run(Step(id="left"), Step(id="right"))
    for name in ("left", "right"):
        world.start(name)
        assert world.engine.commits.submit(wait(world, name, "run")).result().ok
    return [signal(world, "run"), world.claim("anna", 2)]


@group_of(TakeSignal)
def take_a_signal(world: World) -> Sequence[Operation]:
    running(world, "one")
    for _ in range(2):
        assert world.engine.signals.send(world.ids["one"], "go").ok
    return [listen(world, "one", "one")]


@group_of(Spawn, Claim)
def spawn_children(world: World) -> Sequence[Operation]:
    running(world, "parent")
    return [spawn(world, "parent"), world.claim("anna", 2)]


@group_of(Complete, Claim)
def complete_the_children_that_are_waited_for(world: World) -> Sequence[Operation]:
    family(world)
    assert world.engine.commits.submit(wait_for_children(world, "parent")).result().ok
    return [world.complete("elder"), world.complete("younger"), world.claim("anna")]


@group_of(Suspend, Complete, Claim)
def suspend_for_a_child_that_ends_at_once(world: World) -> Sequence[Operation]:
    family(world)
    assert world.engine.commits.submit(world.complete("elder")).result().ok
    return [
        wait_for_children(world, "parent"),
        world.complete("younger"),
        world.claim("anna"),
    ]


@group_of(ReopenTask)
def reopen_a_parent_whose_children_count_no_more(world: World) -> Sequence[Operation]:
    family(world)
    assert world.engine.commits.submit(world.complete("parent")).result().ok
    return [ReopenTask(**about(world, "parent"))]
