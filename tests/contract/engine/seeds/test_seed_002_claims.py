"""Two chains of one loop: atomic claims, leases, a guard at every side effect, one start."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import KeyConflict
from holdfast.model.result import Refusal
from holdfast.model.run import NewRun
from holdfast.model.task import Assignment, Renewal
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.raw_store import dump
from tests.contract.task_states import break_for_good, create, finish, start, take

Pair = tuple[Engine, Engine]
TTL = 30 * 60
STORIES = ("story-1", "story-2", "story-3")
LOOP = Workflow.define("loop", tuple(Step(id=story) for story in STORIES))
TDD = Workflow.define("tdd", (Step(id="implement"), Step(id="review", needs=("implement",))))


def refused(engine: Engine, claim: Assignment) -> Refusal | None:
    return engine.work.guard(claim.task.id, claim.token).reason


def renew(engine: Engine, claim: Assignment) -> bool:
    return engine.work.renew([Renewal(task_id=claim.task.id, token=claim.token)], lease=TTL)[0].ok


def expire(engine: Engine, clock: ManualClock, seconds: float = TTL) -> None:
    clock.advance(seconds)
    engine.recovery.step()


def overtaken(engine: Engine, clock: ManualClock) -> tuple[Assignment, Assignment]:
    """A claim whose lease ran out, and the claim of the same story that followed it."""
    (late,) = engine.work.claim("chain", lease=TTL)
    expire(engine, clock)
    (following,) = engine.work.claim("chain", lease=TTL)
    return late, following


def test_two_starts_of_one_loop_execute_each_story_once(engines: Pair) -> None:
    wanted = NewRun(workflow=LOOP, key="loop-tdd-v1")
    starts = [each.runs.start.submit(wanted) for each in engines]
    loops = [call.result() for call in starts]
    assert loops[0].id == loops[1].id
    assert sorted(loop.created for loop in loops) == [False, True]
    claims = [
        each.work.claim.submit(f"chain-{place}")
        for _ in STORIES
        for place, each in enumerate(engines)
    ]
    executed = [claim.task.step for call in claims for claim in call.result()]
    assert sorted(str(step) for step in executed) == list(STORIES)


def test_the_second_chain_is_told_already_claimed_at_the_plan_step(engines: Pair) -> None:
    engine, other = engines
    story = create(engine)
    mine = take(engine, story)
    assert other.work.claim("chain-b") == []
    assert other.work.claim_by_id(story, "chain-b") == []
    assert not other.why(story).claimable
    lease = engine.tasks.get(story).lease
    assert lease is not None
    assert (lease.owner, lease.expires_at) == ("worker", mine.expires_at)


def test_two_plan_functions_at_once_never_dispatch_the_same_story(engines: Pair) -> None:
    story = create(engines[0])
    calls = [each.work.claim_by_id.submit(story, "plan") for each in engines * 4]
    assert sum(len(call.result()) for call in calls) == 1
    assert engines[0].tasks.get(story).attempt == 1


def test_a_duplicate_start_does_not_clobber_existing_state(engine: Engine, store_url: str) -> None:
    first = start(engine, TDD, key="loop-tdd-v1", input={"prd": 1})
    first.finish("implement")
    store = dump(store_url)
    again = engine.runs.start(NewRun(workflow=TDD, key="loop-tdd-v1", input={"prd": 1}))
    assert (again.id, again.created) == (first.id, False)
    assert dump(store_url) == store


def test_a_duplicate_start_with_another_body_touches_nothing(
    engine: Engine, store_url: str
) -> None:
    first = start(engine, TDD, key="loop-tdd-v1", input={"prd": 1})
    first.take("implement")
    store = dump(store_url)
    for other_body in (
        NewRun(workflow=TDD, key="loop-tdd-v1", input={"prd": 2}),
        NewRun(workflow=LOOP, key="loop-tdd-v1", input={"prd": 1}),
    ):
        with pytest.raises(KeyConflict) as conflict:
            engine.runs.start(other_body)
        assert conflict.value.existing == first.id
    assert dump(store_url) == store


def test_a_killed_chain_loses_its_lease_after_the_ttl_and_a_retry_chain_can_claim(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, TDD)
    (killed,) = engine.work.claim("chain-a", lease=TTL)
    expire(engine, clock, TTL - 1)
    assert engine.work.claim("chain-b") == []
    expire(engine, clock, 1)
    (retried,) = engine.work.claim("chain-b")
    assert (retried.task.id, retried.attempt) == (killed.task.id, killed.attempt + 1)
    assert engine.work.complete(retried.task.id, retried.token, "done").ok
    run.finish("review")
    assert run.status == "completed"


def test_renewal_by_each_step_prevents_expiry_during_long_runs(
    engine: Engine, clock: ManualClock
) -> None:
    create(engine)
    (claim,) = engine.work.claim("chain-a", lease=TTL)
    for _ in range(3):
        expire(engine, clock, TTL - 1)
        assert renew(engine, claim)
        assert engine.work.claim("chain-b") == []
    clock.advance(TTL)
    assert not renew(engine, claim)
    engine.recovery.step()
    assert not renew(engine, claim)


def test_release_without_the_own_token_frees_nobody_elses_lease(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    story = create(engine)
    stale, holder = overtaken(engine, clock)
    store = dump(store_url)
    assert engine.work.release(story, stale.token).reason is Refusal.STALE_TOKEN
    assert dump(store_url) == store
    assert engine.work.release(story, holder.token).ok


def test_tokens_order_the_attempts_of_one_and_the_same_worker(
    engine: Engine, clock: ManualClock
) -> None:
    create(engine)
    claims: list[Assignment] = []
    for _ in range(3):
        claims += engine.work.claim("chain", lease=TTL)
        expire(engine, clock)
    claims += engine.work.claim("chain", lease=TTL)
    assert [claim.attempt for claim in claims] == [1, 2, 3, 4]
    assert len({claim.token for claim in claims}) == 4
    assert [refused(engine, claim) for claim in claims] == [Refusal.ALREADY_CLAIMED] * 3 + [None]


def passed_by_the_other_chain(engine: Engine, clock: ManualClock, claim: Assignment) -> None:
    expire(engine, clock)
    finish(engine, claim.task.id)


def stolen_by_the_other_chain(engine: Engine, clock: ManualClock, claim: Assignment) -> None:
    expire(engine, clock)
    assert take(engine, claim.task.id).attempt == claim.attempt + 1


def failed_with_the_other_chain(engine: Engine, clock: ManualClock, claim: Assignment) -> None:
    expire(engine, clock)
    break_for_good(engine, claim.task.id)


def cancelled_after_the_expiry(engine: Engine, clock: ManualClock, claim: Assignment) -> None:
    expire(engine, clock)
    assert engine.tasks.cancel(claim.task.id).ok


def cancelled_with_the_other_chain(engine: Engine, clock: ManualClock, claim: Assignment) -> None:
    stolen_by_the_other_chain(engine, clock, claim)
    assert engine.tasks.cancel(claim.task.id).ok


def cancelled_after_it_passed(engine: Engine, _: ManualClock, claim: Assignment) -> None:
    assert engine.work.complete(claim.task.id, claim.token).ok
    assert engine.tasks.reset(claim.task.id).ok
    assert engine.tasks.cancel(claim.task.id).ok


def passed_already(engine: Engine, _: ManualClock, claim: Assignment) -> None:
    assert engine.work.complete(claim.task.id, claim.token, "passed").ok


def expired(_: Engine, clock: ManualClock, __: Assignment) -> None:
    clock.advance(TTL)


def cancelled(engine: Engine, _: ManualClock, claim: Assignment) -> None:
    assert engine.tasks.cancel(claim.task.id).ok


Happening = Callable[[Engine, ManualClock, Assignment], None]


@pytest.mark.parametrize(
    ("happening", "reason"),
    [
        (stolen_by_the_other_chain, Refusal.ALREADY_CLAIMED),
        (passed_by_the_other_chain, Refusal.ALREADY_PASSED),
        (failed_with_the_other_chain, Refusal.ALREADY_TERMINAL),
        (cancelled_after_the_expiry, Refusal.CANCELLED),
        (cancelled_with_the_other_chain, Refusal.CANCELLED),
        (cancelled_after_it_passed, Refusal.CANCELLED),
        (passed_already, Refusal.ALREADY_TERMINAL),
        (expired, Refusal.LEASE_EXPIRED),
        (cancelled, Refusal.CANCELLED),
    ],
)
def test_the_guard_before_spawning_committing_and_emitting_says_why_to_bail(
    engine: Engine, clock: ManualClock, happening: Happening, reason: Refusal
) -> None:
    create(engine)
    (claim,) = engine.work.claim("chain-a", lease=TTL)
    assert engine.work.guard(claim.task.id, claim.token).ok
    happening(engine, clock, claim)
    assert refused(engine, claim) is reason


def test_the_guard_prevents_a_late_commit_after_the_parallel_chain_passes_the_story(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    story = create(engine)
    late, winner = overtaken(engine, clock)
    assert engine.work.complete(story, winner.token, {"commit": "b0b"}).ok
    store = dump(store_url)
    assert refused(engine, late) is Refusal.ALREADY_PASSED
    assert engine.work.complete(story, late.token, {"commit": "a11"}).reason is Refusal.STALE_TOKEN
    assert engine.work.fail(story, late.token, "late").reason is Refusal.STALE_TOKEN
    assert not renew(engine, late)
    assert dump(store_url) == store


def test_the_verdict_itself_is_fenced_for_whoever_asked_the_guard_too_early(
    engine: Engine, clock: ManualClock
) -> None:
    story = create(engine)
    (slow,) = engine.work.claim("chain-a", lease=TTL)
    assert refused(engine, slow) is None
    expire(engine, clock)
    take(engine, story)
    assert engine.work.complete(story, slow.token, "pass").reason is Refusal.STALE_TOKEN
    assert engine.tasks.get(story).status == "running"


def test_review_is_given_the_result_that_was_recorded_and_no_other(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, TDD)
    late, winner = overtaken(engine, clock)
    assert engine.work.complete(winner.task.id, winner.token, {"commit": "b0b"}).ok
    assert not engine.work.complete(late.task.id, late.token, {"commit": "a11"}).ok
    assert run.take("review").needs == {"implement": {"commit": "b0b"}}


def test_a_claim_key_is_set_only_if_it_does_not_exist_and_only_for_its_ttl(
    engines: Pair, clock: ManualClock
) -> None:
    engine, other = engines
    key = "agent-loop:claim:loop-tdd-v1:story-1"
    calls = [each.leases.acquire.submit(key, "chain", ttl=TTL) for each in engines]
    (mine,) = [call.result() for call in calls if call.result() is not None]
    assert mine is not None
    clock.advance(TTL - 1)
    assert engine.leases.renew(key, mine.token, ttl=TTL).ok
    clock.advance(TTL)
    yours = other.leases.acquire(key, "chain", ttl=TTL)
    assert yours is not None
    assert yours.fence > mine.fence
    assert engine.leases.renew(key, mine.token, ttl=TTL).reason is Refusal.STALE_TOKEN
    assert engine.leases.release(key, mine.token).reason is Refusal.STALE_TOKEN
    assert other.leases.release(key, yours.token).ok
