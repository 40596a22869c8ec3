"""How often somebody may ask, by a clock that is moved by hand."""

from __future__ import annotations

from holdfast.clock import ManualClock
from holdfast.server.auth.rate_limits import MAX_NAMES, Rate, RateLimiter, address_of_client


def test_a_burst_is_let_through_and_then_so_many_a_second() -> None:
    clock = ManualClock()
    limiter = RateLimiter(Rate(per_second=2, burst=3), clock.monotonic)
    assert [limiter.take("a") for _ in range(4)] == [None, None, None, 0.5]
    assert limiter.take("b") is None
    clock.advance(0.5)
    assert [limiter.take("a"), limiter.take("a")] == [None, 0.5]
    clock.advance(60)
    assert [limiter.take("a") for _ in range(4)] == [None, None, None, 0.5]


def test_a_refused_caller_does_not_have_to_wait_longer_for_having_asked() -> None:
    clock = ManualClock()
    limiter = RateLimiter(Rate(per_second=1, burst=1), clock.monotonic)
    assert limiter.take("a") is None
    assert [limiter.take("a") for _ in range(100)] == [1.0] * 100
    clock.advance(1)
    assert limiter.take("a") is None


def test_many_names_are_not_kept_for_ever() -> None:
    clock = ManualClock()
    limiter = RateLimiter(Rate(per_second=1, burst=1), clock.monotonic)
    limiter.take("first")
    clock.advance(1)
    limiter.take("owes")
    for number in range(MAX_NAMES):
        limiter.take(str(number))
    assert len(vars(limiter)["_even"]) <= MAX_NAMES
    assert limiter.take(str(MAX_NAMES - 1)) is not None


def test_failures_are_counted_by_address_and_of_ipv6_by_network() -> None:
    assert address_of_client(("192.0.2.7", 1)) == "192.0.2.7"
    assert address_of_client(("2001:db8::1", 1)) == address_of_client(("2001:db8::ffff:1", 2))
    assert address_of_client(("2001:db8::1", 1)) != address_of_client(("2001:db8:0:1::1", 1))
    assert address_of_client(("::ffff:192.0.2.7", 1)) == "192.0.2.7"
    assert address_of_client(("a socket", 0)) == "a socket"
    assert address_of_client(None) == "unknown"


def test_an_allowance_that_is_given_back_may_be_taken_again() -> None:
    limiter = RateLimiter(Rate(per_second=1, burst=1), ManualClock().monotonic)
    assert limiter.take("a") is None
    limiter.give_back("a")
    assert [limiter.take("a"), limiter.take("a")] == [None, 1.0]
