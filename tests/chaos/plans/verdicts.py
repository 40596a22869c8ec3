"""Groups of verdicts, of last failures with a plan for them, and of what people say to them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.core.operation import (
    AnswerTask,
    Claim,
    Complete,
    Fail,
    Lose,
    Operation,
    RetryRun,
    SettleTask,
)
from holdfast.engine.state.durable import AskQuestion
from holdfast.model.retry import RetryPolicy
from holdfast.model.workflow.graph import OnFailure, Step
from tests.chaos.plans.registry import group_of
from tests.chaos.plans.user_requests import ACTOR, about, break_for_good
from tests.chaos.plans.worker_reports import fail
from tests.race.workflow_states import ACCEPT, REJECT, judging, loop, verdict
from tests.race.worlds import World

ONCE = RetryPolicy(max_attempts=1, max_lost=1)
SKIP, ASK = OnFailure(action="skip"), OnFailure(action="ask")
BACK = OnFailure(action="goto", step="build")


def loop_being_judged(world: World) -> None:
    verify = Step(id="verify", verifies="build", needs=("build",))
    world.run(loop(), verify, Step(id="last", needs=("build",)), given=list("abc"))
    for item in range(3):
        world.finish(f"one.{item}")
    world.start("verify")


def out_of_rounds(world: World, plan: OnFailure) -> str:
    judging(world, in_item=True, max_rounds=1, on_failure=plan)
    assert world.engine.commits.submit(verdict(world, REJECT, "verify.0")).result().ok
    return world.ids["run"]


def trying(world: World, *plans: OnFailure) -> None:
    """Steps under their last attempt, each with a plan for its failure and one that needs it."""
    world.run(
        *(Step(id=f"try-{place}", retry=ONCE, on_failure=plan) for place, plan in enumerate(plans)),
        *(Step(id=f"next-{place}", needs=(f"try-{place}",)) for place, _ in enumerate(plans)),
    )
    for place, _ in enumerate(plans):
        world.start(f"try-{place}")


def settle(world: World, name: str, *, approved: bool) -> SettleTask:
    return SettleTask(**about(world, name), approved=approved, note='"seen"')


@group_of(Complete, Claim)
def accept_what_an_item_made(world: World) -> Sequence[Operation]:
    judging(world, in_item=True)
    return [verdict(world, ACCEPT, "verify.0"), world.claim("anna")]


@group_of(Complete, Claim)
def reject_what_an_item_made(world: World) -> Sequence[Operation]:
    judging(world, in_item=True)
    return [verdict(world, REJECT, "verify.0"), world.claim("anna")]


@group_of(Complete, Claim)
def reject_one_item_of_a_loop(world: World) -> Sequence[Operation]:
    loop_being_judged(world)
    said = '{"feedback":"too long","items":[1],"verdict":"reject"}'
    return [verdict(world, said), world.claim("anna", 2)]


@group_of(Complete, Claim)
def reject_a_whole_loop(world: World) -> Sequence[Operation]:
    loop_being_judged(world)
    return [verdict(world, REJECT), world.claim("anna", 3)]


@group_of(Complete)
def reject_for_the_last_time(world: World) -> Sequence[Operation]:
    judging(world, in_item=True, max_rounds=1)
    return [verdict(world, REJECT, "verify.0")]


@group_of(Complete)
def reject_for_the_last_time_and_ask(world: World) -> Sequence[Operation]:
    judging(world, in_item=True, max_rounds=1, on_failure=ASK)
    return [verdict(world, REJECT, "verify.0")]


@group_of(RetryRun, Claim)
def retry_a_verifier_out_of_rounds(world: World) -> Sequence[Operation]:
    run = out_of_rounds(world, OnFailure())
    return [RetryRun(run_id=run, actor=ACTOR), world.claim("anna")]


@group_of(SettleTask, Claim)
def approve_one_more_round(world: World) -> Sequence[Operation]:
    out_of_rounds(world, ASK)
    return [settle(world, "verify.0", approved=True), world.claim("anna")]


@group_of(SettleTask, Claim)
def reject_an_approval_that_goes_back(world: World) -> Sequence[Operation]:
    back = OnFailure(action="goto", step="work", max_rounds=2)
    gate = Step(id="gate", needs=("work",), approval="Merge?", on_failure=back)
    world.run(Step(id="work"), gate)
    world.finish("work")
    return [settle(world, "gate", approved=False), world.claim("anna")]


@group_of(Fail, Claim)
def fail_for_good_with_a_plan_for_it(world: World) -> Sequence[Operation]:
    trying(world, SKIP, ASK)
    return [
        fail(world, "try-0", retryable=True),
        fail(world, "try-1", retryable=True),
        world.claim("anna"),
    ]


@group_of(Lose)
def lose_for_good_with_a_plan_for_it(world: World) -> Sequence[Operation]:
    trying(world, SKIP, ASK)
    world.day.advance(31)
    return [Lose(task_id=world.ids[f"try-{place}"], fence=1) for place in (0, 1)]


def going_back(world: World) -> None:
    world.run(
        Step(id="build"),
        Step(id="beside", needs=("build",), concurrency=world.concurrency(1)),
        Step(id="test", needs=("build",), retry=ONCE, on_failure=BACK),
        Step(id="last", needs=("test", "beside")),
    )
    world.finish("build")
    world.start("beside")
    world.start("test")


@group_of(Fail, Claim)
def fail_and_go_back(world: World) -> Sequence[Operation]:
    going_back(world)
    return [fail(world, "test", retryable=True), world.claim("anna")]


@group_of(Lose)
def lose_and_go_back(world: World) -> Sequence[Operation]:
    going_back(world)
    world.day.advance(31)
    return [Lose(task_id=world.ids["test"], fence=1)]


@group_of(SettleTask, Claim)
def approve_and_reject_what_was_asked(world: World) -> Sequence[Operation]:
    for number in range(2):
        step = Step(id=f"try-{number}", retry=ONCE, on_failure=ASK)
        world.run(step, name=f"run {number}")
        break_for_good(world, step.id)
    return [
        settle(world, "try-0", approved=True),
        settle(world, "try-1", approved=False),
        world.claim("anna"),
    ]


@group_of(SettleTask, Claim)
def settle_two_approvals(world: World) -> Sequence[Operation]:
    for name in ("yes", "no"):
        gate = Step(id=name, approval="Merge?")
        world.run(gate, Step(id=f"after-{name}", needs=(name,)), name=f"run {name}")
    return [
        settle(world, "yes", approved=True),
        settle(world, "no", approved=False),
        world.claim("anna"),
    ]


def ask(world: World, name: str) -> AskQuestion:
    noted = (("ask asked", '"which?"'),)
    return AskQuestion(
        task_id=world.ids[name], fence=world.fences[name], question='"which?"', notes=noted
    )


@group_of(AskQuestion, AnswerTask, Claim)
def ask_one_question_and_answer_another(world: World) -> Sequence[Operation]:
    shared = world.concurrency(2)
    for name in ("asking", "asked"):
        world.task(name, concurrency=shared)
        world.start(name)
    assert world.engine.commits.submit(ask(world, "asked")).result().ok
    answer = AnswerTask(**about(world, "asked"), answer='"main"')
    return [ask(world, "asking"), answer, world.claim("anna")]
