"""Groups of what people and programs ask of tasks and runs that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.engine.core.operation import (
    AdvanceRun,
    BlockTask,
    CancelRun,
    CancelTask,
    DeleteTask,
    EditTask,
    EnqueueTask,
    HoldRun,
    HoldTask,
    Operation,
    ReopenTask,
    ResetTask,
    RetryRun,
    RetryTask,
    RunNow,
    UnblockTask,
    UnholdRun,
    UnholdTask,
)
from holdfast.engine.state.expected_version import (
    ExpectRunVersion,
    ExpectTaskVersion,
    VersionedCommand,
)
from holdfast.model.run import NewRun
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.worker_reports import fail
from tests.contract.raw_store import raw
from tests.race.scenarios import CHAIN, JOIN
from tests.race.worlds import LEASE, World

ACTOR = "user"


def about(world: World, name: str) -> dict[str, Any]:
    return {"task_id": world.ids[name], "actor": ACTOR}


def break_for_good(world: World, name: str) -> None:
    world.start(name)
    assert world.engine.commits.submit(fail(world, name, retryable=False)).result().ok


@group_of(EnqueueTask, RunNow)
def enqueue_and_run_now(world: World) -> Sequence[Operation]:
    world.task("idle", enqueue=False)
    world.task("later", scheduled_for=world.day.now() + LEASE)
    return [EnqueueTask(**about(world, "idle")), RunNow(**about(world, "later"))]


@group_of(CancelTask)
def cancel_a_task_with_all_below_it(world: World) -> Sequence[Operation]:
    shared = world.concurrency(3)
    parent = world.task("parent", concurrency=shared)
    for name in ("running", "waiting"):
        world.task(name, parent=parent, concurrency=shared)
    world.start("parent")
    world.start("running")
    return [CancelTask(**about(world, "parent"))]


@group_of(CancelTask)
def cancel_the_last_open_task_of_a_run(world: World) -> Sequence[Operation]:
    world.run(*JOIN)
    world.finish("left")
    world.start("right")
    return [CancelTask(**about(world, "right"))]


@group_of(ResetTask)
def reset_a_step_of_a_run_that_ended(world: World) -> Sequence[Operation]:
    world.run(*CHAIN)
    for name in ("plan", "work", "check"):
        world.finish(name)
    return [ResetTask(**about(world, "check"))]


@group_of(ResetTask)
def reset_a_task_that_another_needs(world: World) -> Sequence[Operation]:
    world.task("first")
    world.task("second", "first")
    world.finish("first")
    return [ResetTask(**about(world, "first"))]


@group_of(RetryTask)
def retry_a_task_and_its_run(world: World) -> Sequence[Operation]:
    world.run(*JOIN, limit=1)
    break_for_good(world, "left")
    return [RetryTask(**about(world, "left"))]


@group_of(RetryTask)
def retry_a_task_of_no_run(world: World) -> Sequence[Operation]:
    world.task("only")
    break_for_good(world, "only")
    return [RetryTask(**about(world, "only"))]


@group_of(ReopenTask)
def reopen_a_step_and_all_that_needs_it(world: World) -> Sequence[Operation]:
    world.run(*CHAIN, limit=1)
    for name in ("plan", "work", "check"):
        world.finish(name)
    return [ReopenTask(**about(world, "plan"))]


@group_of(ReopenTask)
def reopen_while_a_dependent_runs(world: World) -> Sequence[Operation]:
    shared = world.concurrency(1)
    world.task("first")
    world.task("second", "first", concurrency=shared)
    world.finish("first")
    world.start("second")
    return [ReopenTask(**about(world, "first"))]


@group_of(DeleteTask)
def delete_a_task_with_needs(world: World) -> Sequence[Operation]:
    world.task("need")
    world.task("only", "need")
    return [DeleteTask(**about(world, "only"))]


@group_of(HoldTask, UnholdTask, EditTask)
def hold_unhold_and_edit(world: World) -> Sequence[Operation]:
    held = world.task("held")
    world.task("free")
    world.task("dull")
    world.engine.tasks.hold(held)
    return [
        HoldTask(**about(world, "free"), reason=Hold.LIMIT, until=world.day.now() + LEASE),
        UnholdTask(**about(world, "held"), reason=Hold.PAUSED),
        EditTask(**about(world, "dull"), changes={"title": "bright", "priority": 3}),
    ]


@group_of(BlockTask, UnblockTask)
def block_one_and_unblock_another(world: World) -> Sequence[Operation]:
    need = world.task("need")
    world.task("free")
    world.task("blocked", "need")
    return [
        BlockTask(**about(world, "free"), on=(need,)),
        UnblockTask(**about(world, "blocked")),
    ]


def start_keyed_run(world: World) -> str:
    """A run of a limited workflow, with two running steps that share a key, and a run behind it."""
    shared = Concurrency(key="steps", limit=2)
    steps = tuple(
        Step(id=name, agent=world.agent, concurrency=shared) for name in ("left", "right", "third")
    )
    workflow = Workflow.define("keyed", steps, concurrency=Concurrency(key="runs"))
    first, _ = (world.engine.runs.start(NewRun(workflow=workflow)).id for _ in range(2))
    for task in world.engine.runs.tasks(first):
        world.know(str(task.step), task.id)
    world.start("left")
    world.start("right")
    return first


@group_of(CancelRun)
def cancel_a_run_with_running_tasks_and_keys(world: World) -> Sequence[Operation]:
    return [CancelRun(run_id=start_keyed_run(world), actor=ACTOR)]


@group_of(HoldRun, UnholdRun)
def pause_one_run_and_resume_another(world: World) -> Sequence[Operation]:
    going = world.run(*JOIN, name="going")
    paused = world.run(*CHAIN, name="paused")
    world.engine.runs.pause(paused)
    return [
        HoldRun(run_id=going, actor=ACTOR, reason=Hold.PAUSED),
        UnholdRun(run_id=paused, actor=ACTOR, reason=Hold.PAUSED),
    ]


@group_of(UnholdRun)
def begin_a_scheduled_run(world: World) -> Sequence[Operation]:
    run = world.run(*CHAIN, limit=1, scheduled_for=world.day.now() + LEASE)
    return [UnholdRun(run_id=run, actor=ACTOR, reason=Hold.PAUSED, begins=True)]


@group_of(RetryRun)
def retry_a_failed_run(world: World) -> Sequence[Operation]:
    run = world.run(*CHAIN, limit=1)
    world.finish("plan")
    break_for_good(world, "work")
    return [RetryRun(run_id=run, actor=ACTOR)]


@group_of(RetryRun)
def retry_a_run_from_a_step(world: World) -> Sequence[Operation]:
    run = world.run(*CHAIN, limit=1)
    for name in ("plan", "work", "check"):
        world.finish(name)
    return [RetryRun(run_id=run, actor=ACTOR, step="work")]


@group_of(AdvanceRun)
def advance_a_run_that_was_left_blocked(world: World) -> Sequence[Operation]:
    run = world.run(*CHAIN)
    world.finish("plan")
    with raw(world.engine.settings.url) as store:
        yes = "true" if store.postgresql else "1"
        store(f"UPDATE holdfast_task SET blocked = {yes} WHERE id = ?", world.ids["work"])  # noqa: S608 - a constant
    return [AdvanceRun(run_id=run)]


@group_of(ExpectRunVersion, ExpectTaskVersion)
def tell_of_commands_for_other_versions(world: World) -> Sequence[Operation]:
    run = world.run(*CHAIN)
    world.start("plan")
    meant = VersionedCommand(name="task.cancel", expected_version=1, actor=ACTOR)
    later = VersionedCommand(name="run.pause", expected_version=9, actor=ACTOR, message_id="m1")
    return [
        ExpectTaskVersion(task_id=world.ids["plan"], command=meant),
        ExpectRunVersion(run_id=run, command=later),
    ]
