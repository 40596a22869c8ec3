"""A plan is put in order, gives the list of what its parts gave, and can be planned anew."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.status import PlanningPhase, Status
from tests.contract.engine.state.plans.test_plans import plan, states
from tests.contract.task_states import MISSING_TASK, break_for_good, create, finish


def order(engine: Engine, plan_id: str) -> list[str]:
    return [task.title for task in engine.tasks.children(plan_id)]


def test_a_plan_gives_the_list_of_what_its_children_gave_in_their_order(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.reorder_plan(parent, [three, one, two]).ok
    assert engine.tasks.finalize_plan(parent).ok
    for child, output in ((three, {"n": 3}), (one, None), (two, [2])):
        finish(engine, child, output)
    assert engine.tasks.get(parent).output == [{"n": 3}, None, [2]]
    assert engine.tasks.reopen(parent).ok
    assert engine.tasks.get(parent).output is None


def test_a_plan_that_failed_gives_nothing(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    finish(engine, one)
    break_for_good(engine, two)
    task = engine.tasks.get(parent)
    assert (task.status, task.output, task.error) == (Status.FAILED, None, "broken")


def test_children_are_reordered_while_the_plan_is_made_and_new_ones_come_last(
    engine: Engine,
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.reorder_plan(parent, [three, one, two]).ok
    before = [len(engine.tasks.events(each)) for each in (one, two, three)]
    assert engine.tasks.reorder_plan(parent, [three, one, two]).ok
    assert [len(engine.tasks.events(each)) for each in (one, two, three)] == before
    create(engine, "four", parent=parent, enqueue=False)
    assert order(engine, parent) == ["three", "one", "two", "four"]
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, [three, one, two]) == ["ready", "blocked", "blocked"]
    refused = engine.tasks.reorder_plan(parent, [one, two, three])
    assert (refused.reason, refused.detail) == (
        Refusal.INVALID_TRANSITION,
        "only a plan that is being made can be reordered",
    )
    assert engine.tasks.reorder_plan(MISSING_TASK, []).reason is Refusal.NOT_FOUND


def test_an_order_names_each_idle_child_once(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    other = create(engine, enqueue=False)
    wrong = {
        f"{other} is no idle child": [one, two, other],
        f"name every child .*{two} is missing": [one],
        "names a task twice": [one, one, two],
    }
    for reason, given in wrong.items():
        with pytest.raises(InvalidInput, match=f"^order: {reason}"):
            engine.tasks.reorder_plan(parent, given)
    assert order(engine, parent) == ["one", "two"]


def test_an_idle_child_of_a_finalized_plan_is_refused_and_a_queued_one_is_its_last(
    engine: Engine,
) -> None:
    parent, (one,) = plan(engine, "one")
    assert engine.tasks.edit(one, {"position": 7}).ok
    assert engine.tasks.finalize_plan(parent).ok
    with pytest.raises(InvalidInput, match=f"^parent: {parent} is finalized, and nothing would"):
        create(engine, "late", parent=parent, enqueue=False)
    late = create(engine, "late", parent=parent)
    finish(engine, one)
    assert engine.tasks.get(parent).status is Status.IDLE
    finish(engine, late, "late")
    assert engine.tasks.get(parent).output == ["output", "late"]


@pytest.mark.parametrize("ended", ["done", "failed", "cancelled"])
def test_a_plan_that_is_reset_is_planned_anew_in_another_order(engine: Engine, ended: str) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    if ended == "done":
        finish(engine, one)
        finish(engine, two)
    elif ended == "failed":
        break_for_good(engine, one)
    else:
        assert engine.tasks.cancel(parent).ok
    assert engine.tasks.get(parent).status == ended
    assert engine.tasks.reset(parent).ok
    assert states(engine, [parent, one, two]) == ["planning", "idle", "idle"]
    assert engine.tasks.get(parent).planning_phase is PlanningPhase.ACTIVE
    assert engine.tasks.reorder_plan(parent, [two, one]).ok
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, [one, two]) == ["blocked", "ready"]
    finish(engine, two, "second")
    finish(engine, one, "first")
    assert engine.tasks.get(parent).output == ["second", "first"]


def test_a_reset_reaches_the_plans_inside_a_plan_and_what_waits_for_them(engine: Engine) -> None:
    top, (first, inner) = plan(engine, "first", "inner")
    assert engine.tasks.start_planning(inner).ok
    one, two = (create(engine, name, parent=inner, enqueue=False) for name in ("one", "two"))
    for each in (inner, top):
        assert engine.tasks.finalize_plan(each).ok
    break_for_good(engine, first)
    assert engine.tasks.get(top).status is Status.FAILED
    assert engine.tasks.reset(top).ok
    assert states(engine, [top, inner]) == ["planning", "planning"]
    assert states(engine, [first, one, two]) == ["idle"] * 3
    assert engine.tasks.reorder_plan(top, [inner, first]).ok
    assert engine.tasks.finalize_plan(top).ok
    assert engine.tasks.finalize_plan(inner, graph={one: [two]}).ok
    for child in (two, one, first):
        finish(engine, child)
    assert engine.tasks.get(top).output == [["output", "output"], "output"]


def test_a_reset_keeps_what_a_child_was_created_to_need(engine: Engine) -> None:
    parent, (one,) = plan(engine, "one")
    two = create(engine, "two", parent=parent, needs=(one,), enqueue=False)
    outside = create(engine, "outside")
    assert engine.tasks.block(one, on=[outside]).ok
    for _ in range(2):
        assert engine.tasks.finalize_plan(parent, graph={}).ok
        assert engine.tasks.cancel(parent).ok
        assert engine.tasks.reset(parent).ok
        assert engine.tasks.blocked_by(two) == [one]
        assert engine.tasks.blocked_by(one) == [outside]
        assert [engine.tasks.get(each).blocked for each in (one, two)] == [True, True]


def test_a_plan_whose_needs_would_close_a_circle_is_refused(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.block(one, on=[two]).ok
    with pytest.raises(InvalidInput, match="cycle"):
        engine.tasks.finalize_plan(parent)
    assert engine.tasks.reorder_plan(parent, [two, one]).ok
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, [one, two]) == ["blocked", "ready"]


def test_a_plan_that_is_planned_again_before_anything_of_it_began_has_its_new_order(
    engine: Engine,
) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    for each in (two, one):
        assert engine.tasks.reset(each).ok
    assert engine.tasks.start_planning(parent).ok
    assert [engine.tasks.get(each).blocked for each in (one, two)] == [False, False]
    assert engine.tasks.reorder_plan(parent, [two, one]).ok
    assert engine.tasks.finalize_plan(parent).ok
    for each in (two, one):
        finish(engine, each)
    assert engine.tasks.get(parent).status is Status.DONE


def test_needs_between_children_that_were_set_before_the_planning_stand(engine: Engine) -> None:
    parent = create(engine, "feature", enqueue=False)
    one, two = (create(engine, name, parent=parent, enqueue=False) for name in ("one", "two"))
    assert engine.tasks.block(one, on=[two]).ok
    assert engine.tasks.start_planning(parent).ok
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    assert states(engine, [one, two]) == ["blocked", "ready"]


def test_the_tasks_below_a_task_are_listed_newest_first_or_in_their_order(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    plan(engine, "stranger")
    listed = engine.tasks.list
    assert [task.id for task in listed(parent=parent)] == [three, two, one]
    assert [task.id for task in listed(parent=parent, limit=1, after=three)] == [two]
    assert engine.tasks.cancel(two).ok
    assert [task.id for task in listed(parent=parent, status="cancelled")] == [two]
    assert [task.id for task in listed(parent=parent, agent="nobody")] == []
    assert [task.id for task in engine.tasks.children(parent)] == [one, two, three]
    with pytest.raises(InvalidInput, match="of a run or of a parent"):
        listed(parent=parent, run="r_" + "0" * 20)


def test_needs_of_a_child_set_by_hand_are_kept_when_its_plan_is_reset(
    engine: Engine,
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.block(one, [three]).ok
    assert engine.tasks.finalize_plan(parent, graph={two: [one]}).ok
    assert engine.tasks.cancel(parent).ok
    assert engine.tasks.reset(parent).ok
    with pytest.raises(InvalidInput, match=r"^graph: the needs form a cycle"):
        engine.tasks.finalize_plan(parent)
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    assert states(engine, [one, two, three]) == ["blocked", "ready", "ready"]


@pytest.mark.parametrize("way", ["beside", "behind the plan", "before the plan"])
def test_a_circle_through_a_task_outside_the_plan_is_refused(engine: Engine, way: str) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    if way == "beside":
        outside = create(engine, "outside", needs=(two,))
        assert engine.tasks.block(one, [outside]).ok
    elif way == "behind the plan":
        outside = create(engine, "outside", needs=(parent,))
        assert engine.tasks.block(two, [outside]).ok
    else:
        outside = create(engine, "outside", needs=(one,))
        assert engine.tasks.block(parent, [outside]).ok
    with pytest.raises(InvalidInput, match=f"^graph: the needs form a cycle: .*{outside}"):
        engine.tasks.finalize_plan(parent)
    assert states(engine, [parent, one, two])[0] == "planning"
    assert engine.tasks.unblock(outside).ok
    assert engine.tasks.finalize_plan(parent).ok


def test_a_circle_through_finalized_plans_is_refused(engine: Engine) -> None:
    (first, (one,)), (second, (two,)) = (plan(engine, each) for each in ("one", "two"))
    for each in (first, second):
        assert engine.tasks.finalize_plan(each).ok
    assert engine.tasks.block(second, [first]).ok
    for each in (two, second, first):
        with pytest.raises(InvalidInput, match="would need itself"):
            engine.tasks.block(one, [each])
    finish(engine, one)
    finish(engine, two)


def test_a_need_that_is_done_closes_no_circle(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    outside = create(engine, "outside")
    finish(engine, outside)
    # As a release left it that reset a plan though somebody had begun with a part of it.
    needs = [(outside, two, engine.tasks.get(outside).version)]
    engine.database.transact(lambda tx: tx.run("insert_needs", rows=needs))
    assert engine.tasks.block(one, [outside]).ok
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, [one, two]) == ["ready", "blocked"]
