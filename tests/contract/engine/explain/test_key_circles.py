"""Runs that hold each other's concurrency keys: who looks is told of the circle and a way out."""

from __future__ import annotations

from holdfast.engine.engine import Engine
from holdfast.engine.explain.explanation import Explanation
from holdfast.engine.explain.why_run import RunExplanation
from holdfast.engine.explain.why_slot import find_circles
from holdfast.model.advice import Action, Advice, advice_of
from holdfast.model.workflow.graph import Concurrency, Step, Workflow
from holdfast.service.admin.health import warn_of_circles
from tests.contract.advised import fixes_of
from tests.contract.called_workflows import call, of
from tests.contract.raw_store import raw
from tests.contract.task_states import StartedRun, start


def narrow(engine: Engine, key: str, limit: int = 1) -> Workflow:
    """A workflow of one step that goes on under a key, which the store knows."""
    concurrency = Concurrency(key=key, limit=limit)
    made = Workflow.define(f"narrow-{key}", (Step(id="pack"),), concurrency=concurrency)
    engine.workflows.add(made)
    return made


def family(engine: Engine, holds: str, wants: Workflow, limit: int = 1) -> StartedRun:
    """A run that holds a key, and calls a workflow under another when its plan is done."""
    steps = (Step(id="plan"), call("ship", wants, needs=("plan",)))
    concurrency = Concurrency(key=holds, limit=limit)
    return start(engine, Workflow.define(f"family-{holds}", steps, concurrency=concurrency))


def circle(engine: Engine) -> tuple[StartedRun, StartedRun]:
    x, y = narrow(engine, "x"), narrow(engine, "y")
    first, second = family(engine, "x", y), family(engine, "y", x)
    first.finish("plan")
    second.finish("plan")
    return first, second


def found(engine: Engine) -> int:
    return len(engine.database.view(find_circles))


def test_why_names_two_families_that_wait_for_each_other_and_how_to_part_them(
    engine: Engine,
) -> None:
    first, second = circle(engine)
    below = [of(first), of(second)]
    assert [each.holds for each in below] == [["slot"], ["slot"]]
    links = [
        f"{first.id} has x, and {below[0].id} that it called waits for y",
        f"{second.id} has y, and {below[1].id} that it called waits for x",
    ]
    way_out = (Advice(Action.CANCEL, second.id), Advice(Action.RETRY, second.id))
    told: list[Explanation | RunExplanation] = []
    told += [engine.why_run(each.id) for each in (first, second, *below)]
    told += [engine.why(each.steps["ship"]) for each in (first, second)]
    told += [engine.why(each.steps["pack"]) for each in below]
    for each in told:
        assert all(link in str(each) for link in links)
        assert {*way_out} <= {*fixes_of(each)}
    (warning,) = warn_of_circles(engine)
    assert advice_of(warning) == way_out


def test_a_run_cancelled_and_retried_leaves_the_circle_and_both_runs_complete(
    engine: Engine,
) -> None:
    first, second = circle(engine)
    assert engine.runs.cancel(second.id).ok
    assert (of(first).holds, found(engine)) == ([], 0)
    assert engine.runs.retry(second.id).ok
    assert (second.holds, found(engine)) == (["slot"], 0)
    of(first).finish("pack")
    assert (first.status, second.holds) == ("completed", [])
    of(second).finish("pack")
    assert second.status == "completed"


def test_a_run_that_waits_for_a_key_of_a_circle_is_told_of_the_circle_too(engine: Engine) -> None:
    circle(engine)
    behind = start(engine, narrow(engine, "x"))
    assert "they wait for each other in a circle: " in engine.why_run(behind.id).summary


def test_runs_are_in_no_circle_while_another_holder_of_the_key_can_go_on(engine: Engine) -> None:
    x, y = narrow(engine, "x", limit=2), narrow(engine, "y")
    first, beside = family(engine, "x", y, limit=2), family(engine, "x", y, limit=2)
    second = family(engine, "y", x)
    for each in (first, second):
        each.finish("plan")
    waiting = of(second)
    assert (of(first).holds, waiting.holds) == (["slot"], ["slot"])
    assert found(engine) == 0
    assert "circle" not in str(engine.why_run(waiting.id))
    beside.finish("plan")
    assert found(engine) == 1
    assert "circle" in str(engine.why_run(waiting.id))


def test_runs_are_in_no_circle_once_a_key_has_room_again(engine: Engine, store_url: str) -> None:
    _, second = circle(engine)
    with raw(store_url) as run:
        run("UPDATE holdfast_slot SET capacity = 2, highest = 2 WHERE key = 'run:x'")
    assert (found(engine), of(second).holds) == (0, ["slot"])
    engine.recovery.step()
    assert of(second).holds == []


def test_waiting_for_a_run_that_can_go_on_is_no_circle(engine: Engine) -> None:
    x, y = narrow(engine, "x"), narrow(engine, "y")
    first, second = family(engine, "x", y), family(engine, "y", x)
    first.finish("plan")
    told = str(engine.why(first.steps["ship"]))
    assert f"y is full, 1 of 1: {second.id}" in told
    assert "circle" not in told
