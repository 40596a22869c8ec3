"""Loops under every interleaving: items are made once, started in turn, and end their loop once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.engine.core.operation import (
    AdvanceRun,
    CancelTask,
    HoldRun,
    Operation,
    ReopenTask,
    RetryRun,
)
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Stage
from tests.race.racers import Racer
from tests.race.state.test_runs import failure
from tests.race.test_explorer import changed
from tests.race.workflow_states import LAST, STORIES, loop, planned_loop, running_items
from tests.race.worlds import World

TOLD = '["a","b"]'


def test_the_last_two_items_end_at_once_and_end_their_loop_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        running_items(world)
        return [world.complete("one.0")], [world.complete("one.1")]

    for outcome in stage.explore(scenario):
        assert outcome.history("build").count("task.done") == 1
        assert outcome.history("last").count("task.unblocked") == 1


def test_two_items_end_at_once_and_the_next_two_begin_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(loop(), given=list("abcd"))
        world.start("one.0")
        world.start("one.1")
        return [world.complete("one.0")], [world.complete("one.1")]

    for outcome in stage.explore(scenario):
        for item in range(4):
            assert outcome.history(f"one.{item}").count("task.created") == 1


def test_a_completion_that_expands_a_loop_against_cancel_of_the_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        planned_loop(world)
        return [world.complete("plan", TOLD)], [world.cancel("run")]

    for outcome in stage.explore(scenario):
        assert set(outcome.statuses.values()) <= {"done", "cancelled"}


def test_a_completion_that_expands_a_loop_against_pause_of_the_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = planned_loop(world)
        pause = HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)
        return [world.complete("plan", TOLD)], [pause]

    stage.explore(scenario)


def test_two_advances_of_a_loop_that_was_left_unexpanded(
    store_url: str, stage: Stage, tmp_path: Path
) -> None:
    files = changed("ripe_tasks", "AND task.status = 'queued'", "AND 1 = 0", tmp_path / "sql")
    with closing(Racer(store_url, "careless", stage.day, files)) as careless:

        def scenario(world: World) -> Plans:
            run = planned_loop(world)
            careless.perform([world.complete("plan", TOLD)])
            return [AdvanceRun(run_id=run)], [AdvanceRun(run_id=run)]

        for outcome in stage.explore(scenario):
            assert outcome.history("build").count("task.expanded") == 1
            assert outcome.history("build.0").count("task.created") == 1


def test_retry_of_a_run_against_the_completion_of_an_item(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = running_items(world)
        world.engine.commits.submit(failure(world, "one.0")).result()
        return [RetryRun(run_id=run, actor="user")], [world.complete("one.1")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["one.0"] == "queued"
        assert outcome.statuses["one.1"] == "done"


def test_the_failure_of_an_item_against_the_end_of_another(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(loop(), given=list("abc"))
        world.start("one.0")
        world.start("one.1")
        return [failure(world, "one.0")], [world.complete("one.1")]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", [RetryRun, ReopenTask])
def test_a_loop_begun_again_against_a_claim_in_it(
    stage: Stage, kind: type[RetryRun | ReopenTask]
) -> None:
    def scenario(world: World) -> Plans:
        keyed = Step(id="one", concurrency=world.concurrency(1))
        run = world.run(Step(id="plan"), loop(keyed, over="steps.plan", needs=("plan",)))
        world.finish("plan", STORIES)
        again: Operation = (
            RetryRun(run_id=run, actor="user", step="plan")
            if kind is RetryRun
            else ReopenTask(task_id=world.ids["plan"], actor="user")
        )
        return [again], [world.claim("anna")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["plan"] in {"queued", "running"}
        assert outcome.history("one.0").count("task.cancelled") == 1


def test_an_item_reopened_against_the_end_of_the_loop(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        running_items(world)
        world.engine.commits.submit(world.complete("one.0")).result()
        reopen = ReopenTask(task_id=world.ids["one.0"], actor="user")
        return [reopen], [world.complete("one.1")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["build"] == "queued"


def test_cancel_of_a_loop_against_the_end_of_its_last_item(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(loop(), LAST, given=["a"])
        world.start("one.0")
        return [CancelTask(task_id=world.ids["build"], actor="user")], [world.complete("one.0")]

    stage.explore(scenario)
