"""How a run or task is named: whole ids, beginnings, the last run, steps of a run."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.workflow.graph import Step
from tests.contract.cli.command_line import Typed
from tests.contract.engine.state.loops.test_loops import begin, loop
from tests.contract.task_states import MISSING_RUN, create, start


def test_a_run_is_found_by_its_id_by_its_beginning_and_as_the_last(
    engine: Engine, typed: Typed
) -> None:
    start(engine)
    run = start(engine)
    for text in (run.id, run.id[:-1], "@last"):
        assert typed.json("show", text)["id"] == run.id


def test_a_task_is_found_by_its_step_in_a_run(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    for text in ("@last:work", f"{run.id}:work", f"{run.id[:-1]}:work", run.steps["work"]):
        assert typed.json("show", text)["id"] == run.steps["work"]


def test_a_run_a_task_and_a_step_are_found_by_a_key(engine: Engine, typed: Typed) -> None:
    run, task = start(engine, key="shop:order-7"), create(engine, "send", key="mail 7")
    assert typed.json("show", "key:shop:order-7")["id"] == run.id
    assert typed.json("show", "key:shop:order-7:work")["id"] == run.steps["work"]
    assert typed.json("show", "key:mail 7")["id"] == task
    assert typed.ok("pause", "key:shop:order-7", "key:mail 7").count("paused") == 2
    listed = [typed.json("runs", "--key", "shop:order-7"), typed.json("tasks", "--key", "mail 7")]
    assert [[each["id"] for each in page["items"]] for page in listed] == [[run.id], [task]]
    assert [each["id"] for each in typed.json("tasks", "--step", "plan")["items"]] == [
        run.steps["plan"]
    ]


def test_a_key_that_nothing_has_and_one_of_two_are_told(engine: Engine, typed: Typed) -> None:
    run, task = start(engine, key="order-7"), create(engine, "send", key="order-7")
    told = typed.refused(2, "show", "key:order-9")
    assert "there is no such run or task in this store; near it: 'order-7'" in told
    told = typed.refused(2, "cancel", "key:order-7")
    assert "a run and a task have the key 'order-7'" in told
    assert f"{run.id} (chain, running) and {task} (send, queued)" in told
    assert typed.json("tasks", "--run", "key:order-7")["items"][0]["run_id"] == run.id
    assert typed.json("task", "edit", "key:order-7", "--title", "sent")["task"]["id"] == task
    told = typed.refused(2, "show", "key:order-7:werk")
    assert "the steps there are plan, work, review" in told


def test_a_beginning_of_several_tells_them_all(engine: Engine, typed: Typed) -> None:
    first, second = create(engine, "one"), create(engine, "two")
    told = typed.refused(2, "show", "t_0")
    assert f"t_0 is the beginning of several: {first} (one, queued), {second} (two, queued)" in told


def test_an_id_that_is_nowhere_tells_the_nearest(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    slip = run.id[:-1] + ("0" if run.id[-1] != "0" else "1")
    told = typed.refused(2, "show", slip)
    assert f"there is no such run in this store; the nearest: {run.id} (chain, running)" in told
    assert told.endswith("next:  holdfast runs\n")
    told = typed.refused(2, "show", MISSING_RUN)
    assert f"the newest: {run.id} (chain, running)" in told
    told = typed.refused(2, "show", "t_7zzz")
    assert "the newest: t_" in told
    assert told.endswith("next:  holdfast tasks\n")


def test_a_step_that_is_nowhere_tells_those_there_are(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    told = typed.refused(2, "why", "@last:werk")
    assert "the steps there are plan, work, review" in told
    assert told.endswith(f"next:  holdfast show {run.id}\n")


def test_a_step_that_is_to_come_tells_when_it_will_be_made(engine: Engine, typed: Typed) -> None:
    run = begin(engine, Step(id="plan"), loop(needs=("plan",)))
    told = typed.refused(2, "why", "@last:build.2.implement")
    assert "no such task yet; build makes its items when it begins, after plan (queued)" in told
    assert told.endswith(f"next:  holdfast show {run}\n")


def test_a_run_given_for_a_task_and_a_task_for_a_run_say_so(engine: Engine, typed: Typed) -> None:
    run = start(engine)
    told = typed.refused(2, "task", "reset", run.id)
    assert f"is a run, and a task is wanted; its are {run.id}:plan" in told
    told = typed.refused(2, "tasks", "--run", run.steps["plan"])
    assert f"is a task, and a run is wanted; its run is {run.id}" in told


@pytest.mark.parametrize(
    "text", ["nonsense", "", "r_", "r_!", "../etc", "t_" + "0" * 30, "x" * 999]
)
@pytest.mark.usefixtures("engine")
def test_a_text_that_names_nothing_is_refused_with_how_to_name_a_run_or_task(
    typed: Typed, text: str
) -> None:
    told = typed.refused(2, "show", text)
    assert "names no run or task; write an id (r_… or t_…)" in told
    assert len(told) < 400
