"""A plan and its children move only while they are where the plan has them, each guard alone."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Hold, PlanningPhase, Status
from holdfast.model.task import NewTask
from tests.contract.engine.state.plans.test_plans import plan, states
from tests.contract.raw_store import raw
from tests.contract.single_statements import complete, fail, write
from tests.contract.task_states import break_for_good, create, finish, start, take


def change(engine: Engine, query: str, task_id: str, **more: Any) -> set[str]:
    return write(engine, query, task_id=task_id, actor="user", **more)


def settle(engine: Engine, *ids: str) -> set[str]:
    return write(engine, "settle_plans", ids=list(ids), output=None, error=None)


def forget(engine: Engine, query: str, **named: Any) -> None:
    """Run one statement alone that takes needs away."""
    engine.database.transact(lambda tx: tx.run(query, **named))


def finalized(engine: Engine, *titles: str) -> tuple[str, list[str]]:
    """A plan whose children need nothing of each other."""
    parent, children = plan(engine, *titles)
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    return parent, children


def test_only_an_idle_task_without_a_run_or_moving_children_begins_to_be_planned(
    engine: Engine,
) -> None:
    named, other, queued = (create(engine, enqueue=False) for _ in range(3))
    assert engine.tasks.enqueue(queued).ok
    create(engine, parent=queued, enqueue=False)
    create(engine)
    in_run = start(engine).steps["plan"]
    assert change(engine, "reset_task", in_run) == {in_run}
    moving = create(engine, enqueue=False)
    create(engine, parent=moving)
    for task_id in (queued, in_run, moving):
        assert change(engine, "start_planning", task_id) == set()
    create(engine, parent=named, enqueue=False)
    assert change(engine, "start_planning", named) == {named}
    assert change(engine, "start_planning", named) == set()
    assert engine.tasks.get(other).planning_phase is PlanningPhase.NONE


def test_only_an_open_plan_with_an_idle_child_of_its_own_is_finalized(engine: Engine) -> None:
    (named, _), (other, _), (empty, _), (gone, (child,)) = (
        plan(engine, *titles) for titles in (("one",), ("one",), (), ("one",))
    )
    finish(engine, create(engine, parent=empty))
    assert engine.tasks.cancel(gone).ok
    assert change(engine, "reset_task", child) == {child}
    parent = create(engine, enqueue=False)
    create(engine, parent=parent, enqueue=False)
    for task_id in (empty, gone, parent):
        assert change(engine, "finalize_plan", task_id, shape="chain") == set()
        assert not engine.tasks.finalize_plan(task_id).ok
    assert change(engine, "finalize_plan", named, shape="chain") == {named}
    assert change(engine, "finalize_plan", named, shape="chain") == set()
    assert engine.tasks.get(other).planning_phase is PlanningPhase.ACTIVE


def test_only_idle_children_of_the_plan_that_are_no_plans_are_queued(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    _, (stranger,) = plan(engine, "stranger")
    assert engine.tasks.start_planning(two).ok
    below = create(engine, "below", parent=two, enqueue=False)
    take(engine, three)
    assert change(engine, "queue_children", parent) == set()
    assert change(engine, "finalize_plan", parent, shape="chain") == {parent}
    assert change(engine, "queue_children", parent) == {one}
    assert change(engine, "queue_children", parent) == set()
    left = states(engine, [two, three, stranger, below])
    assert left == ["planning", "running", "idle", "idle"]


def test_a_plan_waits_for_the_plans_around_it_that_are_being_made_and_for_no_other_task(
    engine: Engine,
) -> None:
    top, (inner, holder) = plan(engine, "inner", "holder")
    lone = create(engine, "lone", parent=holder, enqueue=False)
    below = []
    for each in (inner, lone):
        assert engine.tasks.start_planning(each).ok
        below.append(create(engine, "below", parent=each, enqueue=False))
        assert change(engine, "finalize_plan", each, shape="chain") == {each}
    assert change(engine, "queue_children", inner) == set()
    assert change(engine, "queue_children", lone) == {below[1]}
    assert change(engine, "finalize_plan", top, shape="chain") == {top}
    assert change(engine, "queue_children", top) == {below[0], holder}


def with_an_old_child(engine: Engine) -> tuple[str, str, str]:
    """A finalized plan that was a function before, and its child from that time."""
    attempt = take(engine, create(engine))
    parent = attempt.task.id
    made = engine.work.spawn(parent, attempt.token, [NewTask(title="old")], name="map")
    assert engine.work.release(parent, attempt.token).ok
    assert engine.tasks.reset(parent).ok
    assert engine.tasks.start_planning(parent).ok
    children = [create(engine, title, parent=parent, enqueue=False) for title in ("a", "b")]
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, children[0])
    assert states(engine, [made.value[0], children[1]]) == ["cancelled", "ready"]
    assert engine.tasks.get(parent).status is Status.IDLE
    return parent, made.value[0], children[1]


def test_children_of_an_earlier_epoch_are_no_part_of_the_plan(engine: Engine) -> None:
    parent, old, last = with_an_old_child(engine)
    before = engine.tasks.get(old)
    assert write(engine, "hold_plans", ids=[parent]) == set()
    assert settle(engine, parent) == set()
    assert write(engine, "rerun_parts", ids=[old], actor="user") == set()
    finish(engine, last)
    assert engine.tasks.get(parent).status is Status.DONE
    assert engine.tasks.reopen(parent).ok
    assert engine.tasks.get(old) == before


def test_only_ended_children_of_the_plan_run_again(engine: Engine) -> None:
    _, (one, two) = finalized(engine, "one", "two")
    _, (stranger, _) = finalized(engine, "stranger", "other")
    for child in (one, stranger):
        finish(engine, child)
    take(engine, two)
    assert write(engine, "rerun_parts", ids=[one, two], actor="user") == {one}
    assert states(engine, [one, two, stranger]) == ["ready", "running", "done"]


def test_only_a_finalized_plan_that_has_ended_runs_again(engine: Engine) -> None:
    (named, ours), (other, theirs) = finalized(engine, "one"), finalized(engine, "one")
    assert change(engine, "rerun_plan", named) == set()
    for child in (*ours, *theirs):
        finish(engine, child)
    lone, (open_plan, _) = create(engine), plan(engine, "one")
    finish(engine, lone)
    assert engine.tasks.cancel(open_plan).ok
    for task_id in (lone, open_plan):
        assert change(engine, "rerun_plan", task_id) == set()
    assert change(engine, "rerun_plan", named) == {named}
    assert engine.tasks.get(other).status is Status.DONE
    assert settle(engine, named) == {named}


def failing(engine: Engine) -> tuple[str, list[str]]:
    """A plan with a failed child, one that is running, one that is done and one not begun."""
    parent, children = finalized(engine, "failed", "running", "done", "waits")
    for child in children[:3]:
        take(engine, child)
    complete(engine, children[2])
    fail(engine, children[0])
    return parent, children


def test_idle_children_of_a_failing_plan_are_held_once(engine: Engine) -> None:
    (parent, children), (_, others) = failing(engine), failing(engine)
    assert write(engine, "hold_plans", ids=[parent]) == {children[3]}
    assert write(engine, "hold_plans", ids=[parent]) == set()
    assert engine.tasks.get(others[3]).run_holds == Hold(0)


def test_a_plan_without_a_failed_part_has_no_child_held(engine: Engine) -> None:
    failing(engine)
    parent, children = finalized(engine, "one", "two")
    take(engine, children[0])
    complete(engine, children[0])
    assert write(engine, "hold_plans", ids=[parent]) == set()


def test_a_failure_outside_a_finalized_plan_has_no_child_held(
    engine: Engine,
) -> None:
    finalized(engine, "beside")
    parent, (one, _) = plan(engine, "one", "two")
    take(engine, one)
    fail(engine, one)
    assert write(engine, "hold_plans", ids=[parent]) == set()


def test_a_plan_settles_once_none_of_its_own_children_can_move(engine: Engine) -> None:
    (done, (one,)), (other, (two,)) = finalized(engine, "one"), finalized(engine, "two")
    (broken, (three, _)), (moves, (four, _)) = (finalized(engine, "one", "two") for _ in range(2))
    (runs, (five, six)), (lone, (seven,)) = finalized(engine, "a", "b"), plan(engine, "one")
    for child in (one, two, three, four, five, six):
        take(engine, child)
    for child in (one, two, four):
        complete(engine, child)
    for child in (three, five):
        fail(engine, child)
    finish(engine, seven)
    ids = [done, broken, moves, runs, lone]
    write(engine, "hold_plans", ids=ids)
    assert settle(engine, *ids) == {done, broken}
    assert settle(engine, *ids) == set()
    assert engine.tasks.get(done).status is Status.DONE
    assert engine.tasks.get(broken).status is Status.FAILED
    assert engine.tasks.get(other).status is Status.IDLE
    assert engine.tasks.advance(other).ok


def test_failing_is_lifted_below_the_plan_from_what_is_held_and_has_not_begun(
    engine: Engine,
) -> None:
    (parent, children), (other, others) = failing(engine), failing(engine)
    gone = create(engine, parent=parent)
    free = create(engine, parent=create(engine), enqueue=False)
    held = {engine.tasks.get(each).run_holds for each in (children[3], gone)}
    assert held == {Hold.FAILING}
    assert write(engine, "hold_plans", ids=[parent, other]) == {others[3]}
    assert engine.tasks.cancel(gone).ok
    ids = [parent, str(engine.tasks.get(free).parent_id)]
    assert write(engine, "lift_failing_below", ids=ids, actor="user") == {children[3]}
    assert engine.tasks.get(others[3]).run_holds == Hold.FAILING


def test_a_retry_reaches_its_own_tree_alone(engine: Engine) -> None:
    (parent, children), (_, others) = failing(engine), failing(engine)
    assert change(engine, "retry_task", children[0]) == {children[0]}
    assert change(engine, "retry_task", children[1]) == set()
    assert engine.tasks.get(others[0]).status is Status.FAILED
    assert engine.tasks.get(parent).status is Status.IDLE


@pytest.mark.parametrize("verb", ["retry", "reopen"])
@pytest.mark.parametrize("ended", [False, True])
def test_a_failed_child_brought_back_brings_its_plan_and_all_that_waited(
    engine: Engine, verb: str, *, ended: bool
) -> None:
    parent, (one, two, three) = finalized(engine, "one", "two", "three")
    attempt = take(engine, two)
    break_for_good(engine, one)
    if ended:
        assert engine.work.complete(two, attempt.token).ok
        assert engine.tasks.get(parent).status is Status.FAILED
    assert getattr(engine.tasks, verb)(one).ok
    assert engine.tasks.get(parent).status is Status.IDLE
    if not ended:
        assert engine.work.complete(two, attempt.token).ok
    for child in (one, three):
        finish(engine, child)
    assert engine.tasks.get(parent).status is Status.DONE


def test_a_retry_of_a_plan_that_was_not_finalized_queues_none_of_its_children(
    engine: Engine,
) -> None:
    parent, children = plan(engine, "one", "two")
    assert engine.tasks.cancel(parent).ok
    assert engine.tasks.retry(parent).ok
    assert states(engine, [parent, *children]) == ["planning", "idle", "idle"]
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, children) == ["ready", "blocked"]


def test_a_finalized_plan_is_not_queued_itself(engine: Engine) -> None:
    parent, (child,) = finalized(engine, "one")
    assert not engine.tasks.enqueue(parent).ok
    assert not engine.tasks.run_now(parent).ok
    finish(engine, child)
    assert engine.tasks.get(parent).status is Status.DONE


def test_a_plan_that_failed_runs_again_with_what_was_held_because_of_it(engine: Engine) -> None:
    parent, children = finalized(engine, "one", "two")
    break_for_good(engine, children[0])
    assert engine.tasks.get(parent).status is Status.FAILED
    assert states(engine, children) == ["failed", "stalled"]
    assert engine.tasks.reopen(parent).ok
    assert states(engine, children) == ["ready", "ready"]
    for child in children:
        finish(engine, child)
    assert engine.tasks.get(parent).status is Status.DONE


def test_a_plan_below_a_plan_runs_again_with_it(engine: Engine) -> None:
    parent, (inner, last) = plan(engine, "inner", "last")
    assert engine.tasks.start_planning(inner).ok
    child = create(engine, "child", parent=inner, enqueue=False)
    for each in (inner, parent):
        assert engine.tasks.finalize_plan(each).ok
    for _ in range(2):
        assert states(engine, [inner, child, last]) == ["in progress 0/1", "ready", "blocked"]
        finish(engine, child)
        assert engine.tasks.get(inner).status is Status.DONE
        finish(engine, last)
        assert engine.tasks.get(parent).status is Status.DONE
        assert engine.tasks.reopen(parent).ok


def test_only_idle_children_of_a_plan_that_is_made_are_given_other_places(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    _, (stranger,) = plan(engine, "stranger")
    take(engine, three)
    rows = [(one, 0), (two, 5), (three, 6), (stranger, 7)]
    assert change(engine, "reorder_children", parent, rows=rows) == {two}
    assert engine.tasks.finalize_plan(parent).ok
    assert change(engine, "reset_task", one) == {one}
    assert change(engine, "reorder_children", parent, rows=[(one, 8)]) == set()


def with_plans_inside(engine: Engine) -> dict[str, str]:
    """A plan of a task, of a plan and of a function that made a child; all but one have ended."""
    parent, (done, inner, maker) = plan(engine, "done", "inner", "maker")
    assert engine.tasks.start_planning(inner).ok
    below = create(engine, "below", parent=inner, enqueue=False)
    for each in (inner, parent):
        assert engine.tasks.finalize_plan(each, graph={}).ok
    attempt = take(engine, maker)
    made = engine.work.spawn(maker, attempt.token, [NewTask(title="made")], name="map").value[0]
    for each in (done, made):
        finish(engine, each)
    ids = {"parent": parent, "done": done, "inner": inner, "below": below}
    return {**ids, "maker": maker, "made": made}


def test_a_reset_reaches_what_is_below_a_plan_through_plans_and_counts(engine: Engine) -> None:
    ids, stranger = with_plans_inside(engine), finalized(engine, "stranger")[1][0]
    reached = change(engine, "reset_below", ids["parent"])
    assert reached == {ids["done"], ids["inner"], ids["below"]}
    assert states(engine, [ids["inner"], ids["maker"], ids["made"]]) == [
        "planning",
        "running",
        "done",
    ]
    assert change(engine, "reset_below", ids["parent"]) == set()
    assert engine.tasks.get(stranger).state == "ready"


def test_children_of_an_earlier_epoch_are_not_reset_with_the_plan(
    engine: Engine,
) -> None:
    parent, old, last = with_an_old_child(engine)
    before = engine.tasks.get(old)
    finish(engine, last)
    assert engine.tasks.reset(parent).ok
    assert engine.tasks.get(old) == before


def test_only_the_order_of_tasks_below_a_plan_that_have_not_begun_is_forgotten(
    engine: Engine, store_url: str
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    other, (four, five) = plan(engine, "four", "five")
    outside = create(engine)
    made = create(engine, "made", parent=parent, needs=(one,), enqueue=False)
    assert engine.tasks.block(two, on=[outside]).ok
    assert engine.tasks.block(two, on=[one]).ok
    assert engine.tasks.block(three, on=[one]).ok
    assert engine.tasks.enqueue(three).ok
    assert engine.tasks.block(five, on=[four]).ok
    assert engine.tasks.block(four, on=[one]).ok
    with raw(store_url) as store:
        store("UPDATE holdfast_need SET since = 2 WHERE task_id <> ?", made)
    forget(engine, "forget_order", task_id=parent)
    needed = {each: engine.tasks.blocked_by(each) for each in (two, three, made, four, five)}
    assert needed == {two: [outside], three: [one], made: [one], four: [one], five: [four]}
    assert engine.tasks.get(other).planning_phase is PlanningPhase.ACTIVE


def test_only_blocked_tasks_below_a_plan_that_have_not_begun_and_need_nothing_are_unblocked(
    engine: Engine,
) -> None:
    parent, (one, two, three, free) = plan(engine, "one", "two", "three", "free")
    _, (stranger,) = plan(engine, "stranger")
    missing, gone, there = (create(engine) for _ in range(3))
    finish(engine, there)
    assert engine.tasks.block(one, on=[missing]).ok
    assert engine.tasks.block(two, on=[there]).ok
    for each in (two, three, stranger):
        assert engine.tasks.block(each, on=[gone]).ok
        forget(engine, "delete_needs", task_id=each, ids=[gone])
    assert engine.tasks.enqueue(three).ok
    assert change(engine, "unblock_children", parent) == {two}
    assert change(engine, "unblock_children", parent) == set()
    assert engine.tasks.get(free).version == 1
    for each in (three, stranger):
        assert engine.tasks.block(each, on=[gone]).ok
        assert engine.tasks.unblock(each).ok
