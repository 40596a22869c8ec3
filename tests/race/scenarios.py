"""Races that more than one test runs."""

from __future__ import annotations

from holdfast.engine.core.operation import BlockTask, HoldRun, Lose, Renew, ReopenTask, ResetTask
from holdfast.engine.surroundings.leases import AcquireLease
from holdfast.model.status import Hold
from holdfast.model.workflow.graph import Step
from tests.race.explorer import Plans
from tests.race.worlds import LEASE, World

CHAIN = (Step(id="plan"), Step(id="work", needs=("plan",)), Step(id="check", needs=("work",)))
JOIN = (Step(id="left"), Step(id="right"), Step(id="last", needs=("left", "right")))


def claim_against_cancel(world: World) -> Plans:
    world.task("only")
    return [world.claim("anna")], [world.cancel("only")]


def claim_against_pause_of_the_run(world: World) -> Plans:
    run = world.run(Step(id="left"), Step(id="right"))
    return [world.claim("anna")], [HoldRun(run_id=run, actor="user", reason=Hold.PAUSED)]


def complete_against_cancel(world: World) -> Plans:
    world.task("only")
    world.start("only")
    return [world.complete("only")], [world.cancel("only")]


def complete_by_a_stale_attempt(world: World) -> Plans:
    world.task("only")
    world.start("only", "anna")
    stale = world.complete("only", '"stale"')
    world.day.advance(31)
    world.engine.work.recover()
    world.start("only", "anna")
    return [stale], [world.complete("only")]


def renewal_in_time_against_recovery(world: World) -> Plans:
    task = world.task("only")
    world.start("only")
    world.day.advance(29)
    return [Renew(task_id=task, fence=1, lease=LEASE)], [Lose(task_id=task, fence=1)]


def renewal_too_late_against_recovery(world: World) -> Plans:
    task = world.task("only")
    world.start("only")
    world.day.advance(30)
    return [Renew(task_id=task, fence=1, lease=LEASE)], [Lose(task_id=task, fence=1)]


def siblings_in_a_run(world: World) -> Plans:
    world.run(*JOIN)
    world.start("left")
    world.start("right")
    return [world.complete("left")], [world.complete("right")]


def siblings_without_a_run(world: World) -> Plans:
    world.task("left")
    world.task("right")
    world.task("last", "left", "right")
    world.start("left")
    world.start("right")
    return [world.complete("left")], [world.complete("right")]


def a_new_need_that_completes(world: World) -> Plans:
    world.task("need")
    world.start("need")
    return [world.create("new", "need")], [world.complete("need")]


def two_needs_that_close_a_circle(world: World) -> Plans:
    a, c = world.task("a"), world.task("c")
    world.task("a2", "a")
    world.task("c2", "c")
    d, b = world.task("d", "a2"), world.task("b", "c2")
    return (
        [BlockTask(task_id=a, actor="user", on=(b,))],
        [BlockTask(task_id=c, actor="user", on=(d,))],
    )


def a_reset_against_a_claim_of_the_next_step(world: World) -> Plans:
    world.run(*CHAIN)
    world.finish("plan")
    return [ResetTask(task_id=world.ids["plan"], actor="user")], [world.claim("anna")]


def a_new_need_far_down_a_chain_that_is_reopened(world: World) -> Plans:
    top = world.task("top")
    world.task("middle", "top")
    world.task("bottom", "middle")
    for name in ("top", "middle", "bottom"):
        world.finish(name)
    return [world.create("new", "bottom")], [ReopenTask(task_id=top, actor="user")]


def two_claims_of_a_key_with_one_place(world: World) -> Plans:
    limit = world.concurrency(1)
    world.task("one", concurrency=limit)
    world.task("two", concurrency=limit)
    return [world.claim("anna")], [world.claim("bert")]


def cancel_of_a_run_against_completions(world: World) -> Plans:
    world.run(*JOIN)
    world.start("left")
    world.start("right")
    return [world.cancel("run")], [world.complete("right"), world.complete("left")]


def two_who_want_a_lease(world: World) -> Plans:
    key = f"lease-{world.number}"
    return (
        [AcquireLease(key=key, owner="anna", ttl=LEASE)],
        [AcquireLease(key=key, owner="bert", ttl=LEASE)],
    )
