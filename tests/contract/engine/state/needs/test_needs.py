"""Needs: what waits for what, changed by hand, and what may not be deleted."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice
from holdfast.model.effect import WakeCondition
from holdfast.model.result import Refusal
from holdfast.model.status import Status
from holdfast.model.task import NewTask
from tests.contract.advised import advised
from tests.contract.raw_store import dump
from tests.contract.task_states import FORK, MISSING_TASK, bring, create, finish, start, take


def test_a_join_is_unblocked_once_by_its_last_need(engine: Engine) -> None:
    run = start(engine, FORK)
    run.finish("plan", "right")
    assert run.states["join"] == "blocked"
    run.finish("left")
    assert run.states["join"] == "ready"
    types = [event.type for event in engine.tasks.events(run.steps["join"])]
    assert types == ["task.created", "task.unblocked"]


def test_a_join_whose_needs_are_done_in_one_transaction_is_unblocked_once(engine: Engine) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    left, right = run.take("left"), run.take("right")
    reports = [engine.work.complete.submit(each.task.id, each.token) for each in (left, right)]
    assert all(report.result().ok for report in reports)
    types = [event.type for event in engine.tasks.events(run.steps["join"])]
    assert types == ["task.created", "task.unblocked"]


def test_a_task_whose_needs_are_done_when_it_is_made_is_ready(engine: Engine) -> None:
    done = bring(engine, Status.DONE)
    assert engine.tasks.get(create(engine, needs=(done.task_id,))).state == "ready"
    failed = bring(engine, Status.FAILED)
    assert engine.tasks.get(create(engine, needs=(done.task_id, failed.task_id))).blocked


def test_an_idle_task_is_unblocked_but_stays_idle(engine: Engine) -> None:
    need = create(engine)
    dependent = create(engine, needs=(need,), enqueue=False)
    finish(engine, need)
    task = engine.tasks.get(dependent)
    assert (task.status, task.blocked) == ("idle", False)


def test_block_adds_needs_and_unblock_takes_them_away(engine: Engine) -> None:
    first, second = create(engine, agent="a"), create(engine, agent="a")
    task_id = create(engine)
    assert engine.tasks.block(task_id, [first, second, first]).ok
    assert engine.tasks.block(task_id, [first]).ok
    assert engine.tasks.blocked_by(task_id) == sorted([first, second])
    assert engine.work.claim("worker") == []
    assert engine.tasks.unblock(task_id, [first]).ok
    assert engine.tasks.blocked_by(task_id) == [second]
    assert engine.tasks.get(task_id).blocked
    assert engine.tasks.unblock(task_id).ok
    assert engine.tasks.blocked_by(task_id) == []
    assert engine.work.claim("worker")[0].task.id == task_id


def test_a_need_that_is_done_already_does_not_block(engine: Engine) -> None:
    done = bring(engine, Status.DONE)
    task_id = create(engine)
    assert engine.tasks.block(task_id, [done.task_id]).ok
    assert engine.tasks.get(task_id).state == "ready"


def test_a_task_that_ran_before_it_was_blocked_breaks_no_rule(engine: Engine) -> None:
    stage = bring(engine, Status.QUEUED)
    need = create(engine)
    assert engine.tasks.block(stage.task_id, [need]).ok
    finish(engine, need)
    finish(engine, stage.task_id)


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_a_cycle_of_any_length_is_refused_and_writes_nothing(
    engine: Engine, store_url: str, length: int
) -> None:
    tasks = [create(engine)]
    for _ in range(length):
        tasks.append(create(engine, needs=(tasks[-1],)))
    store = dump(store_url)
    with pytest.raises(InvalidInput, match="cycle") as refused:
        engine.tasks.block(tasks[0], [tasks[-1]])
    assert refused.value.field == "needs"
    assert dump(store_url) == store


def test_an_unknown_need_is_refused(engine: Engine, store_url: str) -> None:
    task_id = create(engine)
    store = dump(store_url)
    with pytest.raises(InvalidInput, match=MISSING_TASK):
        engine.tasks.block(task_id, [MISSING_TASK])
    assert engine.tasks.block(MISSING_TASK, [task_id]).reason is Refusal.NOT_FOUND
    assert engine.tasks.unblock(MISSING_TASK, [task_id]).reason is Refusal.NOT_FOUND
    assert dump(store_url) == store


def test_a_task_does_not_need_one_of_another_run(engine: Engine, store_url: str) -> None:
    run, other, lone = start(engine), start(engine), create(engine)
    store = dump(store_url)
    for task_id, need in (
        (run.steps["work"], other.steps["plan"]),
        (run.steps["work"], lone),
        (lone, run.steps["plan"]),
    ):
        with pytest.raises(InvalidInput, match="another run"):
            engine.tasks.block(task_id, [need])
    with pytest.raises(InvalidInput, match="another run"):
        create(engine, needs=(run.steps["plan"],))
    assert dump(store_url) == store


def test_within_a_run_a_step_can_be_made_to_wait_for_another(engine: Engine) -> None:
    run = start(engine, FORK)
    run.finish("plan")
    assert engine.tasks.block(run.steps["right"], [run.steps["left"]]).ok
    assert run.states["right"] == "blocked"
    run.finish("left", "right", "join")
    assert run.status == "completed"


def test_a_task_that_others_need_is_not_deleted(engine: Engine, store_url: str) -> None:
    need = bring(engine, Status.FAILED)
    dependent = create(engine, needs=(need.task_id,))
    store = dump(store_url)
    answer = engine.tasks.delete(need.task_id)
    assert (answer.ok, answer.reason) == (False, Refusal.NEEDED_BY_OTHERS)
    assert dump(store_url) == store
    assert engine.tasks.unblock(dependent).ok
    assert engine.tasks.delete(need.task_id).ok
    assert engine.tasks.get(dependent).state == "ready"


def test_a_parent_is_not_deleted_before_its_children(engine: Engine) -> None:
    parent = create(engine)
    child = create(engine, "child", parent=parent)
    answer = engine.tasks.delete(parent)
    assert answer.reason is Refusal.NEEDED_BY_OTHERS
    told = "other tasks need it or belong to it: "
    assert answer.detail.startswith(f"{told}child {child}; ")
    assert advised(answer) == [Advice(Action.DELETE, child)]
    more = [create(engine, "child", parent=parent) for _ in range(5)]
    shown = ", ".join(f"child {each}" for each in [child, *more][:5])
    assert engine.tasks.delete(parent).detail.startswith(f"{told}{shown} and more; ")
    for each in more:
        assert engine.tasks.delete(each).ok
    assert engine.tasks.delete(child).ok
    assert engine.tasks.delete(parent).ok


@pytest.mark.parametrize("ended", ["done", "cancelled", "superseded"])
def test_a_child_is_not_deleted_while_its_maker_may_read_its_result(
    engine: Engine, ended: str
) -> None:
    create(engine, "stranger")
    attempt = take(engine, create(engine, "maker"))
    maker, made = attempt.task.id, [NewTask(title="made"), NewTask(title="made")]
    spawned = engine.work.spawn(maker, attempt.token, made, name="map").value
    beside = create(engine, "beside", parent=maker)
    finish(engine, spawned[1])
    for each in spawned:
        answer = engine.tasks.delete(each)
        assert answer.reason is Refusal.NEEDED_BY_OTHERS
        assert str(answer.detail).startswith(f"maker {maker} has made it, and reads what it gives")
    assert engine.work.suspend(maker, attempt.token, WakeCondition(children=True)).ok
    assert engine.tasks.delete(spawned[0]).reason is Refusal.NEEDED_BY_OTHERS
    if ended == "done":
        finish(engine, spawned[0])
        assert engine.tasks.get(maker).waits_for == "children"
    assert engine.tasks.delete(beside).ok
    if ended == "done":
        finish(engine, maker)
    else:
        assert (engine.tasks.reset if ended == "superseded" else engine.tasks.cancel)(maker).ok
    assert [engine.tasks.delete(each).ok for each in spawned] == [True, True]
    gone = engine.work.children(maker, spawned)
    assert [(each.status, each.error) for each in gone] == [("cancelled", "it was deleted")] * 2


def test_a_task_of_a_run_is_not_deleted(engine: Engine) -> None:
    run = start(engine)
    answer = engine.tasks.delete(run.steps["review"])
    assert (answer.ok, answer.reason) == (False, Refusal.PART_OF_RUN)


def test_a_deleted_task_takes_its_own_needs_with_it_and_leaves_its_history(
    engine: Engine, store_url: str
) -> None:
    need = create(engine)
    dependent = create(engine, needs=(need,))
    assert engine.tasks.delete(dependent, actor="ada").ok
    assert dump(store_url)["holdfast_need"] == []
    last = engine.tasks.events(dependent)[-1]
    assert (last.type, last.version, last.actor) == ("task.deleted", 2, "ada")
    assert engine.tasks.delete(need).ok
