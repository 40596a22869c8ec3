"""A run and its tasks: cancel, advance, rollback and failure while its workers report."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import (
    AdvanceRun,
    Fail,
    HoldRun,
    ReopenTask,
    ResetTask,
    RetryRun,
    RetryTask,
    RunNow,
    UnholdRun,
)
from holdfast.model.status import Hold
from holdfast.model.text import digest
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World

CHAIN = (Step(id="plan"), Step(id="work", needs=("plan",)), Step(id="check", needs=("work",)))
JOIN = (Step(id="left"), Step(id="right"), Step(id="last", needs=("left", "right")))


def failure(world: World, name: str) -> Fail:
    error = '"broken"'
    return Fail(
        task_id=world.ids[name],
        fence=world.fences[name],
        error=error,
        digest=digest(error),
        retryable=False,
        jitter=0,
    )


def test_cancel_of_a_run_against_the_completion_of_its_tasks(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*JOIN)
        world.start("left")
        world.start("right")
        return [world.cancel("run")], [world.complete("right"), world.complete("left")]

    stage.explore(scenario)


def test_cancel_of_a_run_against_its_last_completion_ends_it_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="only"))
        world.start("only")
        return [world.cancel("run")], [world.complete("only")]

    stage.explore(scenario)


def test_two_advances_do_what_one_does(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(*CHAIN)
        world.finish("plan")
        return [AdvanceRun(run_id=run)], [AdvanceRun(run_id=run)]

    first, second = stage.explore(scenario)
    assert first == second


def test_advance_against_a_claim(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(*CHAIN)
        world.finish("plan")
        return [AdvanceRun(run_id=run)], [world.claim("anna")]

    stage.explore(scenario)


def test_advance_against_a_completion_unblocks_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(*CHAIN)
        world.start("plan")
        return [AdvanceRun(run_id=run)], [world.complete("plan")]

    stage.explore(scenario)


def test_a_completion_that_unblocks_against_a_claim(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*CHAIN)
        world.start("plan")
        return [world.complete("plan")], [world.claim("anna")]

    stage.explore(scenario)


def test_two_completions_of_siblings_unblock_their_successor_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*JOIN)
        world.start("left")
        world.start("right")
        return [world.complete("left")], [world.complete("right")]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("task.unblocked") == 1


def test_two_last_completions_complete_the_run_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="left"), Step(id="right"))
        world.start("left")
        world.start("right")
        return [world.complete("left")], [world.complete("right")]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("run.completed") == 1


def test_a_final_failure_against_a_claim_of_a_sibling(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="left"), Step(id="right"))
        world.start("left")
        return [failure(world, "left")], [world.claim("anna")]

    stage.explore(scenario)


def test_a_final_failure_against_the_completion_of_a_sibling(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*JOIN)
        world.start("left")
        world.start("right")
        return [failure(world, "left")], [world.complete("right")]

    stage.explore(scenario)


def test_two_final_failures_fail_the_run_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(*JOIN)
        world.start("left")
        world.start("right")
        return [failure(world, "left")], [failure(world, "right")]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("run.failed") == 1


def test_a_retry_of_the_run_against_the_end_of_what_still_runs(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(*JOIN)
        world.start("left")
        world.start("right")
        world.engine.tasks.cancel(world.ids["left"])
        return [RetryRun(run_id=run, actor="user")], [world.complete("right")]

    stage.explore(scenario)


@pytest.mark.parametrize("rollback", [ResetTask, RetryTask, ReopenTask])
def test_a_rollback_against_cancel_of_the_run_never_brings_half_of_it_back(
    stage: Stage, rollback: type[ResetTask | RetryTask | ReopenTask]
) -> None:
    def scenario(world: World) -> Plans:
        world.run(*CHAIN)
        world.finish("plan")
        if rollback is RetryTask:
            world.engine.tasks.cancel(world.ids["work"])
        named = world.ids["work" if rollback is RetryTask else "plan"]
        return [rollback(task_id=named, actor="user")], [world.cancel("run")]

    stage.explore(scenario)


@pytest.mark.parametrize("rollback", [ResetTask, ReopenTask])
def test_a_rollback_of_a_task_against_its_cancel(
    stage: Stage, rollback: type[ResetTask | ReopenTask]
) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        return [rollback(task_id=task, actor="user")], [world.cancel("only")]

    stage.explore(scenario)


@pytest.mark.parametrize("rollback", [ResetTask, ReopenTask])
def test_a_rollback_in_a_run_against_a_claim_of_the_next_step(
    stage: Stage, rollback: type[ResetTask | ReopenTask]
) -> None:
    def scenario(world: World) -> Plans:
        world.run(*CHAIN)
        world.finish("plan")
        return [rollback(task_id=world.ids["plan"], actor="user")], [world.claim("anna")]

    stage.explore(scenario)


@pytest.mark.parametrize("rollback", [ResetTask, ReopenTask])
def test_a_rollback_without_a_run_against_a_claim_of_the_next_task(
    stage: Stage, rollback: type[ResetTask | ReopenTask]
) -> None:
    def scenario(world: World) -> Plans:
        world.task("plan")
        world.task("work", "plan")
        world.finish("plan")
        return [rollback(task_id=world.ids["plan"], actor="user")], [world.claim("anna")]

    stage.explore(scenario)


def test_pause_against_resume(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(*CHAIN)
        pause = HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)
        return [pause], [UnholdRun(run_id=run, actor="user", reason=Hold.PAUSED)]

    stage.explore(scenario)


def test_pause_of_a_run_against_run_now_of_its_task(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(*CHAIN)
        pause = HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)
        return [pause], [RunNow(task_id=world.ids["plan"], actor="user")]

    stage.explore(scenario)


def test_a_task_created_far_below_what_is_cancelled_meanwhile(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        parent = world.task("parent")
        child = world.task("child", parent=parent)
        return [world.create("grandchild", parent=child)], [world.cancel("parent")]

    for outcome in stage.explore(scenario):
        assert "queued" not in str(outcome.state)
