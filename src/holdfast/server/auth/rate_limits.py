"""Rate limits: how often a name may act, with bursts, and the address that a client counts for."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

MAX_NAMES = 10_000
# Of IPv6 a single machine has a whole network of addresses.
NETWORK_BITS = 64


@dataclass(frozen=True, kw_only=True)
class Rate:
    """`per_second` times a second in the long run, and `burst` times at once."""

    per_second: float
    burst: int


class RateLimiter:
    """Counts for each name; a name that was not used for long enough is forgotten."""

    def __init__(self, rate: Rate | None, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        # For each name the time at which all its uses are made up for.
        self._even: dict[str, float] = {}

    def take(self, name: str) -> float | None:
        """Count one use; beyond the limit, the seconds to wait instead."""
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
        """Take back one use, which turned out not to count."""
        if self._rate is not None and name in self._even:
            self._even[name] -= 1 / self._rate.per_second

    def _forget(self, now: float) -> None:
        """Drop the names that have used up nothing, or else the ones used longest ago."""
        kept = {name: even for name, even in self._even.items() if even > now}
        self._even = dict([*kept.items()][-MAX_NAMES // 2 :])


def address_of_client(client: tuple[str, int] | None) -> str:
    """The name to count a client under: its address, or for IPv6 the network of the address."""
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
