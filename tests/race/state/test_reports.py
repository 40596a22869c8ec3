"""What a worker reports against cancel, recovery, its own other attempts and the clock."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import (
    Complete,
    Fail,
    Lose,
    Operation,
    Release,
    Renew,
    ReopenTask,
    Report,
    ResetTask,
    RetryRun,
)
from holdfast.model.text import digest
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans, Stage
from tests.race.worlds import LEASE, World

ERROR = '"broken"'


def report(kind: type[Report], world: World, name: str, fence: int = 1) -> Operation:
    task = world.ids[name]
    if kind is Complete:
        return Complete(task_id=task, fence=fence, output='"made"', digest=digest('"made"'))
    if kind is Fail:
        return Fail(
            task_id=task, fence=fence, error=ERROR, digest=digest(ERROR), retryable=True, jitter=0
        )
    if kind is Renew:
        return Renew(task_id=task, fence=fence, lease=LEASE)
    return Release(task_id=task, fence=fence)


@pytest.mark.parametrize("kind", [Complete, Fail, Release, Renew])
def test_a_report_against_cancel_comes_first_or_changes_nothing(
    stage: Stage, kind: type[Report]
) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        world.start("only")
        return [report(kind, world, "only")], [world.cancel("only")]

    before, after = stage.explore(scenario)
    assert before.first[0][0] is True
    assert after.first[0][0] is False


@pytest.mark.parametrize("kind", [Complete, Fail, Release, Renew])
def test_a_report_of_a_stale_attempt_of_the_same_worker_changes_nothing(
    stage: Stage, kind: type[Report]
) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        world.start("only", "anna")
        world.day.advance(31)
        world.engine.work.recover()
        world.start("only", "anna")
        return [report(kind, world, "only", 1)], [report(Complete, world, "only", 2)]

    for outcome in stage.explore(scenario):
        assert outcome.first[0][:2] == (False, "stale_token")


@pytest.mark.parametrize("kind", [Complete, Fail, Release])
def test_a_report_of_an_expired_attempt_against_its_successors_claim(
    stage: Stage, kind: type[Report]
) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        world.start("only", "anna")
        world.day.advance(31)
        world.engine.work.recover()
        return [report(kind, world, "only", 1)], [world.claim("anna")]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", [Complete, Fail, Release])
def test_a_report_after_expiry_against_recovery_comes_first_or_is_stale(
    stage: Stage, kind: type[Report]
) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.start("only")
        world.day.advance(31)
        return [report(kind, world, "only")], [Lose(task_id=task, fence=1)]

    before, after = stage.explore(scenario)
    assert before.first[0][0] is True
    assert after.first[0][:2] == (False, "stale_token")


def test_the_same_result_twice_at_once_is_done_once_and_a_success_twice(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        world.start("only")
        return [world.complete("only")], [world.complete("only")]

    before, after = stage.explore(scenario)
    assert before.second == after.first == ((True, None, True, "done"),)


def test_one_of_two_different_results_stands(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("only")
        world.start("only")
        return [world.complete("only")], [world.complete("only", '"other"')]

    before, after = stage.explore(scenario)
    assert before.second[0][1] == after.first[0][1] == "result_conflict"


def test_a_renewal_in_time_beats_recovery(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.start("only")
        world.day.advance(29)
        return [report(Renew, world, "only")], [Lose(task_id=task, fence=1)]

    for outcome in stage.explore(scenario):
        assert outcome.first[0][0] is True
        assert outcome.second[0][0] is False


def test_a_renewal_too_late_loses_to_recovery(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.start("only")
        world.day.advance(30)
        return [report(Renew, world, "only")], [Lose(task_id=task, fence=1)]

    for outcome in stage.explore(scenario):
        assert outcome.first[0][0] is False
        assert outcome.second[0][0] is True


def test_a_lease_is_taken_back_once_by_two_recoveries(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        task = world.task("only")
        world.start("only")
        world.day.advance(31)
        return [Lose(task_id=task, fence=1)], [Lose(task_id=task, fence=1)]

    stage.explore(scenario)


@pytest.mark.parametrize("kind", [Complete, Fail, Release, Renew])
def test_a_report_against_a_reopening_of_what_it_needed_comes_first_or_is_stale(
    stage: Stage, kind: type[Report]
) -> None:
    def scenario(world: World) -> Plans:
        world.task("need")
        world.task("only", "need")
        world.finish("need")
        world.start("only")
        again = ReopenTask(task_id=world.ids["need"], actor="user")
        return [report(kind, world, "only")], [again]

    stage.explore(scenario)


def test_a_completion_against_a_reset_of_the_same_task(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="plan"), Step(id="work", needs=("plan",)))
        world.start("plan")
        reset = ResetTask(task_id=world.ids["plan"], actor="user")
        return [report(Complete, world, "plan")], [reset]

    stage.explore(scenario)


def test_a_completion_against_retry_from_the_step_before_is_superseded_or_redone(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="plan"), Step(id="work", needs=("plan",)))
        world.finish("plan")
        world.start("work")
        again = RetryRun(run_id=run, actor="user", step="plan")
        return [report(Complete, world, "work")], [again]

    stage.explore(scenario)
