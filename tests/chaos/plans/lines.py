"""Groups of what attempts do to lines of commits."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import Complete, Fail, Operation, Release, RetryRun
from holdfast.engine.lines import KeepAside, OpenLine
from holdfast.model.task import Assignment
from holdfast.model.workflow.graph import OnFailure
from holdfast.model.workflow.line import Draft
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR
from tests.race.workspace_runs import (
    BASE,
    LEFT,
    RIGHT,
    complete_with,
    fail_with,
    open_line,
    reach_landing,
    start_twins,
    write_item,
)
from tests.race.worlds import World


@group_of(OpenLine)
def open_line_that_is_new(world: World) -> Sequence[Operation]:
    start_twins(world, opened=False)
    return [open_line(world, "left", BASE), open_line(world, "right", BASE)]


@group_of(Complete)
def complete_with_a_commit(world: World) -> Sequence[Operation]:
    start_twins(world)
    return [complete_with(world, "left", LEFT)]


@group_of(Release, Fail)
def give_back_with_a_draft_and_fail_with_what_is_left(world: World) -> Sequence[Operation]:
    start_twins(world)
    draft = Draft(base=BASE, sha=LEFT)
    given = Release(task_id=world.ids["left"], fence=world.fences["left"], draft=draft)
    return [given, fail_with(world, "right", RIGHT)]


@group_of(Fail)
def fail_a_landing_whose_line_begins_anew(world: World) -> Sequence[Operation]:
    reach_landing(world)
    return [fail_with(world, "land.0", RIGHT, anew=True)]


def fail_landing(world: World, held: Assignment) -> None:
    told = "a conflict"
    failed = world.engine.work.fail(held.task_id, held.token, told, retryable=False, anew=True)
    assert failed.ok


@group_of(RetryRun)
def retry_an_item_whose_landing_met_a_conflict(world: World) -> Sequence[Operation]:
    fail_landing(world, reach_landing(world, OnFailure(action="goto", step="write")))
    fail_landing(world, write_item(world, RIGHT))
    return [RetryRun(run_id=world.ids["run"], actor=ACTOR)]


@group_of(KeepAside)
def keep_aside_what_a_lost_attempt_left(world: World) -> Sequence[Operation]:
    start_twins(world)
    world.day.advance(31)
    world.engine.work.recover()
    world.start("left", "heir")
    return [KeepAside(task_id=world.ids["left"], fence=2, former=1, base=BASE, sha=LEFT)]
