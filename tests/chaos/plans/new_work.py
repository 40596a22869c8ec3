"""Groups of new work, of claims, of what time brings, and of everything at once."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import (
    CancelRun,
    Claim,
    ClaimById,
    Complete,
    CreateTasks,
    Fail,
    Operation,
    Release,
    RetryRun,
    StartRun,
    Sweep,
)
from holdfast.engine.surroundings.leases import AcquireLease, ReleaseLease, RenewLease
from holdfast.engine.surroundings.workflows import AddWorkflow
from holdfast.model.workflow.graph import Step, Workflow
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR, break_for_good, start_keyed_run
from tests.chaos.plans.worker_reports import fail
from tests.race.scenarios import CHAIN, JOIN
from tests.race.worlds import LEASE, World


@group_of(AddWorkflow)
def keep_two_definitions(world: World) -> Sequence[Operation]:
    flows = [Workflow.define(f"kept-{name}-{world.number}", (Step(id=name),)) for name in "ba"]
    return [
        AddWorkflow(workflow=each.name, workflow_version=each.version, definition=each.definition)
        for each in flows
    ]


@group_of(CreateTasks)
def create_many_with_needs_and_keys(world: World) -> Sequence[Operation]:
    world.task("need")
    world.finish("need")
    world.task("open")
    shared = world.concurrency(2)
    first = world.create("first", "need", "open", key="first", concurrency=shared)
    second = world.create("second", "open", key="second", scheduled_for=world.day.now() + LEASE)
    third = world.create("third", parent=world.ids["open"])
    return [
        CreateTasks(tasks=(*first.tasks, *second.tasks), actor=ACTOR),
        third,
    ]


@group_of(StartRun)
def start_runs_of_one_key(world: World) -> Sequence[Operation]:
    return [
        world.start_run(*CHAIN, limit=1, name="first", key="first"),
        world.start_run(*JOIN, limit=1, name="second", key="second"),
    ]


@group_of(StartRun, Claim)
def start_a_run_whose_first_step_is_claimed(world: World) -> Sequence[Operation]:
    return [world.start_run(*JOIN), world.claim("anna", 2)]


@group_of(Claim)
def claim_tasks_of_two_keys(world: World) -> Sequence[Operation]:
    for key in ("one", "two"):
        shared = world.concurrency(2, key)
        for number in range(3):
            world.task(f"{key}-{number}", concurrency=shared)
    world.task("due", scheduled_for=world.day.now() + 1)
    world.day.advance(1)
    return [world.claim("anna", 3), world.claim("bert", 3)]


@group_of(ClaimById)
def claim_by_id(world: World) -> Sequence[Operation]:
    shared = world.concurrency(1)
    world.task("idle", enqueue=False, concurrency=shared)
    world.task("queued")
    return [world.claim_by_id("idle", "anna"), world.claim_by_id("queued", "bert")]


@group_of(Sweep)
def sweep_what_time_has_brought(world: World) -> Sequence[Operation]:
    world.task("scheduled", scheduled_for=world.day.now() + LEASE)
    limited = world.task("limited")
    world.engine.tasks.hold(limited, "limit", until=world.day.now() + LEASE)
    world.run(Step(id="first"), limit=1, name="first run")
    world.run(Step(id="second"), limit=1, name="second run")
    # A higher limit lets one more in; there is room for this one too, which the sweep finds.
    world.run(Step(id="third"), limit=3, name="third run")
    world.day.advance(31)
    return [Sweep()]


@group_of(AcquireLease, RenewLease, ReleaseLease)
def take_keep_and_give_back_named_leases(world: World) -> Sequence[Operation]:
    for key in ("kept", "given"):
        assert world.engine.leases.acquire(key, "anna", ttl=60)
    return [
        AcquireLease(key="new", owner="anna", ttl=LEASE),
        AcquireLease(key="newer", owner="bert", ttl=LEASE),
        RenewLease(key="kept", fence=1, ttl=4 * LEASE),
        ReleaseLease(key="given", fence=1),
    ]


@group_of(Complete, Fail, Release, CancelRun, RetryRun, CreateTasks, Claim)
def everything_at_once(world: World) -> Sequence[Operation]:
    keyed = start_keyed_run(world)
    failed = world.run(Step(id="broken"), name="failed")
    break_for_good(world, "broken")
    world.run(Step(id="plan"), Step(id="work", needs=("plan",)), name="going")
    for name in ("failing", "given_back"):
        world.task(name)
        world.start(name)
    world.start("plan")
    return [
        world.complete("plan"),
        fail(world, "failing", retryable=True),
        Release(task_id=world.ids["given_back"], fence=1),
        CancelRun(run_id=keyed, actor=ACTOR),
        RetryRun(run_id=failed, actor=ACTOR),
        world.create("new", "failing"),
        world.claim("anna", 10),
    ]
