"""Lines of commits in races: one base, one head for each number, nothing after a cancel."""

from __future__ import annotations

from holdfast.engine.core.operation import Lose, Release
from holdfast.engine.lines import KeepAside
from holdfast.model.workflow.line import Draft
from tests.race.explorer import Plans, Stage
from tests.race.workspace_runs import (
    BASE,
    LATE,
    LEFT,
    RIGHT,
    complete_with,
    open_line,
    start_twins,
)
from tests.race.worlds import World


def test_of_two_commits_on_one_head_one_becomes_the_next_and_the_other_hears_of_it(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world)
        return [complete_with(world, "left", LEFT)], [complete_with(world, "right", RIGHT)]

    for outcome in stage.explore(scenario):
        told = [outcome.first[0], outcome.second[0]]
        assert sorted(each[:2] for each in told) == [(False, "head_moved"), (True, None)]


def test_a_line_that_two_open_at_once_begins_at_one_base(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world, opened=False)
        return [open_line(world, "left", BASE)], [open_line(world, "right", LATE)]

    for outcome in stage.explore(scenario):
        assert outcome.first[0][1:] == outcome.second[0][1:]


def test_a_commit_against_a_cancel_of_its_run_is_first_or_nothing(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world)
        return [complete_with(world, "left", LEFT)], [world.cancel("run")]

    before, after = stage.explore(scenario)[:2]
    assert before.first[0][0] is True
    assert after.first[0][:2] == (False, "already_terminal")


def test_a_commit_of_an_expired_attempt_against_recovery_is_first_or_stale(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world)
        world.day.advance(31)
        return [complete_with(world, "left", LEFT)], [Lose(task_id=world.ids["left"], fence=1)]

    for outcome in stage.explore(scenario):
        assert outcome.first[0][0] is True or outcome.first[0][1] == "stale_token"


def test_a_stale_attempt_moves_no_head_while_its_heir_completes(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world)
        stale = complete_with(world, "left", LEFT)
        world.day.advance(31)
        world.engine.work.recover()
        world.start("left", "heir")
        return [stale], [complete_with(world, "left", RIGHT)]

    for outcome in stage.explore(scenario):
        assert outcome.first[0][:2] == (False, "stale_token")
        assert outcome.second[0][0] is True


def test_a_draft_is_kept_with_the_release_of_its_attempt_or_not_at_all(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world)
        draft = Draft(base=BASE, sha=LEFT)
        given = Release(task_id=world.ids["left"], fence=1, draft=draft)
        return [given], [world.cancel("run")]

    stage.explore(scenario)


def test_a_former_attempt_has_one_thing_kept_aside(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        start_twins(world)
        world.day.advance(31)
        world.engine.work.recover()
        world.start("left", "heir")
        kept = KeepAside(task_id=world.ids["left"], fence=2, former=1, base=BASE, sha=LEFT)
        return [kept], [complete_with(world, "left", RIGHT)]

    stage.explore(scenario)
