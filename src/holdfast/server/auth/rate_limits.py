"""How often somebody may ask: so many a second, more in a burst, and then when to come back."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

MAX_NAMES = 10_000
# A household or a machine has as many addresses of its own as it likes.
NETWORK_BITS = 64


@dataclass(frozen=True, kw_only=True)
class Rate:
    """`often` times a second in the long run, and `burst` times at once."""

    per_second: float
    burst: int


class RateLimiter:
    """Counts by names; a name that was quiet for long enough is forgotten."""

    def __init__(self, rate: Rate | None, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        # When each name would have used up nothing, had it asked at the pace it may.
        self._even: dict[str, float] = {}

    def take(self, name: str) -> float | None:
        """Count one; where that is one too many, the seconds to wait instead."""
        if self._rate is None:
            return None
        now, pace = self._now(), 1 / self._rate.per_second
        even = max(self._even.pop(name, now), now)
        wait = even + pace - (now + pace * self._rate.burst)
        self._even[name] = even if wait > 0 else even + pace
        if len(self._even) > MAX_NAMES:
            self._forget(now)
        return wait if wait > 0 else None

    def give_back(self, name: str) -> None:
        """Count one less, which was taken for what turned out to be good."""
        if self._rate is not None and name in self._even:
            self._even[name] -= 1 / self._rate.per_second

    def _forget(self, now: float) -> None:
        """Those that owe nothing, or else those that were heard of first."""
        kept = {name: even for name, even in self._even.items() if even > now}
        self._even = dict([*kept.items()][-MAX_NAMES // 2 :])


def address_of_client(client: tuple[str, int] | None) -> str:
    """Whom to count failures for: an address, of IPv6 the network that it is in."""
    if client is None:
        return "unknown"
    try:
        found = ipaddress.ip_address(client[0])
    except ValueError:
        return client[0]
    if found.version == 4:  # noqa: PLR2004 - the version of a protocol
        return client[0]
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), NETWORK_BITS), strict=False))
