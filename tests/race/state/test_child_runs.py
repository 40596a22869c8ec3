"""A step and the run that it calls, while both of them are reported on and steered."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.engine.core.operation import AdvanceRun, CancelRun, HoldRun, Operation, RetryRun
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import OnFailure, Step
from tests.race.explorer import Plans, Stage
from tests.race.racers import Racer
from tests.race.state.test_runs import failure
from tests.race.test_explorer import changed
from tests.race.workflow_states import call, calling
from tests.race.worlds import World

LAST = Step(id="last", needs=("ship",))
ENDED = {"done", "completed", "cancelled"}


@pytest.mark.parametrize("what", ["run", "ship@1"])
def test_the_end_of_a_called_run_against_cancel(stage: Stage, what: str) -> None:
    def scenario(world: World) -> Plans:
        calling(world, LAST)
        return [world.complete("ship@1.pack")], [world.cancel(what)]

    for outcome in stage.explore(scenario):
        told = outcome.statuses
        assert (told["ship@1"] == "completed") == (told["ship@1.pack"] == "done")
        assert told["ship"] in {"done", "cancelled", "failed"}


def test_two_called_runs_end_at_once_and_what_needs_both_is_unblocked_once(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        calling(world, call(world.flow(Step(id="pack")), "bill"), join())
        world.start("bill@1.pack")
        return [world.complete("ship@1.pack")], [world.complete("bill@1.pack")]

    for outcome in stage.explore(scenario):
        assert outcome.history("join").count("task.unblocked") == 1
        assert outcome.history("ship").count("task.done") == 1


def join() -> Step:
    return Step(id="join", needs=("ship", "bill"))


def test_a_called_run_is_begun_anew_while_it_ends(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = calling(world, LAST)
        again = RetryRun(run_id=run, actor="user", step="ship")
        return [again], [world.complete("ship@1.pack")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["ship@2"] == "running"
        assert outcome.statuses["ship@1"] in ENDED


@pytest.mark.parametrize("kind", [HoldRun, CancelRun])
def test_a_workflow_is_called_while_the_run_is_held_or_cancelled(
    stage: Stage, kind: type[HoldRun | CancelRun]
) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="plan"), call(world.flow(Step(id="pack")), needs=("plan",)))
        world.start("plan")
        steer: Operation = (
            HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)
            if kind is HoldRun
            else CancelRun(run_id=run, actor="user")
        )
        return [world.complete("plan")], [steer]

    for outcome in stage.explore(scenario):
        assert outcome.statuses.get("ship@1.pack") != "running"


def test_a_called_run_is_let_in_and_calls_while_the_one_above_it_is_cancelled(
    stage: Stage,
) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="alone"), limit=1, name="other")
        outer = world.flow(call(world.flow(Step(id="pack"), name="inner"), "send"), limit=1)
        world.run(call(outer))
        world.start("alone")
        return [world.complete("alone")], [world.cancel("run")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["ship@1"] == "cancelled"
        assert outcome.statuses.get("ship@1.send@1", "cancelled") == "cancelled"


def test_a_failure_that_goes_back_cancels_what_runs_beside_it(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        flow = world.flow(Step(id="pack"))
        back = OnFailure(action="goto", step="plan", max_rounds=2)
        ship = call(flow, needs=("plan",), on_failure=back)
        world.run(Step(id="plan"), ship, call(flow, "bill", needs=("plan",)))
        world.finish("plan")
        for name in ("ship@1.pack", "bill@1.pack"):
            world.start(name)
        return [failure(world, "ship@1.pack")], [world.complete("bill@1.pack")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["bill@1"] in ENDED
        assert outcome.statuses["run"] == "running"


def test_two_advances_of_a_step_that_was_left_before_its_call(
    store_url: str, stage: Stage, tmp_path: Path
) -> None:
    files = changed("ripe_tasks", "AND task.status = 'queued'", "AND 1 = 0", tmp_path / "sql")
    with closing(Racer(store_url, "careless", stage.day, files)) as careless:

        def scenario(world: World) -> Plans:
            run = world.run(Step(id="plan"), call(world.flow(Step(id="pack")), needs=("plan",)))
            world.start("plan")
            careless.perform([world.complete("plan")])
            return [AdvanceRun(run_id=run)], [AdvanceRun(run_id=run)]

        for outcome in stage.explore(scenario):
            assert outcome.history("ship").count("task.called") == 1
            assert outcome.statuses["ship@1"] == "running"
