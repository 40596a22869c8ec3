"""Advance over what a crash left half done: whoever heals it, heals it once."""

from __future__ import annotations

from holdfast.engine.core.operation import AdvanceRun
from holdfast.model.workflow.graph import Step
from tests.contract.crash_states import take_back_an_unblocking, take_back_the_end
from tests.race.explorer import Plans, Stage
from tests.race.scenarios import CHAIN
from tests.race.worlds import World

APART = (Step(id="left"), Step(id="right"))


def blocked_though_its_need_is_done(world: World, url: str) -> AdvanceRun:
    run = world.run(*CHAIN)
    world.finish("plan")
    take_back_an_unblocking(url, world.ids["work"])
    return AdvanceRun(run_id=run)


def running_though_all_is_done(world: World, url: str) -> AdvanceRun:
    run = world.run(Step(id="only"))
    world.finish("only")
    take_back_the_end(url, run)
    return AdvanceRun(run_id=run)


def running_though_a_task_has_failed(world: World, url: str) -> AdvanceRun:
    run = world.run(*APART)
    left = world.start("left")
    assert world.engine.work.fail(left.task.id, left.token, "broken", retryable=False).ok
    take_back_the_end(url, run)
    return AdvanceRun(run_id=run)


def test_advance_against_advance_unblocks_once(stage: Stage, store_url: str) -> None:
    def scenario(world: World) -> Plans:
        advance = blocked_though_its_need_is_done(world, store_url)
        return [advance], [advance]

    before, after = stage.explore(scenario)
    assert (before.first, before.second) == (((True, False),), ((False, False),))
    assert (after.second, after.first) == (((True, False),), ((False, False),))
    assert str(before.state).count("task.unblocked") == 1


def test_advance_against_advance_completes_the_run_once(stage: Stage, store_url: str) -> None:
    def scenario(world: World) -> Plans:
        advance = running_though_all_is_done(world, store_url)
        return [advance], [advance]

    for outcome in stage.explore(scenario):
        assert sorted([*outcome.first, *outcome.second]) == [(False, False), (False, True)]
        assert str(outcome.state).count("run.completed") == 1


def test_advance_against_advance_fails_the_run_once(stage: Stage, store_url: str) -> None:
    def scenario(world: World) -> Plans:
        advance = running_though_a_task_has_failed(world, store_url)
        return [advance], [advance]

    for outcome in stage.explore(scenario):
        assert str(outcome.state).count("run.failed") == 1


def test_advance_against_a_claim_of_what_it_unblocks(stage: Stage, store_url: str) -> None:
    def scenario(world: World) -> Plans:
        advance = blocked_though_its_need_is_done(world, store_url)
        return [advance], [world.claim("anna")]

    before, after = stage.explore(scenario)
    assert before.second == ((("work", 1),),)
    assert after.second == ((),)


def test_advance_that_holds_a_failed_run_against_a_claim(stage: Stage, store_url: str) -> None:
    def scenario(world: World) -> Plans:
        advance = running_though_a_task_has_failed(world, store_url)
        return [advance], [world.claim("anna")]

    before, after = stage.explore(scenario)
    assert (before.second, after.second) == (((),), ((("right", 1),),))


def test_advance_against_cancel_of_the_run_ends_it_once(stage: Stage, store_url: str) -> None:
    def scenario(world: World) -> Plans:
        advance = running_though_all_is_done(world, store_url)
        return [advance], [world.cancel("run")]

    before, after = stage.explore(scenario)
    assert "run.cancelled" not in str(before.state)
    assert "run.completed" not in str(after.state)
