"""Handles stand wherever an id does."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import pytest

from holdfast import Context, Holdfast, InvalidInput
from holdfast.engine.runs import Runs
from holdfast.engine.tasks import Tasks
from holdfast.ids import AnyId

PATIENCE = 30


def test_a_signal_goes_to_a_handle_of_a_run_or_of_a_lone_task(hf: Holdfast) -> None:
    flow = hf.workflow("delivery")

    @flow.step
    def ship(ctx: Context) -> object:
        return ctx.wait_for("courier")

    @hf.task
    def fetch(ctx: Context) -> object:
        return ctx.wait_for("courier")

    run, task = flow.start(), fetch.enqueue()
    assert hf.signal(run, "courier", "van").ok
    assert hf.signal(task, "courier", "bike").ok
    assert hf.signal(run.task("ship"), "courier", "foot").reason == "part_of_run"
    with hf.worker():
        assert (run.result(PATIENCE), task.result(PATIENCE)) == ("van", "bike")


def test_a_task_needs_and_belongs_to_handles(hf: Holdfast) -> None:
    @hf.task
    def job() -> None:
        pass

    first, second = job.enqueue(), job.enqueue()
    several: list[Collection[AnyId]] = [[first, second.id], {first, second}]
    for needed in several:
        last = job.using(needs=needed).enqueue()
        assert sorted(hf.tasks.blocked_by(last.id)) == sorted([first.id, second.id])
    child = job.using(parent=first).enqueue()
    assert hf.tasks.get(child.id).parent_id == first.id


def test_a_schedule_goes_with_the_handle_of_a_run(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def wait(ctx: Context) -> object:
        return ctx.wait_for("go")

    @hf.task
    def tidy() -> None:
        pass

    run = flow.start()
    assert tidy.schedule("tidying", "0 3 * * *", run=run).run_id == run.id
    assert tidy.schedule("tidying", "0 3 * * *", run=run.id).run_id == run.id


def test_a_signal_target_without_an_id_is_refused_by_field(hf: Holdfast) -> None:
    nobody: Any = 7
    with pytest.raises(InvalidInput, match="target: must be text, not int"):
        hf.signal(nobody, "go")


# What a method of hf.tasks or hf.runs takes beside its id.
REST: dict[str, tuple[Any, ...]] = {
    "answer": ("yes",),
    "edit": ({"priority": 1},),
    "follow_up": ("more",),
    "hold": ("paused",),
    "task": ("step",),
    "unhold": ("paused",),
}


def _taking(desk: Tasks | Runs, parameter: str) -> list[str]:
    """The methods of a desk that say first which task or run they are about."""
    return [
        name
        for name in vars(type(desk))
        if not name.startswith("_")
        and [*inspect.signature(getattr(desk, name)).parameters][:1] == [parameter]
    ]


def test_every_method_about_a_task_takes_its_handle_or_its_record(hf: Holdfast) -> None:
    @hf.task
    def job() -> None:
        pass

    other = job.enqueue()
    rest = {**REST, "block": ([other],), "reorder_plan": ([other],)}
    methods = _taking(hf.tasks, "task_id")
    assert {"cancel", "get", "children", *rest} - {"task"} <= {*methods}
    for name in methods:
        for made in (job.enqueue(), hf.tasks.get(job.enqueue().id)):
            getattr(hf.tasks, name)(made, *rest.get(name, ()))
    assert [each.id for each in hf.tasks.list(after=other, limit=1)] < [other.id]


def test_every_method_about_a_run_takes_its_handle_or_its_record(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def step() -> None:
        pass

    methods = _taking(hf.runs, "run_id")
    assert {"cancel", "get", "pause", "retry", "task", "tasks"} <= {*methods}
    for name in methods:
        for made in (flow.start(), hf.runs.get(flow.start().id)):
            getattr(hf.runs, name)(made, *REST.get(name, ()))
    run = flow.start()
    assert [each.step for each in hf.tasks.list(run=run)] == ["step"]
    assert hf.handle(run).id == run.id


def test_a_handle_of_the_other_kind_is_refused_by_name(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def step() -> None:
        pass

    run = flow.start()
    with pytest.raises(InvalidInput, match="is a run, and a task is wanted"):
        hf.tasks.cancel(run)
    with pytest.raises(InvalidInput, match="is a task, and a run is wanted"):
        hf.runs.cancel(run.task("step"))


def test_a_graph_of_a_plan_is_made_of_handles(hf: Holdfast) -> None:
    @hf.task
    def job() -> None:
        pass

    plan = hf.plan("Plan")
    first, last = plan.add(job), plan.add(job)
    assert hf.tasks.finalize_plan(plan, graph={last: [first]}).ok
    assert hf.tasks.blocked_by(last) == [first.id]
