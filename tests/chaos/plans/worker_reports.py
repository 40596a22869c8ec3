"""Groups of what workers report and recovery finds."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.engine.claims.picker import Claimed
from holdfast.engine.core.operation import (
    Claim,
    Complete,
    Fail,
    Lose,
    Operation,
    Pull,
    Release,
    Renew,
)
from holdfast.engine.state.usage_limits import LiftLimit
from holdfast.model.retry import RetryPolicy
from holdfast.model.text import digest
from holdfast.model.workflow.graph import Concurrency, Step
from holdfast.model.workflow.step import Escalation, OnFailure
from tests.chaos.plans.registry import group_of
from tests.race.scenarios import CHAIN, JOIN
from tests.race.worlds import LEASE, World

ERROR = '"broken"'


def fail(world: World, name: str, *, retryable: bool) -> Fail:
    return Fail(
        task_id=world.ids[name],
        fence=world.fences[name],
        error=ERROR,
        digest=digest(ERROR),
        retryable=retryable,
        jitter=0.5,
    )


def start_tasks(world: World, *names: str, limit: int, retry: RetryPolicy | None = None) -> None:
    """Tasks without a run that share a key, all of them claimed."""
    shared = world.concurrency(limit)
    for name in names:
        world.task(name, concurrency=shared, retry=retry or RetryPolicy())
        world.start(name)


@group_of(Complete, Claim)
def complete_whose_successor_is_claimed(world: World) -> Sequence[Operation]:
    world.run(*CHAIN)
    world.start("plan")
    return [world.complete("plan"), world.claim("anna")]


def _one() -> int:
    return 1


def _none() -> tuple[str, ...]:
    return ()


def _drop(_: Claimed) -> None:
    pass


@group_of(Complete, Pull)
def complete_whose_successor_goes_to_who_stands_ready(world: World) -> Sequence[Operation]:
    world.run(*CHAIN)
    world.start("plan")
    taker = world.engine.work.standing_claim(
        "anna", agents=["default"], tags=[], room=_one, passing=_none, deliver=_drop
    )
    # It goes to another process, which has no engine to read the rest of a task by.
    taker.look_up_task, taker.bare = None, False
    return [world.complete("plan"), Pull(standing_claim=taker)]


@group_of(Complete)
def complete_both_needs_of_a_join(world: World) -> Sequence[Operation]:
    world.run(*JOIN)
    world.start("left")
    world.start("right")
    return [world.complete("left"), world.complete("right")]


@group_of(Complete, Claim)
def complete_that_ends_a_run_and_lets_the_next_one_in(world: World) -> Sequence[Operation]:
    world.run(Step(id="only"), limit=1, name="first")
    world.run(Step(id="other"), limit=1, name="second")
    world.start("only")
    return [world.complete("only"), world.claim("anna")]


@group_of(Complete, Claim)
def complete_that_makes_room_for_another(world: World) -> Sequence[Operation]:
    start_tasks(world, "first", limit=1)
    world.task("second", concurrency=Concurrency(key=next(iter(world.keys)), limit=1))
    return [world.complete("first"), world.claim("anna")]


@group_of(Fail)
def fail_that_is_tried_again(world: World) -> Sequence[Operation]:
    start_tasks(world, "only", limit=1)
    return [fail(world, "only", retryable=True)]


@group_of(Fail)
def fail_that_ends_its_run(world: World) -> Sequence[Operation]:
    world.run(*JOIN, limit=1, name="first")
    world.run(Step(id="other"), limit=1, name="second")
    world.finish("left")
    world.start("right")
    return [fail(world, "right", retryable=False)]


@group_of(Fail)
def fail_that_hands_its_step_to_another_agent(world: World) -> Sequence[Operation]:
    other = OnFailure(action="escalate", escalation=Escalation(agent="senior"))
    world.run(Step(id="hard", on_failure=other), Step(id="after", needs=("hard",)))
    world.start("hard")
    return [fail(world, "hard", retryable=False)]


@group_of(Fail)
def fail_beside_a_task_that_runs_on(world: World) -> Sequence[Operation]:
    world.run(*JOIN)
    world.start("left")
    world.start("right")
    return [fail(world, "right", retryable=False)]


@group_of(Release)
def release_of_a_key(world: World) -> Sequence[Operation]:
    start_tasks(world, "now", "later", limit=2)
    until = world.day.now() + LEASE
    return [
        Release(task_id=world.ids["now"], fence=1),
        Release(task_id=world.ids["later"], fence=1, until=until),
    ]


@group_of(Release)
def release_of_an_agent_at_its_limit(world: World) -> Sequence[Operation]:
    world.task("now")
    world.start("now")
    world.task("next")
    until = world.day.now() + LEASE
    return [Release(task_id=world.ids["now"], fence=1, until=until, limit=until)]


@group_of(Release, LiftLimit)
def one_agent_reaches_its_limit_while_that_of_another_is_lifted(
    world: World,
) -> Sequence[Operation]:
    other, until = f"other-{world.number}", world.day.now() + LEASE
    world.task("there", agent=other)
    assert world.engine.work.claim("worker", agents=(other,))
    world.task("here")
    world.start("here")
    there = Release(task_id=world.ids["there"], fence=1, limit=until)
    assert world.engine.commits.submit(there).result().ok
    return [Release(task_id=world.ids["here"], fence=1, limit=until), LiftLimit(agent=other)]


@group_of(Renew, Complete)
def renew_beside_a_completion(world: World) -> Sequence[Operation]:
    world.run(*JOIN)
    world.start("left")
    world.start("right")
    world.day.advance(10)
    renewal = Renew(task_id=world.ids["left"], fence=1, lease=LEASE, progress='"half"')
    return [renewal, world.complete("right")]


@group_of(Lose)
def lose_one_for_now_and_one_for_good(world: World) -> Sequence[Operation]:
    start_tasks(world, "again", limit=2)
    start_tasks(world, "over", limit=2, retry=RetryPolicy(max_lost=1))
    world.day.advance(31)
    return [Lose(task_id=world.ids[name], fence=1) for name in ("again", "over")]


@group_of(Lose)
def lose_in_a_run_that_fails_by_it(world: World) -> Sequence[Operation]:
    world.run(*CHAIN)
    for fence in range(1, RetryPolicy().max_lost + 1):
        if fence > 1:
            world.engine.work.recover()
        world.start("plan")
        world.day.advance(31)
    return [Lose(task_id=world.ids["plan"], fence=fence)]
