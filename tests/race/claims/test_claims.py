"""A claim against whatever else may happen to the same task at the same time."""

from __future__ import annotations

from holdfast.engine.core.operation import CreateTasks, EditTask, HoldRun, HoldTask, Lose, Release
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World


def test_one_of_two_claims_gets_the_task(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        return [world.claim("anna")], [world.claim("bert")]

    orders = stage.explore(scenario)
    assert [outcome.first for outcome in orders] == [((("only", 1),),), ((),)]


def test_two_claims_by_id_start_the_task_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        return [world.claim_by_id("only", "anna")], [world.claim_by_id("only", "bert")]

    stage.explore(scenario)


def test_a_claim_by_id_and_a_claim_in_turn_start_the_task_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        return [world.claim_by_id("only", "anna")], [world.claim("bert")]

    stage.explore(scenario)


def test_a_claim_against_cancel_leaves_the_task_cancelled(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        return [world.claim("anna")], [world.cancel("only")]

    for outcome in stage.explore(scenario):
        assert "task.cancelled" in str(outcome.state)


def test_a_claim_by_id_against_cancel_leaves_the_task_cancelled(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        return [world.claim_by_id("only", "anna")], [world.cancel("only")]

    stage.explore(scenario)


def test_a_claim_against_cancel_of_the_run_leaves_every_task_cancelled(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="left"), Step(id="right"), Step(id="last", needs=("left", "right")))
        return [world.claim("anna", 2)], [world.cancel("run")]

    stage.explore(scenario)


def test_a_claim_against_pause_of_the_task_is_first_or_finds_it_held(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        return [world.claim("anna")], [HoldTask(task_id=task, actor="user", reason=Hold.PAUSED)]

    stage.explore(scenario)


def test_a_claim_against_pause_of_the_run_is_first_or_finds_it_held(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="left"), Step(id="right"))
        return [world.claim("anna")], [HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)]

    stage.explore(scenario)


def test_a_claim_against_an_edit_takes_the_task_as_it_was_or_as_it_is(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        edit = EditTask(task_id=task, actor="user", changes={"payload": '"new"', "priority": 9})
        return [world.claim("anna")], [edit]

    stage.explore(scenario)


def test_a_claim_against_release_starts_the_next_attempt_or_nothing(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.start("only")
        return [world.claim("anna")], [Release(task_id=task, fence=1)]

    stage.explore(scenario)


def test_a_claim_against_recovery_starts_the_next_attempt_or_nothing(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.start("only")
        world.day.advance(31)
        return [world.claim("anna")], [Lose(task_id=task, fence=1)]

    stage.explore(scenario)


def test_a_claim_against_new_work_takes_it_or_finds_nothing(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        created: CreateTasks = world.create("new")
        return [world.claim("anna")], [created]

    stage.explore(scenario)


def test_claims_of_several_never_share_a_task(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        for name in ("one", "two", "three"):
            world.task(name)
        return [world.claim("anna", 3)], [world.claim("bert", 3)]

    stage.explore(scenario)
