"""Commands for one version of a run or task, while others change it."""

from __future__ import annotations

from holdfast.engine.core.operation import EditTask, HoldRun
from holdfast.engine.state.expected_version import (
    ExpectRunVersion,
    ExpectTaskVersion,
    VersionedCommand,
)
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Stage
from tests.race.worlds import World


def _meant(version: int) -> VersionedCommand:
    return VersionedCommand(name="run.pause", expected_version=version, actor="bus")


def _told(world_state: tuple[object, ...]) -> int:
    return str(world_state).count("run.conflict")


def test_one_of_two_edits_for_one_version_is_made_and_the_other_is_told_as_a_conflict(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="only"))
        task = world.ids["only"]
        edits = [
            EditTask(task_id=task, actor=who, changes={"title": who}, expected_version=1)
            for who in ("ann", "bob")
        ]
        return [edits[0]], [edits[1]]

    for outcome in stage.explore(scenario):
        assert sorted(told[0] for told in (outcome.first[0], outcome.second[0])) == [False, True]
        assert _told(outcome.state) == 1


def test_a_version_that_is_expected_against_a_change_of_the_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="only"))
        pause = HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)
        return [ExpectRunVersion(run_id=run, command=_meant(1))], [pause]

    before, after = stage.explore(scenario)
    assert (before.first[0].met, _told(before.state)) == (True, 0)
    assert (after.first[0].met, _told(after.state)) == (False, 1)


def test_a_version_that_is_expected_against_a_cancel_is_never_told_over_it(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="only"))
        expected = ExpectTaskVersion(task_id=world.ids["only"], command=_meant(1))
        return [expected], [world.cancel("run")]

    before, after = stage.explore(scenario)
    assert before.first[0].met
    assert (after.first[0].met, after.first[0].status, _told(after.state)) == (
        False,
        "cancelled",
        0,
    )


def test_an_expected_version_that_has_passed_is_a_conflict_and_makes_none_for_the_current_one(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="only"))
        world.engine.runs.pause(run)
        return [ExpectRunVersion(run_id=run, command=_meant(1))], [
            ExpectRunVersion(run_id=run, command=_meant(2))
        ]

    for outcome in stage.explore(scenario):
        assert (outcome.first[0].met, outcome.second[0].met) == (False, True)
        assert _told(outcome.state) == 1
