"""Auth throttle: a limit on wrong tokens, counted before the store is read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio.to_thread import run_sync

from holdfast.model.token import digest_secret
from holdfast.server.auth.known_tokens import KnownTokens
from holdfast.server.auth.rate_limits import Rate, RateLimiter
from holdfast.server.exception_handlers import too_many_requests

T = TypeVar("T")
# Seconds for which the good digests that were read are not read again.
GOOD_FOR = 1.0
# A secret that is not among them has them read again, no sooner than this, for all callers that
# came meanwhile.
MIN_READ_INTERVAL = 0.05
# The limit for all addresses together, so that many addresses allow no more attempts than one.
ALL_ADDRESSES = "everywhere"
RATE_OF_ALL_ADDRESSES = Rate(per_second=20, burst=300)


class AuthThrottle:
    """Beyond the limit of failures, only secrets whose digest is known to be good are looked up."""

    def __init__(self, tokens: KnownTokens, failures: Rate | None) -> None:
        self._now = tokens.service.clock.monotonic
        self._tokens = tokens
        self._limiter_by_address = RateLimiter(failures, self._now)
        self._limiter_of_all = RateLimiter(
            RATE_OF_ALL_ADDRESSES if failures is not None else None, self._now
        )
        self._good: frozenset[str] = frozenset()
        # The begin of the last read that succeeded, and the count of grants at that time.
        self._read_at = -math.inf
        self._grants = tokens.grants
        self._reading = asyncio.Lock()

    async def look(
        self, address: str, secret: str, look: Callable[[], Awaitable[T | None]]
    ) -> T | None:
        """The result of `look`; raises `Problem` after too many wrong secrets from an address."""
        came, wait = self._now(), self._take(address)
        if wait is not None:
            if not await self._is_good(secret, came):
                raise too_many_requests("too many wrong tokens came from this address", wait)
            return await look()
        try:
            found = await look()
        except BaseException:
            # The secret may well be good.
            self._give_back(address)
            raise
        if found is not None:
            self._give_back(address)
        return found

    def count_failure(self, address: str) -> None:
        """Count a header that cannot hold a good token; raises `Problem` beyond the limit."""
        wait = self._take(address)
        if wait is not None:
            raise too_many_requests("too many wrong tokens came from this address", wait)

    def _take(self, address: str) -> float | None:
        wait = self._limiter_by_address.take(address)
        if wait is None and (wait := self._limiter_of_all.take(ALL_ADDRESSES)) is not None:
            self._limiter_by_address.give_back(address)
        return wait

    def _give_back(self, address: str) -> None:
        self._limiter_by_address.give_back(address)
        self._limiter_of_all.give_back(ALL_ADDRESSES)

    async def _is_good(self, secret: str, came: float) -> bool:
        """Whether a secret is good; it is wrong only by a read of the store after it `came`."""
        shown = digest_secret(secret)
        if self._is_fresh() and shown in self._good:
            return True
        async with self._reading:
            if not self._is_fresh():
                await self._read_good_digests()
            if shown not in self._good and self._read_at < came:
                await asyncio.sleep(self._read_at + MIN_READ_INTERVAL - self._now())
                await self._read_good_digests()
            return shown in self._good

    def _is_fresh(self) -> bool:
        return self._now() < self._read_at + GOOD_FOR and self._tokens.grants == self._grants

    async def _read_good_digests(self) -> None:
        began, grants = self._now(), self._tokens.grants
        self._good = await run_sync(self._tokens.service.tokens.good_digests)
        self._read_at, self._grants = began, grants
