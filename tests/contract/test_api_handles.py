"""Handles stand wherever an id does."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast, InvalidInput

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
    for needed in ([first, second.id], {first, second}):
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


def test_what_has_no_id_is_refused_by_name(hf: Holdfast) -> None:
    nobody: Any = 7
    with pytest.raises(InvalidInput, match="target: must be text, not int"):
        hf.signal(nobody, "go")
