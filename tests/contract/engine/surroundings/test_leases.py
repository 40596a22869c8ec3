"""Named leases: one holder, a token, and a fence that only grows."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.moment import to_datetime
from holdfast.model.result import Refusal
from holdfast.model.task import NamedLease
from tests.contract.raw_store import dump
from tests.contract.task_states import NOT_GENUINE, create


def acquire(engine: Engine, key: str = "branch", owner: str = "ada") -> NamedLease:
    lease = engine.leases.acquire(key, owner, ttl=10)
    assert lease is not None
    return lease


def test_a_held_lease_is_nobody_elses_and_not_its_owners_again(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    lease = acquire(engine)
    assert (lease.key, lease.owner, lease.fence) == ("branch", "ada", 1)
    assert lease.expires_at == to_datetime(clock.now() + 10_000_000)
    store = dump(store_url)
    clock.advance(9.999_999)
    assert engine.leases.acquire("branch", "bob", ttl=10) is None
    assert engine.leases.acquire("branch", "ada", ttl=10) is None
    assert dump(store_url) == store


def test_the_fence_grows_after_a_release_and_after_an_expiry(
    engine: Engine, clock: ManualClock
) -> None:
    first = acquire(engine)
    assert engine.leases.release("branch", first.token).ok
    second = acquire(engine, owner="bob")
    clock.advance(10)
    third = acquire(engine)
    assert [first.fence, second.fence, third.fence] == [1, 2, 3]
    assert len({first.token, second.token, third.token}) == 3


def test_another_key_has_a_fence_of_its_own(engine: Engine) -> None:
    assert acquire(engine, "a").fence == acquire(engine, "b").fence == 1


def test_a_renewal_keeps_the_lease_and_its_fence(engine: Engine, clock: ManualClock) -> None:
    lease = acquire(engine)
    for _ in range(3):
        clock.advance(9)
        assert engine.leases.renew("branch", lease.token, ttl=10).ok
    assert engine.leases.acquire("branch", "bob", ttl=10) is None


def test_the_token_of_another_neither_renews_nor_releases(
    engine: Engine, clock: ManualClock, store_url: str
) -> None:
    old = acquire(engine)
    clock.advance(10)
    held, other = acquire(engine, owner="bob"), acquire(engine, "other")
    store = dump(store_url)
    for token in (old.token, other.token, NOT_GENUINE, "", "2"):
        for answer in (
            engine.leases.renew("branch", token, ttl=10),
            engine.leases.release("branch", token),
        ):
            assert (answer.ok, answer.reason) == (False, Refusal.STALE_TOKEN)
    assert dump(store_url) == store
    assert engine.leases.release("branch", held.token).ok


def test_an_expired_lease_is_neither_renewed_nor_released(
    engine: Engine, clock: ManualClock
) -> None:
    lease = acquire(engine)
    clock.advance(10)
    assert engine.leases.renew("branch", lease.token, ttl=10).reason is Refusal.STALE_TOKEN
    assert engine.leases.release("branch", lease.token).reason is Refusal.STALE_TOKEN


def test_a_released_lease_is_not_released_again(engine: Engine) -> None:
    lease = acquire(engine)
    assert engine.leases.release("branch", lease.token).ok
    assert engine.leases.release("branch", lease.token).reason is Refusal.STALE_TOKEN
    assert engine.leases.renew("branch", lease.token, ttl=5).reason is Refusal.STALE_TOKEN


def test_a_lease_that_nobody_ever_held_is_refused(engine: Engine) -> None:
    assert engine.leases.release("nothing", NOT_GENUINE).reason is Refusal.STALE_TOKEN


def test_exactly_one_of_several_callers_at_once_gets_the_lease(engine: Engine) -> None:
    asked = [engine.leases.acquire.submit("branch", f"w{n}", ttl=10) for n in range(8)]
    assert [each.result() is not None for each in asked].count(True) == 1


def test_a_lease_that_nobody_awaits_any_more_is_given_back(engine: Engine) -> None:
    async def leave() -> None:
        asking = asyncio.create_task(engine.leases.acquire.aio("branch", "ada", ttl=10))
        await asyncio.sleep(0)
        # Asked after it and answered: it is written, and this loop cannot have heard of it.
        assert engine.leases.acquire("branch", "bob", ttl=10) is None
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(leave())
    # Whatever is asked after the release is answered after it.
    create(engine)
    assert acquire(engine, owner="bob").fence == 2
