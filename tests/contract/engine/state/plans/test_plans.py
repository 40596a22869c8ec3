"""Planning: a task becomes a plan, its children a chain or a graph, and it settles from them."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace

import pytest

from holdfast import Context, Holdfast
from holdfast.engine.engine import Engine, engine_of
from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, Advice, advice_of, message_of
from holdfast.model.result import Refusal
from holdfast.model.status import PlanningPhase, Status
from holdfast.model.task import NewTask
from tests.contract.advised import advised
from tests.contract.task_states import MISSING_TASK, break_for_good, create, finish, start, take


def plan(engine: Engine, *titles: str, agent: str = "developer") -> tuple[str, list[str]]:
    """A task that is being planned, with children in order."""
    parent = create(engine, "feature", enqueue=False, agent=agent)
    assert engine.tasks.start_planning(parent).ok
    children = [
        create(engine, title, parent=parent, position=place, enqueue=False)
        for place, title in enumerate(titles)
    ]
    return parent, children


def states(engine: Engine, ids: list[str]) -> list[str]:
    return [engine.tasks.get(each).state for each in ids]


def test_finalizing_makes_a_chain_of_the_children_in_their_order(engine: Engine) -> None:
    parent, children = plan(engine, "one", "two", "three")
    assert engine.tasks.edit(children[0], {"position": 9}).ok
    assert states(engine, children) == ["idle"] * 3
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, children) == ["blocked", "ready", "blocked"]
    assert {engine.tasks.get(each).agent for each in children} == {"developer"}
    task = engine.tasks.get(parent)
    assert (task.status, task.planning_phase) == (Status.IDLE, PlanningPhase.FINALIZED)
    for child in (children[1], children[2], children[0]):
        finish(engine, child)
    assert engine.tasks.get(parent).status is Status.DONE


def test_finalizing_again_changes_nothing(engine: Engine) -> None:
    parent, children = plan(engine, "one")
    assert not engine.tasks.finalize_plan(parent).repeated
    before = engine.tasks.events(children[0])
    assert engine.tasks.finalize_plan(parent).repeated
    assert engine.tasks.events(children[0]) == before


def test_finalizing_again_in_another_shape_is_refused_with_the_first(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    graph = {three: [one, two]}
    assert engine.tasks.finalize_plan(parent, graph=graph).ok
    finish(engine, one)
    assert engine.tasks.finalize_plan(parent, graph={three: [two, one]}).repeated
    for other in (None, {}, {three: [one]}):
        answer = engine.tasks.finalize_plan(parent, graph=other)
        assert answer.reason is Refusal.INVALID_TRANSITION
        assert "as a graph of 2 needs" in answer.detail
        assert advised(answer) == [Advice(Action.CANCEL, parent), Advice(Action.RESET, parent)]
    for each in (two, three):
        finish(engine, each)
    assert engine.tasks.reset(parent).ok
    assert engine.tasks.finalize_plan(parent).ok
    answer = engine.tasks.finalize_plan(parent, graph=graph)
    assert "as a chain" in answer.detail
    assert advised(answer) == [Advice(Action.CANCEL, parent), Advice(Action.RESET, parent)]


def test_finalizing_may_be_given_a_graph(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent, graph={three: [one, two]}).ok
    assert states(engine, [one, two, three]) == ["ready", "ready", "blocked"]


@pytest.mark.parametrize("begun", ["queued", "running", "done"])
@pytest.mark.parametrize("shape", ["chain", "graph"])
def test_a_child_behind_one_that_has_begun_waits_for_it_and_for_all_before_it(
    engine: Engine, begun: str, shape: str
) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    if begun == "queued":
        assert engine.tasks.enqueue(two).ok
    attempt = None if begun == "queued" else take(engine, two)
    if attempt is not None and begun == "done":
        assert engine.work.complete(two, attempt.token).ok
    graph = {three: [one, two]} if shape == "graph" else None
    assert engine.tasks.finalize_plan(parent, graph=graph).ok
    attempt = attempt or take(engine, two)
    assert engine.tasks.get(one).state == "ready"
    finish(engine, one)
    if begun != "done":
        assert engine.tasks.blocked_by(three) == [two]
        assert engine.work.complete(two, attempt.token).ok
    finish(engine, three)
    assert engine.tasks.get(parent).status is Status.DONE
    assert engine.tasks.reopen(two).ok
    assert states(engine, [one, two, three]) == ["done", "ready", "blocked"]
    diagnosis = engine.doctor()
    assert diagnosis.ok, str(diagnosis)


def test_nothing_comes_after_a_child_that_failed_before_its_plan_was_finalized(
    engine: Engine,
) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    break_for_good(engine, one)
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, [one, two]) == ["failed", "stalled"]
    assert engine.tasks.retry(one).ok
    assert states(engine, [one, two]) == ["ready", "blocked"]


def test_a_child_that_ran_before_it_was_planned_needs_the_others_only_from_then_on(
    engine: Engine,
) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    for _ in range(2):
        finish(engine, two)
        assert engine.tasks.reset(two).ok
    assert engine.tasks.finalize_plan(parent).ok
    assert states(engine, [one, two]) == ["ready", "blocked"]
    diagnosis = engine.doctor()
    assert diagnosis.ok, str(diagnosis)


@pytest.mark.parametrize("told", ["cycle", "is no child", "has begun"])
def test_a_graph_that_cannot_be_is_refused_whole(engine: Engine, told: str) -> None:
    parent, (one, two, begun) = plan(engine, "one", "two", "begun")
    assert engine.tasks.enqueue(begun).ok
    graphs = {"cycle": {one: [two], two: [one]}, "is no child": {one: [create(engine)]}}
    graph = graphs.get(told, {begun: [one]})
    with pytest.raises(InvalidInput, match=told):
        engine.tasks.finalize_plan(parent, graph=graph)
    assert engine.tasks.get(parent).planning_phase is PlanningPhase.ACTIVE


def test_a_cycle_is_told_by_those_alone_who_wait_for_each_other(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    told = {
        f"one {one} waits for two {two}, which waits for one {one}": {one: [two], two: [one]},
        f"two {two} waits for itself": {two: [two], three: [two]},
    }
    for expected, graph in told.items():
        with pytest.raises(InvalidInput) as refused:
            engine.tasks.finalize_plan(parent, graph=graph)
        assert str(refused.value) == f"graph: the needs form a cycle: {expected}"
    outside = create(engine, "outside", needs=(parent,))
    assert engine.tasks.block(three, on=[outside]).ok
    around = f"feature {parent} waits for three {three}, which waits for outside {outside}"
    with pytest.raises(InvalidInput, match=f"{around}, which waits for feature {parent}$"):
        engine.tasks.finalize_plan(parent)


def test_only_an_idle_task_without_a_run_can_be_planned(engine: Engine) -> None:
    in_run = engine.runs.tasks(start(engine).id)[0].id
    for task in (create(engine), in_run):
        assert engine.tasks.start_planning(task).reason is Refusal.INVALID_TRANSITION
    assert engine.tasks.start_planning(MISSING_TASK).reason is Refusal.NOT_FOUND
    parent, _ = plan(engine)
    assert engine.tasks.start_planning(parent).reason is Refusal.INVALID_TRANSITION
    assert engine.tasks.finalize_plan(parent).reason is Refusal.INVALID_TRANSITION
    assert engine.tasks.enqueue(parent).reason is Refusal.INVALID_TRANSITION


def test_a_failed_child_leaves_the_rest_and_fails_the_plan(engine: Engine) -> None:
    parent, (one, two, three) = plan(engine, "one", "two", "three")
    assert engine.tasks.finalize_plan(parent, graph={three: [one]}).ok
    running = take(engine, two)
    break_for_good(engine, one)
    assert engine.tasks.get(parent).status is Status.IDLE
    assert states(engine, [one, two, three]) == ["failed", "running", "stalled"]
    assert engine.work.complete(two, running.token).ok
    assert engine.tasks.get(parent).status is Status.FAILED
    assert engine.tasks.get(parent).error == "broken"


def test_a_retry_goes_on_with_what_failed(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    break_for_good(engine, one)
    assert engine.tasks.retry(parent).ok
    assert engine.tasks.get(parent).status is Status.IDLE
    assert states(engine, [one, two]) == ["ready", "blocked"]
    finish(engine, one)
    finish(engine, two)
    assert engine.tasks.get(parent).status is Status.DONE


def test_a_finished_plan_runs_again_and_keeps_its_planning(engine: Engine) -> None:
    parent, children = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    for _ in range(2):
        for child in children:
            finish(engine, child)
        task = engine.tasks.get(parent)
        assert (task.status, task.planning_phase) == (Status.DONE, PlanningPhase.FINALIZED)
        assert engine.tasks.reopen(parent).ok
        assert states(engine, children) == ["ready", "blocked"]


def test_cancel_of_a_plan_cancels_all_of_it(engine: Engine) -> None:
    for finalized in (False, True):
        parent, children = plan(engine, "one", "two")
        if finalized:
            assert engine.tasks.finalize_plan(parent).ok
        assert engine.tasks.cancel(parent).ok
        assert states(engine, [parent, *children]) == ["cancelled"] * 3


def test_planning_end_to_end_the_first_child_runs_within_200_ms_without_a_manual_wake(
    store_url: str,
) -> None:
    running = threading.Event()
    with Holdfast(store_url) as hf:

        @hf.task(agent="developer")
        def child(ctx: Context) -> None:
            assert ctx.attempt == 1
            running.set()

        with hf.worker(agents=["developer"]):
            engine = engine_of(hf)
            parent, children = plan(engine)
            children = [
                create(engine, "child", step="child", parent=parent, enqueue=False, payload={})
                for _ in range(3)
            ]
            begin = time.monotonic()
            assert hf.tasks.finalize_plan(parent).ok
            assert running.wait(10)
            assert time.monotonic() - begin < 0.2
            while hf.tasks.get(parent).status is not Status.DONE:
                assert time.monotonic() - begin < 30
    assert len(children) == 3


def test_a_part_is_only_taken_by_a_plan(engine: Engine) -> None:
    parent = create(engine, enqueue=False)
    part = NewTask(title="part", parent=parent, enqueue=False, part=True)
    with pytest.raises(InvalidInput, match=re.escape(f"parent: {parent} is no plan")) as refused:
        engine.tasks.create(part)
    begin = Advice(Action.START_PLANNING, parent)
    assert advice_of(message_of(refused.value)) == (begin,)
    assert not engine.tasks.list(parent=parent)
    assert engine.tasks.start_planning(parent).ok
    assert engine.tasks.create(part).created
    waiting = create(engine)
    with pytest.raises(InvalidInput, match="is no plan and is queued; only an idle task can be"):
        engine.tasks.create(replace(part, parent=waiting))
    # What is below a task by itself, and no part of a plan, needs none.
    assert engine.tasks.create(replace(part, parent=waiting, part=False)).created
