"""Named leases on Redis: one holder, a token that frees nobody else's, a fence that grows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from holdfast.bus.redis_leases import RedisLeases
from holdfast.clock import MICROSECONDS
from holdfast.errors import BusUnreachable, InvalidInput
from holdfast.model.result import Refusal
from holdfast.model.task import NamedLease
from holdfast.settings import DAY
from tests.race.racers import eventually


class Desk:
    def __init__(self, url: str) -> None:
        self.prefix = f"test-{uuid.uuid4().hex}"
        self.leases = RedisLeases(url, prefix=self.prefix)
        self.client = redis.Redis.from_url(url)

    def lose(self) -> None:
        for key in self.client.scan_iter(f"{{{self.prefix}}}*"):
            self.client.delete(key)

    def set_back(self, key: str, seconds: float) -> None:
        """Have a lease be as if the clock of Redis had been set back after it was taken."""
        for moment in ("expires_at", "leased_at"):
            by = round(seconds * MICROSECONDS)
            self.client.hincrby(f"{{{self.prefix}}}:lease:{key}", moment, by)

    def end(self, key: str) -> None:
        """Let a lease run out, as if its time had come."""
        self.client.hset(f"{{{self.prefix}}}:lease:{key}", "expires_at", 1)


@pytest.fixture
def desk(redis_url: str) -> Iterator[Desk]:
    made = Desk(redis_url)
    yield made
    made.lose()
    made.leases.close()
    made.client.close()


def take(desk: Desk, key: str = "deploy", ttl: float = 60) -> NamedLease:
    lease = desk.leases.acquire(key, "me", ttl=ttl)
    assert lease is not None
    return lease


def test_a_held_lease_is_nobody_elses_until_it_is_given_back(desk: Desk) -> None:
    lease = take(desk)
    assert desk.leases.acquire("deploy", "me", ttl=60) is None
    assert take(desk, "other").key == "other"
    assert desk.leases.release("deploy", lease.token).ok
    assert desk.leases.release("deploy", lease.token).reason is Refusal.STALE_TOKEN
    again = take(desk)
    assert again.fence > lease.fence
    assert again.token != lease.token


def test_a_lease_taken_before_the_clock_was_set_back_ends_in_its_own_time(desk: Desk) -> None:
    take(desk, ttl=0.2)
    kept = take(desk, "kept")
    for key in ("deploy", "kept"):
        desk.set_back(key, DAY)
        assert desk.leases.acquire(key, "another", ttl=60) is None
    assert eventually(lambda: desk.leases.acquire("deploy", "another", ttl=60) is not None)
    assert desk.leases.acquire("kept", "another", ttl=60) is None
    assert desk.leases.renew("kept", kept.token, ttl=60).ok


def test_a_lease_that_ran_out_is_kept_and_freed_by_its_next_holder_alone(desk: Desk) -> None:
    stale = take(desk)
    assert desk.leases.renew("deploy", stale.token, ttl=60).ok
    desk.end("deploy")
    assert desk.leases.renew("deploy", stale.token, ttl=60).reason is Refusal.STALE_TOKEN
    holder = take(desk)
    for refused in (stale.token, f"{holder.fence}.{'0' * 32}", f"{stale.fence}.x", "none"):
        assert not desk.leases.renew("deploy", refused, ttl=60).ok
        assert not desk.leases.release("deploy", refused).ok
    assert desk.leases.renew("deploy", holder.token, ttl=60).ok


def test_a_lease_ends_by_itself(desk: Desk) -> None:
    first = take(desk, ttl=0.000_001)
    assert take(desk).fence > first.fence


def test_the_fence_grows_over_a_flush_and_a_clock_that_was_set_back(desk: Desk) -> None:
    first = take(desk)
    desk.lose()
    second = take(desk)
    assert second.fence > first.fence
    ahead = second.fence + 10**12
    desk.client.hset(f"{{{desk.prefix}}}:lease:deploy", "fence", ahead)
    desk.end("deploy")
    assert take(desk).fence == ahead + 1


def test_one_of_many_callers_at_once_gets_the_lease(desk: Desk) -> None:
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(desk.leases.acquire, "deploy", "me", ttl=60) for _ in range(16)]
    assert len([each for each in futures if each.result() is not None]) == 1


def test_a_malformed_lease_is_refused_and_a_redis_that_is_away_is_told(desk: Desk) -> None:
    for key, owner, ttl in (("", "me", 1.0), ("k", "two words", 1.0), ("k", "me", 0.0)):
        with pytest.raises(InvalidInput):
            desk.leases.acquire(key, owner, ttl=ttl)
    away = RedisLeases("redis://127.0.0.1:1")
    with pytest.raises(BusUnreachable):
        away.acquire("k", "me", ttl=1)
    away.close()
