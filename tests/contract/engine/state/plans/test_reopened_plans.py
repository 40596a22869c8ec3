"""Plans that begin again with what they need, and who needs a part of a plan that does."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice
from holdfast.model.result import Refusal
from tests.contract.advised import advised
from tests.contract.engine.state.plans.test_plans import plan, states
from tests.contract.engine.state.test_child_tasks import spawn
from tests.contract.task_states import break_for_good, create, finish, take


def plan_within(engine: Engine, parent: str, *titles: str) -> tuple[str, list[str]]:
    """A plan that is a part of another, being made, and its parts."""
    inner = create(engine, "inner", parent=parent, enqueue=False)
    assert engine.tasks.start_planning(inner).ok
    return inner, [create(engine, title, parent=inner, enqueue=False) for title in titles]


def test_a_need_of_a_plan_can_be_done_again(engine: Engine) -> None:
    first = create(engine, "first")
    parent, (part,) = plan(engine, "part")
    assert engine.tasks.block(parent, [first]).ok
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, first)
    finish(engine, part)
    assert engine.tasks.reopen(first).ok
    assert states(engine, [first, part]) == ["ready", "blocked"]
    finish(engine, first)
    finish(engine, part)
    assert engine.tasks.get(parent).status == "done"


def test_a_part_before_a_plan_within_a_plan_can_be_done_again(engine: Engine) -> None:
    parent, (before,) = plan(engine, "before")
    inner, (part,) = plan_within(engine, parent, "part")
    assert engine.tasks.finalize_plan(inner).ok
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, before)
    finish(engine, part)
    assert engine.tasks.get(parent).status == "done"
    assert engine.tasks.reopen(before).ok
    finish(engine, before)
    finish(engine, part)
    assert engine.tasks.get(parent).status == "done"


def test_a_plan_that_was_cancelled_while_it_was_made_is_made_further(engine: Engine) -> None:
    parent, (part,) = plan(engine, "part")
    assert engine.tasks.cancel(parent).ok
    assert engine.tasks.reopen(parent).ok
    assert engine.tasks.reset(part).ok
    assert states(engine, [parent, part]) == ["planning", "idle"]
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, part)
    assert engine.tasks.get(parent).status == "done"


def test_a_task_that_needs_a_part_of_a_plan_that_runs_again_waits_for_the_part(
    engine: Engine,
) -> None:
    parent, (done, failed) = plan(engine, "done", "failed")
    after = create(engine, "after", needs=[done])
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    finish(engine, done)
    assert engine.tasks.cancel(failed).ok
    assert engine.tasks.get(after).state == "ready"
    assert engine.tasks.reopen(parent).ok
    assert states(engine, [done, after]) == ["ready", "blocked"]


def test_a_task_begun_after_a_part_of_a_plan_that_runs_again_begins_again_after_the_part(
    engine: Engine,
) -> None:
    top, (part,) = plan(engine, "part")
    inner, (deep, open_part) = plan_within(engine, top, "deep", "open")
    began, ended, further = (create(engine, name, needs=[deep]) for name in ("a", "b", "c"))
    last = create(engine, "last", needs=[further])
    waits = create(engine, "waits", needs=[top])
    for each in (inner, top):
        assert engine.tasks.finalize_plan(each, graph={}).ok
    assert engine.tasks.block(open_part, [deep]).ok
    for each in (part, deep, ended, further, last):
        finish(engine, each)
    held = take(engine, began)
    finish(engine, open_part)
    finish(engine, waits)
    assert engine.tasks.reopen(inner).ok
    assert states(engine, [began, ended, further, last, waits]) == ["blocked"] * 5
    assert not engine.work.complete(began, held.token, None).ok
    assert states(engine, [part, deep, open_part]) == ["done", "ready", "blocked"]
    for each in (deep, open_part, began, ended, further, last, waits):
        finish(engine, each)
    assert engine.tasks.get(top).status == "done"


def test_a_part_that_waits_for_another_waits_again_when_their_plan_runs_again(
    engine: Engine,
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent, graph={three: [one]}).ok
    finish(engine, one)
    break_for_good(engine, two)
    assert engine.tasks.reopen(parent).ok
    assert states(engine, [one, two, three]) == ["ready", "ready", "blocked"]


def test_children_that_a_part_has_made_are_superseded_when_its_plan_runs_again(
    engine: Engine,
) -> None:
    parent, (part,) = plan(engine, "part")
    assert engine.tasks.finalize_plan(parent).ok
    attempt = take(engine, part)
    made = spawn(engine, attempt)
    assert engine.work.complete(part, attempt.token, None).ok
    assert engine.tasks.reopen(parent).ok
    assert engine.tasks.get(made).superseded


def test_parts_that_begin_again_while_a_plan_around_them_is_made_are_idle(engine: Engine) -> None:
    top, _ = plan(engine, "other")
    inner, (one, two) = plan_within(engine, top, "one", "two")
    assert engine.tasks.finalize_plan(inner).ok
    for _ in range(2):
        for each in (one, two):
            finish(engine, each)
        assert engine.tasks.reopen(inner).ok
        assert [engine.tasks.get(each).status for each in (one, two)] == ["idle", "idle"]
        assert [engine.tasks.get(each).blocked for each in (one, two)] == [False, True]
    for each in (one, two):
        finish(engine, each)
    assert engine.tasks.reopen(one).ok
    assert [engine.tasks.get(each).status for each in (one, two)] == ["queued", "idle"]


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_part_that_was_begun_by_hand_goes_back_to_the_queue_with_what_it_needs(
    engine: Engine, status: str
) -> None:
    first = create(engine, "first")
    parent, _ = plan(engine, "other")
    part = create(engine, "part", parent=parent, needs=[first])
    finish(engine, first)
    if status == "running":
        take(engine, part)
    assert engine.tasks.get(part).status == status
    assert engine.tasks.reopen(first).ok
    assert engine.tasks.get(part).state == "blocked"
    finish(engine, first)
    finish(engine, part)


def test_a_task_that_needs_a_part_of_a_plan_that_is_reset_waits_for_the_part(
    engine: Engine,
) -> None:
    parent, (part,) = plan(engine, "part")
    after = create(engine, "after", needs=[part])
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, part)
    assert engine.tasks.reset(parent).ok
    assert states(engine, [part, after]) == ["idle", "blocked"]


@pytest.mark.parametrize("status", ["queued", "running", "done", "failed"])
def test_a_plan_is_not_reset_once_somebody_outside_has_begun_with_a_part_of_it(
    engine: Engine, status: str
) -> None:
    top, _ = plan(engine)
    inner, (deep, last) = plan_within(engine, top, "deep", "last")
    other, _ = plan(engine)
    after = create(engine, "after", parent=other, needs=[deep], enqueue=False)
    for each in (inner, top, other):
        assert engine.tasks.finalize_plan(each).ok
    for each in (deep, last):
        finish(engine, each)
    begin_and_bring(engine, after, status)
    before = [engine.tasks.get(each) for each in (top, inner, deep, last, after)]
    refused = engine.tasks.reset(top)
    assert refused.reason is Refusal.STARTED_DEPENDENTS
    assert advised(refused) == [Advice(Action.REOPEN, top)]
    assert [engine.tasks.get(each.id) for each in before] == before
    assert engine.tasks.reopen(top).ok
    assert states(engine, [deep, last, after]) == ["ready", "blocked", "blocked"]


def begin_and_bring(engine: Engine, task: str, status: str) -> None:
    """Begin with a task, and leave it so."""
    attempt = take(engine, task)
    match status:
        case "queued":
            assert engine.work.release(task, attempt.token).ok
        case "done":
            assert engine.work.complete(task, attempt.token, None).ok
        case "failed":
            assert engine.work.fail(task, attempt.token, "broken", retryable=False).ok
    assert engine.tasks.get(task).status == status


def test_a_plan_is_reset_when_nobody_but_its_own_parts_has_begun_with_them(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    other, (apart,) = plan(engine, "apart")
    for each in (parent, other):
        assert engine.tasks.finalize_plan(each).ok
    below = create(engine, "below", parent=one)
    reads = create(engine, "reads", needs=[apart, below])
    for each in (apart, below, reads, one, two):
        finish(engine, each)
    assert engine.tasks.reset(parent).ok
    assert states(engine, [one, two, below, reads]) == ["idle", "idle", "done", "done"]


def test_a_task_that_is_no_plan_is_not_reset_once_what_it_made_has_begun_with_it(
    engine: Engine,
) -> None:
    attempt = take(engine, create(engine, "maker"))
    made = spawn(engine, attempt)
    assert engine.tasks.block(made, [attempt.task.id]).ok
    assert engine.work.complete(attempt.task.id, attempt.token, None).ok
    take(engine, made)
    assert engine.tasks.reset(attempt.task.id).reason is Refusal.STARTED_DEPENDENTS


def test_a_plan_is_reset_when_somebody_has_begun_with_what_it_made_before_it_was_planned(
    engine: Engine,
) -> None:
    attempt = take(engine, create(engine, "function"))
    parent = attempt.task.id
    made = spawn(engine, attempt)
    reads = create(engine, "reads", needs=[made])
    for each in (made, reads):
        finish(engine, each)
    assert engine.work.release(parent, attempt.token).ok
    assert engine.tasks.reset(parent).ok
    assert engine.tasks.start_planning(parent).ok
    part = create(engine, "part", parent=parent, enqueue=False)
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, part)
    assert engine.tasks.reset(parent).ok
    assert states(engine, [part, reads]) == ["idle", "done"]


@pytest.mark.parametrize("named", ["plan", "part"])
def test_a_plan_that_runs_again_is_not_blocked_by_what_is_done(engine: Engine, named: str) -> None:
    parent, (part,) = plan(engine, "part")
    first = create(engine, "first")
    assert engine.tasks.finalize_plan(parent).ok
    assert engine.tasks.block(parent, [first]).ok
    assert engine.tasks.cancel(part).ok
    finish(engine, first)
    assert engine.tasks.reopen(parent if named == "plan" else part).ok
    assert states(engine, [parent, part]) == ["in progress 0/1", "ready"]


def test_a_plan_goes_on_whose_failed_part_came_back_with_what_it_needs(engine: Engine) -> None:
    first = create(engine, "first")
    parent, (part, other) = plan(engine, "part", "other")
    assert engine.tasks.block(part, [first]).ok
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    finish(engine, first)
    assert engine.tasks.cancel(part).ok
    assert engine.tasks.get(other).state == "stalled"
    assert engine.tasks.reopen(first).ok
    for each in (first, part, other):
        finish(engine, each)
    assert engine.tasks.get(parent).status == "done"


def test_a_plan_stays_failed_while_another_part_of_it_has_failed(engine: Engine) -> None:
    first = create(engine, "first")
    parent, (part, other, failed) = plan(engine, "part", "other", "failed")
    assert engine.tasks.block(part, [first]).ok
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    finish(engine, first)
    break_for_good(engine, failed)
    assert engine.tasks.reopen(first).ok
    assert states(engine, [parent, other]) == ["failed", "stalled"]
    assert engine.tasks.retry(failed).ok
    for each in (first, part, other, failed):
        finish(engine, each)
    assert engine.tasks.get(parent).status == "done"


@pytest.mark.parametrize("when", ["planned", "before"])
def test_a_plan_cannot_need_what_is_a_part_of_it(engine: Engine, when: str) -> None:
    """All of it would wait for that, what is within that part too."""
    parent = create(engine, "plan", enqueue=False)
    within = create(engine, "within", parent=parent, enqueue=False)
    if when == "before":
        assert engine.tasks.block(parent, [within]).ok
    assert engine.tasks.start_planning(parent).ok
    assert engine.tasks.start_planning(within).ok
    part = create(engine, "part", parent=within, enqueue=False)
    if when == "planned":
        for each in (within, part):
            with pytest.raises(InvalidInput, match=f"^needs: {each} is a part of .* cycle"):
                engine.tasks.block(parent, [each])
    assert engine.tasks.finalize_plan(within).ok
    if when == "before":
        with pytest.raises(InvalidInput, match=f"^needs: {within} is a part of .* cycle"):
            engine.tasks.finalize_plan(parent)
        assert engine.tasks.unblock(parent).ok
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, part)
    assert engine.tasks.get(parent).status == "done"
