"""Plans as a Python program makes them: begin, add, order, finalize, wait, go on, do again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Holdfast, InvalidInput, Plan, TaskFailed, TaskFunction
from holdfast.model.status import Status

PATIENCE = 30


@dataclass
class Change:
    story: str


def writer(hf: Holdfast) -> TaskFunction[[str], Change, Change]:
    @hf.task(max_attempts=1)
    def implement(story: str) -> Change:
        if story == "broken":
            raise ValueError(story)
        return Change(story)

    return implement


def test_a_plan_gives_what_its_children_returned_in_their_order(hf: Holdfast) -> None:
    implement = writer(hf)
    plan = hf.plan("accounts")
    login = plan.add(implement, "login")
    logout = plan.add(implement.using(title="Say goodbye"), "logout")
    assert plan.reorder([logout, login]).ok
    assert [child.title for child in plan.children()] == ["Say goodbye", "implement"]
    assert plan.finalize().ok
    assert hf.tasks.blocked_by(login.id) == [logout.id]
    with hf.worker():
        assert plan.result(PATIENCE) == [Change("logout"), Change("login")]
        assert login.result(PATIENCE) == Change("login")
    assert hf.tasks.get(plan.id).output == [{"story": "logout"}, {"story": "login"}]


def test_a_graph_of_handles_says_who_waits_for_whom(hf: Holdfast) -> None:
    implement = writer(hf)
    plan = hf.plan("fork")
    left, right, join = (plan.add(implement, each) for each in ("left", "right", "join"))
    assert plan.finalize({join: [left, right]}).ok
    assert sorted(hf.tasks.blocked_by(join.id)) == sorted([left.id, right.id])
    assert hf.tasks.get(right.id).state == "ready"


def test_a_plan_inside_a_plan_gives_a_list_in_the_list(hf: Holdfast) -> None:
    implement = writer(hf)
    top = hf.plan("top")
    inner = hf.plan("inner", parent=top)
    top.add(implement, "last")
    inner.add(implement, "first")
    assert inner.finalize().ok
    assert top.finalize().ok
    with hf.worker():
        assert top.result(PATIENCE) == [[Change("first")], Change("last")]


def test_a_plan_that_is_done_gives_what_it_gave_though_a_child_was_deleted_since(
    hf: Holdfast,
) -> None:
    implement = writer(hf)
    plan = hf.plan("accounts")
    stories = ("login", "same", "same", "logout")
    children = [plan.add(implement, each) for each in stories]
    assert plan.finalize({}).ok
    with hf.worker():
        assert plan.result(PATIENCE) == [Change(each) for each in stories]
    assert hf.tasks.delete(children[0].id).ok
    gone: dict[str, Any] = {"story": "login"}
    assert plan.result(PATIENCE) == [gone, Change("same"), Change("same"), Change("logout")]
    assert hf.tasks.delete(children[2].id).ok
    # Of two that gave the same nobody can tell which one is left.
    same = {"story": "same"}
    assert plan.result(PATIENCE) == [gone, same, same, Change("logout")]
    for each in (children[1], children[3]):
        assert hf.tasks.delete(each.id).ok
    assert plan.result(PATIENCE) == [{"story": each} for each in stories]
    assert hf.doctor().ok


def test_a_plan_inside_a_plan_gives_what_it_gave_though_a_child_was_deleted_since(
    hf: Holdfast,
) -> None:
    implement = writer(hf)
    top = hf.plan("top")
    inner = hf.plan("inner", parent=top)
    top.add(implement, "last")
    first, _ = (inner.add(implement, each) for each in ("first", "second"))
    assert inner.finalize({}).ok
    assert top.finalize().ok
    with hf.worker():
        assert top.result(PATIENCE) == [[Change("first"), Change("second")], Change("last")]
    assert hf.tasks.delete(first.id).ok
    assert top.result(PATIENCE) == [[{"story": "first"}, Change("second")], Change("last")]


def test_a_key_makes_a_plan_and_a_child_exist_once(hf: Holdfast) -> None:
    implement = writer(hf)
    plans = [hf.plan("once", key="plan") for _ in range(2)]
    assert [plan.created for plan in plans] == [True, False]
    assert plans[0].id == plans[1].id
    children = [plan.add(implement, "one", key="child").id for plan in plans]
    assert len(set(children)) == 1
    found = hf.handle(plans[0].id)
    assert isinstance(found, Plan)
    assert found.finalize().ok


def test_a_plan_that_fails_names_its_child_and_is_retried_and_done_again(hf: Holdfast) -> None:
    implement = writer(hf)
    plan = hf.plan("feature")
    child = plan.add(implement.using(title="Login form"), "broken")
    assert plan.finalize().ok
    with hf.worker():
        with pytest.raises(TaskFailed, match="ended failed at step 'Login form': ValueError"):
            plan.result(PATIENCE)
        assert hf.tasks.reset(plan.id).ok
        assert hf.tasks.edit(child.id, {"payload": {"story": "mended"}}).ok
        assert plan.finalize().ok
        assert plan.result(PATIENCE) == [Change("mended")]
        assert hf.tasks.reopen(plan.id).ok
        assert plan.result(PATIENCE) == [Change("mended")]
    assert hf.tasks.get(child.id).attempt == 3


def test_a_plan_can_be_cancelled_and_takes_no_more_once_it_is_finalized(hf: Holdfast) -> None:
    implement = writer(hf)
    plan = hf.plan("feature")
    child = plan.add(implement, "one")
    assert plan.finalize().ok
    with pytest.raises(InvalidInput, match="is finalized, and nothing would start"):
        plan.add(implement, "late")
    assert hf.tasks.cancel(plan.id).ok
    assert hf.tasks.get(child.id).status is Status.CANCELLED
    with pytest.raises(TaskFailed, match="ended cancelled"):
        plan.result(PATIENCE)


def test_a_coroutine_plans_too(hf: Holdfast) -> None:
    implement = writer(hf)

    async def make() -> list[object]:
        plan = await hf.plan.aio("feature")
        await plan.add.aio(implement, "one")
        assert (await plan.finalize.aio()).ok
        return await plan.result.aio(PATIENCE)

    with hf.worker():
        assert asyncio.run(make()) == [Change("one")]


def test_an_idle_task_and_its_title_are_options_of_one_call(hf: Holdfast) -> None:
    implement = writer(hf)
    idle = implement.using(enqueue=False, title="Later", position=3).enqueue("later")
    task = hf.tasks.get(idle.id)
    assert (task.status, task.title, task.position) == (Status.IDLE, "Later", 3)
    assert hf.tasks.enqueue(idle.id).ok
    with hf.worker():
        assert idle.result(PATIENCE) == Change("later")


def test_a_plan_refuses_a_function_that_is_no_task(hf: Holdfast) -> None:
    plain: Any = len
    with pytest.raises(InvalidInput, match=r"^function: .* is no task function; put @hf.task"):
        hf.plan("feature").add(plain, "one")
