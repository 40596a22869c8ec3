"""Verdicts, plans for failure and people's words under every interleaving."""

from __future__ import annotations

import pytest

from holdfast.engine.core.operation import (
    AnswerTask,
    HoldRun,
    Lose,
    Operation,
    RetryRun,
    SettleTask,
)
from holdfast.engine.state.durable import AskQuestion
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import OnFailure, Step
from tests.race.explorer import Plans, Stage
from tests.race.state.test_runs import failure
from tests.race.workflow_states import ACCEPT, REJECT, judging, loop, verdict, verified
from tests.race.worlds import World

ONCE = RetryPolicy(max_attempts=1, max_lost=1)
ASK = OnFailure(action="ask")


def settle(world: World, name: str, *, approved: bool) -> SettleTask:
    return SettleTask(task_id=world.ids[name], actor="user", approved=approved)


def ask(world: World, name: str) -> AskQuestion:
    return AskQuestion(task_id=world.ids[name], fence=world.fences[name], question='"which?"')


@pytest.mark.parametrize("in_item", [False, True])
def test_a_rejection_against_cancel_of_the_run(stage: Stage, *, in_item: bool) -> None:
    def scenario(world: World) -> Plans:
        judging(world, in_item=in_item)
        name = "verify.0" if in_item else "verify"
        return [verdict(world, REJECT, name)], [world.cancel("run")]

    for outcome in stage.explore(scenario):
        assert set(outcome.statuses.values()) <= {"done", "cancelled"}


@pytest.mark.parametrize("said", [ACCEPT, REJECT, '"nothing"'])
@pytest.mark.parametrize("retry", [ONCE, RetryPolicy()])
def test_a_verdict_against_recovery_of_its_lease(
    stage: Stage, said: str, retry: RetryPolicy
) -> None:
    def scenario(world: World) -> Plans:
        judging(world, retry=retry)
        world.day.advance(31)
        lose = Lose(task_id=world.ids["verify"], fence=1)
        return [verdict(world, said)], [lose]

    stage.explore(scenario)


def test_two_verdicts_of_one_attempt(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        judging(world, in_item=True)
        return [verdict(world, REJECT, "verify.0")], [verdict(world, ACCEPT, "verify.0")]

    for outcome in stage.explore(scenario):
        assert len({"task.rejected", "task.done"} & set(outcome.history("verify.0"))) == 1


def test_rejections_of_two_items_reopen_each_its_own(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.run(loop(*verified()), given=["a", "b"])
        for item in (0, 1):
            for name in ("implement", "lint"):
                world.finish(f"{name}.{item}")
            world.start(f"verify.{item}")
        return [verdict(world, REJECT, "verify.0")], [verdict(world, REJECT, "verify.1")]

    for outcome in stage.explore(scenario):
        for item in (0, 1):
            assert outcome.history(f"implement.{item}").count("task.reopened") == 1


def test_the_last_rejection_against_retry_of_the_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        judging(world, in_item=True, max_rounds=1)
        retry = RetryRun(run_id=world.ids["run"], actor="user")
        return [verdict(world, REJECT, "verify.0")], [retry]

    stage.explore(scenario)


def test_a_step_that_goes_back_against_a_claim_of_what_it_undoes(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        back = OnFailure(action="goto", step="build", max_rounds=2)
        world.run(
            Step(id="build"),
            Step(id="beside", needs=("build",), concurrency=world.concurrency(1)),
            Step(id="test", needs=("build",), retry=ONCE, on_failure=back),
        )
        world.finish("build")
        world.start("test")
        return [failure(world, "test")], [world.claim("anna")]

    for outcome in stage.explore(scenario):
        assert outcome.history("test").count("task.went_back") == 1


@pytest.mark.parametrize("action", ["skip", "ask"])
def test_a_last_failure_against_recovery(stage: Stage, action: str) -> None:
    def scenario(world: World) -> Plans:
        plan = OnFailure(action="skip") if action == "skip" else ASK
        world.run(Step(id="try", retry=ONCE, on_failure=plan), Step(id="next", needs=("try",)))
        world.start("try")
        world.day.advance(31)
        return [failure(world, "try")], [Lose(task_id=world.ids["try"], fence=1)]

    stage.explore(scenario)


def asked(world: World) -> None:
    """A task whose last failure waits for a person."""
    world.run(Step(id="try", retry=ONCE, on_failure=ASK), Step(id="next", needs=("try",)))
    world.start("try")
    world.engine.commits.submit(failure(world, "try")).result()


def rejected_for_the_last_time(world: World) -> None:
    judging(world, max_rounds=1, on_failure=ASK)
    world.engine.commits.submit(verdict(world, REJECT)).result()


def test_approve_against_reject(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        asked(world)
        return [settle(world, "try", approved=True)], [settle(world, "try", approved=False)]

    for outcome in stage.explore(scenario):
        (one, *_), (other, *_) = outcome.first[0], outcome.second[0]
        assert {one, other} == {False, True}


@pytest.mark.parametrize("name", ["try", "verify"])
def test_approve_against_cancel_of_the_run(stage: Stage, name: str) -> None:
    def scenario(world: World) -> Plans:
        (asked if name == "try" else rejected_for_the_last_time)(world)
        return [settle(world, name, approved=True)], [world.cancel("run")]

    for outcome in stage.explore(scenario):
        assert outcome.statuses["run"] == "cancelled"
        assert set(outcome.statuses.values()) <= {"done", "cancelled"}


@pytest.mark.parametrize("approved", [False, True])
def test_an_approval_against_the_end_of_what_it_needs(stage: Stage, *, approved: bool) -> None:
    def scenario(world: World) -> Plans:
        gate = Step(id="gate", approval="Merge?", needs=("build",))
        world.run(Step(id="build"), gate, Step(id="merge", needs=("gate",)))
        world.start("build")
        return [settle(world, "gate", approved=approved)], [world.complete("build")]

    stage.explore(scenario)


def test_an_approval_against_pause_of_the_run(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        run = world.run(Step(id="gate", approval="Merge?"), Step(id="merge", needs=("gate",)))
        pause = HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)
        return [settle(world, "gate", approved=True)], [pause]

    stage.explore(scenario)


@pytest.mark.parametrize("other", ["lose", "cancel"])
def test_a_question_against_recovery_and_cancel(stage: Stage, other: str) -> None:
    def scenario(world: World) -> Plans:
        world.run(Step(id="try"))
        world.start("try")
        world.day.advance(31)
        lose = Lose(task_id=world.ids["try"], fence=1)
        against: Operation = lose if other == "lose" else world.cancel("run")
        return [ask(world, "try")], [against]

    stage.explore(scenario)


def test_two_answers_to_one_question(stage: Stage) -> None:
    def scenario(world: World) -> Plans:
        world.task("try")
        world.start("try")
        assert world.engine.commits.submit(ask(world, "try")).result().ok
        about = {"task_id": world.ids["try"], "actor": "user"}
        return [AnswerTask(**about, answer='"main"')], [AnswerTask(**about, answer='"other"')]

    for outcome in stage.explore(scenario):
        assert outcome.history("try").count("task.answered") == 1
