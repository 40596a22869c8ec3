"""A report that hands the next step on against whoever would keep that step from starting."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.engine.core.operation import EditTask, HoldRun, Operation
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Outcome, Plans, Stage
from tests.race.surroundings.test_hooks import statements_of
from tests.race.worlds import World

PLAN = Step(id="plan")
CHAIN = (PLAN, Step(id="work", needs=("plan",)))
HANDED_ON = ["task.created", "task.running"]


def explore(stage: Stage, against: Callable[[World], Operation]) -> list[Outcome]:
    """Both orders of a report, which hands a step on, and of something else; the report first."""

    def scenario(world: World) -> Plans:
        for racer in (stage.first, stage.second, stage.third):
            racer.serves = world.agent
        world.run(*CHAIN)
        world.start("plan")
        return [world.complete("plan")], [against(world)]

    before, after = stage.explore(scenario)
    assert before.history("work")[:2] == HANDED_ON
    return [before, after]


def test_a_step_is_handed_on_and_cancelled_or_cancelled_and_not_handed_on(stage: Stage) -> None:
    before, after = explore(stage, lambda world: world.cancel("run"))
    assert before.history("work") == [*HANDED_ON, "task.cancelled"]
    assert after.history("work") == ["task.created", "task.cancelled"]


def test_the_output_of_a_step_goes_to_the_next_with_its_report_and_is_not_read_again(
    stage: Stage,
) -> None:
    joined = (PLAN, Step(id="other"), Step(id="work", needs=("plan", "other")))
    for steps, reads in ((CHAIN, False), (joined, True)):
        world = stage.world()
        stage.third.serves = world.agent
        world.run(*steps)
        if steps is joined:
            world.finish("other")
        world.start("plan")
        passed = statements_of(stage, [world.complete("plan")])
        assert "hand_on" in passed
        assert ("needed_outputs" in passed) == reads


def test_a_step_is_handed_on_or_paused_with_its_run(stage: Stage) -> None:
    def pause(world: World) -> Operation:
        return HoldRun(run_id=world.ids["run"], actor="user", reason=Hold.PAUSED)

    before, after = explore(stage, pause)
    assert (before.statuses["work"], after.statuses["work"]) == ("running", "queued")


def test_a_step_is_handed_on_to_one_and_claimed_by_no_other(stage: Stage) -> None:
    for outcome in explore(stage, lambda world: world.claim_by_id("work", "bob")):
        assert outcome.second == ((),)
        assert outcome.history("work") == HANDED_ON


def test_a_step_is_handed_on_or_given_to_another_agent(stage: Stage) -> None:
    def edit(world: World) -> Operation:
        task_id = world.ids["work"]
        return EditTask(task_id=task_id, actor="user", changes={"agent": "other"})

    before, after = explore(stage, edit)
    assert (before.statuses["work"], after.statuses["work"]) == ("running", "queued")
