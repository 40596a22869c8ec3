"""Programs with different functions on one store: each task comes to one that can run it."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, needs
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine, engine_of
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.worker.pool.version_holds import LOOK_EVERY, VersionHolds
from holdfast.worker.pool.worker_options import WorkerOptions
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.raw_store import raw
from tests.contract.task_states import create, start
from tests.contract.worker.function_workers import OneFunction
from tests.race.racers import eventually

FEATURE = """
name: feature
agents: {planner: {external: true}}
steps:
  - {id: plan, agent: planner, prompt: think}
  - {id: check, agent: planner, prompt: think again}
"""
PATIENCE = 30


class Program(OneFunction):
    """A program whose functions can be taken away and given back."""

    def __init__(self, *, has_functions: bool) -> None:
        super().__init__(lambda ctx: ctx.attempt)
        self.has_functions = has_functions

    def has_function(self, workflow: str | None, step: str | None) -> bool:
        return super().has_function(workflow, step) and self.has_functions


def versions_of(engine: Engine, program: OneFunction, **options: Any) -> VersionHolds:
    return VersionHolds(engine, program, WorkerOptions(**options))


def hold(engine: Engine, versions: VersionHolds) -> Assignment:
    """Have a worker claim a task and put it on hold for want of a function."""
    create(engine)
    (assignment,) = try_out(engine, versions)
    return assignment


def try_out(engine: Engine, versions: VersionHolds) -> list[Assignment]:
    """Have a worker claim what it does not pass by, and give it back for want of a function."""
    given = engine.work.claim("worker", passing=versions.list_tasks_left())
    for each in given:
        versions.hold(each)
        assert engine.work.release(each.task_id, each.token).ok
    return given


def held(engine: Engine, assignment: Assignment) -> bool:
    return engine.tasks.get(assignment.task.id).holds.names == ("version",)


def test_a_running_worker_lifts_the_hold_from_what_it_has_the_function_of(
    hf: Holdfast, store_url: str
) -> None:
    began, go_on = threading.Event(), threading.Event()

    @hf.task
    def busy() -> None:
        began.set()
        assert go_on.wait(PATIENCE)

    @hf.task
    def only_here() -> str:
        return "made"

    with Holdfast(store_url) as other, hf.worker(name="able", concurrency=1):
        busy.enqueue()
        assert began.wait(PATIENCE)
        with other.worker(name="unable", concurrency=1):
            handle = only_here.enqueue()
            assert eventually(lambda: hf.tasks.get(handle.id).attempt == 1)
            go_on.set()
            assert handle.result(PATIENCE) == "made"
    owners = [each.owner for each in hf.tasks.attempts(handle.id)]
    assert owners == ["unable", "able"]


def test_a_worker_without_the_function_puts_back_the_hold_that_was_lifted_and_claims_no_more(
    hf: Holdfast, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    @hf.task
    def only_here() -> None: ...

    with Holdfast(store_url) as other:

        @other.task
        def marker() -> None: ...

        with other.worker(name="unable", concurrency=1):
            handle = only_here.enqueue()
            assert eventually(lambda: hf.tasks.get(handle.id).state == "held")
            assert hf.tasks.unhold(handle.id, "version").ok
            assert eventually(lambda: hf.tasks.get(handle.id).attempt == 2)
            assert eventually(lambda: hf.tasks.get(handle.id).state == "held")
            # Whatever a worker is that lifts it and does not come to it: it is left to that one.
            hf.workers.register("busy", agents=["default"])
            busy = WorkerOptions(name="busy")
            (lifted,) = hf.tasks.unhold_known(hf.tasks.wanted(), busy, lambda _: True, most=1)
            assert lifted.ok
            for _ in range(2):
                # It stands behind the other in the queue.
                marker.enqueue().result(PATIENCE)
    assert hf.tasks.get(handle.id).state == "ready"
    assert [each.outcome for each in hf.tasks.attempts(handle.id)] == ["released"] * 2
    assert (
        f"attempt 1 of only_here ({handle.id}) is given back: this program has no function "
        "'only_here'; it is held until a worker of a program starts that can run it"
    ) in caplog.messages


def test_tasks_that_name_no_function_are_left_to_other_claimers(hf: Holdfast) -> None:
    @hf.task
    def marker() -> None: ...

    lone = hf.tasks.create(NewTask(title="call mum")).id
    trip, children = plan(engine_of(hf), "book", "pack", agent="default")
    assert hf.tasks.finalize_plan(trip).ok
    with hf.worker(concurrency=1):
        # They stand before it in the queue.
        marker.enqueue().result(PATIENCE)
        assert [each.task.id for each in hf.work.claim("me", count=9)] == [lone, children[0]]
        marker.enqueue().result(PATIENCE)
    told = [hf.tasks.get(each) for each in (lone, *children)]
    assert [(each.attempt, each.holds.names) for each in told] == [(1, ()), (1, ()), (0, ())]


def test_a_step_that_its_file_gives_no_program_is_left_to_whoever_claims_it(
    hf: Holdfast, tmp_path: Path
) -> None:
    @hf.task(agent="planner")
    def marker() -> None: ...

    path = tmp_path / "feature.yaml"
    path.write_text(FEATURE)
    with hf.worker(agents=["planner"], concurrency=1):
        run = hf.workflow_file(path).start()
        for step in ("plan", "check"):
            # It stands before it in the queue, and for `check` the end of `plan` would hand it on.
            marker.enqueue().result(PATIENCE)
            task = run.task(step)
            told = hf.tasks.get(task.id)
            assert (told.attempt, told.holds.names) == (0, ())
            (given,) = hf.work.claim("me", agents=["planner"])
            assert given.task.id == task.id
            assert hf.work.complete(given.task.id, given.token, {}).ok
        assert eventually(lambda: hf.runs.get(run.id).status == "completed")


def test_an_external_step_of_a_run_begun_before_they_were_told_apart_is_left_to_claims_too(
    hf: Holdfast, store_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "feature.yaml"
    path.write_text(FEATURE)
    first, second = (hf.workflow_file(path).start().task("plan").id for _ in range(2))
    # As a worker of an earlier release left it.
    assert hf.tasks.hold(second, "version").ok
    with raw(store_url) as run:
        run("UPDATE holdfast_task SET bare = false")
    with Holdfast(store_url) as other:

        @other.workflow("feature").step
        def plan() -> str:
            return "by a function of these names"

        @other.task(agent="planner")
        def marker() -> None: ...

        with other.worker(agents=["planner"], concurrency=1):
            # Both stand before it in the queue.
            marker.enqueue().result(PATIENCE)
            given = hf.work.claim("me", agents=["planner"], count=2)
            assert [each.task.id for each in given] == [first, second]
    for task_id in (first, second):
        outcomes = [each.outcome for each in hf.tasks.attempts(task_id)]
        assert outcomes == ["released", None]
        assert hf.tasks.get(task_id).failures == 0
    assert (
        f"attempt 1 of plan ({first}) is given back: its workflow file gives it no" in caplog.text
    )


def test_a_worker_lifts_held_steps_that_no_program_runs_in_their_version_of_the_workflow(
    engine: Engine,
) -> None:
    works = (StepWork(prompt="think"), StepWork(command=("think",)), None)
    tasks = []
    for work in works:
        declared = None if work is None else WorkflowDeclarations()
        step = Step(id="plan", agent="planner", work=work)
        run = start(engine, Workflow.define("feature", (step,), declared=declared), input={})
        tasks.append(run.steps["plan"])
        assert engine.tasks.hold(tasks[-1], "version").ok
    versions_of(engine, Program(has_functions=False)).lift_holds()
    holds = [engine.tasks.get(each).holds.names for each in tasks]
    assert holds == [(), ("version",), ("version",)]


def test_a_task_that_a_worker_passes_is_left_to_others(engine: Engine) -> None:
    first, second = create(engine), create(engine)
    assert [each.task.id for each in engine.work.claim("one", passing=[first])] == [second]
    assert engine.work.claim("one", passing=[first]) == []
    assert [each.task.id for each in engine.work.claim("two")] == [first]


def test_a_hold_is_looked_for_no_more_than_once_a_second(
    engine: Engine, clock: ManualClock
) -> None:
    unable = versions_of(engine, Program(has_functions=False))
    able = versions_of(engine, Program(has_functions=True))
    able.lift_holds()
    assignment = hold(engine, unable)
    able.lift_holds()
    assert held(engine, assignment)
    clock.advance(LOOK_EVERY)
    able.lift_holds()
    assert not held(engine, assignment)


def test_held_tasks_are_looked_through_page_by_page_and_then_from_the_start_again(
    engine: Engine, clock: ManualClock
) -> None:
    class Knowing(OneFunction):
        def has_function(self, workflow: str | None, step: str | None) -> bool:
            asked.append((workflow, step))
            return step == "known"

    asked: list[tuple[str | None, str | None]] = []
    steps = ["other"] * 6 + ["known"] * 3 + ["ended"] * 4 + ["known"]
    tasks = [create(engine, step=step) for step in steps]
    for task_id, step in zip(tasks, steps, strict=True):
        assert engine.tasks.hold(task_id, "version").ok
        if step == "ended":
            assert engine.tasks.cancel(task_id).ok
    versions = VersionHolds(engine, Knowing(lambda ctx: ctx.attempt), WorkerOptions(), at_once=4)
    lifted = []
    for _ in range(5):
        versions.lift_holds()
        clock.advance(LOOK_EVERY)
        lifted.append(sum(not engine.tasks.get(each).holds for each in tasks))
    assert lifted == [0, 2, 3, 4, 4]
    assert Counter(step for _, step in asked) == {"other": 3, "known": 3}


def test_a_step_is_lifted_by_a_program_that_has_it_in_that_workflow(
    engine: Engine, clock: ManualClock
) -> None:
    class Knowing(OneFunction):
        workflow: str | None = "other"

        def has_function(self, workflow: str | None, step: str | None) -> bool:
            return (workflow, step) == (self.workflow, "plan")

    run, program = start(engine), Knowing(lambda ctx: ctx.attempt)
    alone = create(engine, step="plan")
    for task_id in (run.steps["plan"], alone):
        assert engine.tasks.hold(task_id, "version").ok
    versions = versions_of(engine, program)
    for workflow, held_still in (("other", 2), ("chain", 1), (None, 0)):
        program.workflow = workflow
        versions.lift_holds()
        clock.advance(LOOK_EVERY)
        tasks = [engine.tasks.get(each) for each in (run.steps["plan"], alone)]
        assert len([task for task in tasks if task.holds]) == held_still


def test_a_worker_lifts_its_own_hold_only_when_it_has_got_the_function(
    engine: Engine, clock: ManualClock
) -> None:
    program = Program(has_functions=False)
    versions = versions_of(engine, program)
    assignment = hold(engine, versions)
    versions.lift_holds()
    assert held(engine, assignment)
    program.has_functions = True
    clock.advance(LOOK_EVERY)
    versions.lift_holds()
    assert not held(engine, assignment)
    assert versions.list_tasks_left() == ()


def test_a_worker_does_not_lift_what_its_own_function_could_not_run(
    engine: Engine, clock: ManualClock
) -> None:
    program = Program(has_functions=True)
    versions = versions_of(engine, program)
    assignment = hold(engine, versions)
    clock.advance(LOOK_EVERY)
    versions.lift_holds()
    assert held(engine, assignment)
    versions_of(engine, program).lift_holds()
    assert not held(engine, assignment)


def test_a_task_that_a_person_has_freed_is_tried_again_by_the_worker_that_gave_it_back(
    hf: Holdfast,
) -> None:
    order = hf.workflow("order")

    @order.step
    def pack() -> str:
        return "parcel"

    @order.step
    def ship(parcel: str = needs(pack)) -> str:
        return f"{parcel} sent"

    run = order.start()
    box, van = (run.task(step).id for step in ("pack", "ship"))
    assert hf.tasks.unblock(van, [box]).ok
    with hf.worker(name="able", concurrency=1):
        assert eventually(lambda: hf.tasks.get(box).status == "done")
        assert eventually(lambda: hf.tasks.get(van).state == "held")
        assert hf.tasks.block(van, [box]).ok
        assert hf.tasks.unhold(van, "version").ok
        assert run.result(PATIENCE) == "parcel sent"
    told = [(each.owner, each.outcome) for each in hf.tasks.attempts(van)]
    assert told == [("able", "released"), ("able", "completed")]


def test_each_worker_tries_once_what_a_person_has_freed(engine: Engine, clock: ManualClock) -> None:
    program = Program(has_functions=True)
    workers = [versions_of(engine, program, name=name) for name in ("one", "two")]
    for each in ("one", "two"):
        engine.workers.register(each, agents=["default"])
    task_id = create(engine)
    for lifts in (1, 2, 3):
        # However often they look, and whoever was first.
        for versions in workers * 3:
            clock.advance(LOOK_EVERY)
            versions.lift_holds()
            try_out(engine, versions)
        assert engine.tasks.get(task_id).holds.names == ("version",)
        assert engine.tasks.get(task_id).attempt == 2 * lifts
        assert engine.tasks.unhold(task_id, "version").ok
        workers.reverse()


def test_a_worker_hears_of_a_lift_though_another_has_put_the_hold_back(
    engine: Engine,
) -> None:
    first, second = (versions_of(engine, Program(has_functions=True)) for _ in range(2))
    assignment = hold(engine, first)
    assert engine.tasks.unhold(assignment.task_id, "version", actor="ada").ok
    try_out(engine, second)
    assert held(engine, assignment)
    assert first.lift_holds()
    assert first.list_tasks_left() == ()
    assert not held(engine, assignment)


def test_a_task_freed_of_another_hold_is_not_tried_again(
    engine: Engine,
) -> None:
    versions = versions_of(engine, Program(has_functions=True))
    assignment = hold(engine, versions)
    assert engine.tasks.hold(assignment.task_id).ok
    assert engine.tasks.unhold(assignment.task_id).ok
    assert not versions.lift_holds()
    assert versions.list_tasks_left() == (assignment.task_id,)
    assert held(engine, assignment)


def test_a_hold_that_a_worker_put_back_before_it_left_is_lifted_by_nobody_who_tried(
    engine: Engine, clock: ManualClock
) -> None:
    first, second = (
        versions_of(engine, Program(has_functions=True), name=name) for name in ("one", "two")
    )
    assignment = hold(engine, first)
    second.lift_holds()
    try_out(engine, second)
    clock.advance(LOOK_EVERY)
    assert not first.lift_holds()
    assert held(engine, assignment)
    assert engine.tasks.get(assignment.task_id).attempt == 2


def test_a_task_that_a_worker_lifted_and_a_person_paused_is_not_tried_by_others(
    engine: Engine,
) -> None:
    unable = versions_of(engine, Program(has_functions=False))
    engine.workers.register("able", agents=["default"])
    assignment = hold(engine, unable)
    versions_of(engine, Program(has_functions=True), name="able").lift_holds()
    assert engine.tasks.hold(assignment.task_id).ok
    assert not unable.lift_holds()
    assert unable.list_tasks_left() == (assignment.task_id,)


def test_a_task_lifted_by_a_worker_and_paused_for_a_while_is_not_tried_by_others(
    engine: Engine, clock: ManualClock
) -> None:
    unable = versions_of(engine, Program(has_functions=False))
    engine.workers.register("able", agents=["default"])
    assignment = hold(engine, unable)
    versions_of(engine, Program(has_functions=True), name="able").lift_holds()
    assert engine.tasks.hold(assignment.task_id).ok
    assert engine.tasks.unhold(assignment.task_id).ok
    clock.advance(LOOK_EVERY)
    assert not unable.lift_holds()
    assert unable.list_tasks_left() == (assignment.task_id,)


def test_a_task_that_a_worker_lifted_is_not_left_to_a_later_worker_of_its_name(
    engine: Engine, clock: ManualClock
) -> None:
    unable = versions_of(engine, Program(has_functions=False))
    found = engine.workers.register("able", agents=["default"])
    assert found is not None
    hold(engine, unable)
    versions_of(engine, Program(has_functions=True), name="able").lift_holds()
    assert engine.workers.forget("able", found["started_at"]).ok
    clock.advance(LOOK_EVERY)
    engine.workers.register("able", agents=["painter"])
    assert unable.lift_holds()
    assert unable.list_tasks_left() == ()


@pytest.mark.parametrize("how", ["left", "died", "told to go"])
def test_a_task_that_a_worker_lifted_is_left_to_that_worker_while_it_lives(
    engine: Engine, clock: ManualClock, how: str
) -> None:
    unable = versions_of(engine, Program(has_functions=False))
    able = versions_of(engine, Program(has_functions=True), name="able")
    found = engine.workers.register("able", agents=["default"])
    assert found is not None
    assignment = hold(engine, unable)
    able.lift_holds()
    (told,) = [each for each in engine.tasks.events(assignment.task_id) if "unheld" in each.type]
    assert told.actor == "worker:able"
    assert not unable.lift_holds()
    assert unable.list_tasks_left() == (assignment.task_id,)
    match how:
        case "left":
            assert engine.workers.forget("able", found["started_at"]).ok
        case "died":
            clock.advance(engine.settings.lease)
        case _:
            assert engine.workers.drain("able").ok
    clock.advance(LOOK_EVERY)
    assert unable.lift_holds()
    try_out(engine, unable)
    assert held(engine, assignment)
    # Once: nobody has lifted it since.
    clock.advance(LOOK_EVERY)
    assert not unable.lift_holds()


@pytest.mark.parametrize(
    ("agents", "tags", "lifted"),
    [
        (("painter",), ("gpu", "eu"), True),
        (("default", "painter"), ("gpu",), True),
        (("default",), ("gpu",), False),
        (("painter",), (), False),
    ],
)
def test_a_worker_lifts_only_what_it_would_take(
    engine: Engine, agents: tuple[str, ...], tags: tuple[str, ...], *, lifted: bool
) -> None:
    task_id = create(engine, agent="painter", tags=("gpu",))
    assert engine.tasks.hold(task_id, "version").ok
    versions_of(engine, Program(has_functions=True), agents=agents, tags=tags).lift_holds()
    assert (engine.tasks.get(task_id).holds.names == ()) is lifted
