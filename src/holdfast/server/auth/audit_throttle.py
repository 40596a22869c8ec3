"""Audit throttle: one audit entry for many alike refusals of callers that are not known.

A second entry tells how many more there were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.service.admin import audit

NOBODY = "nobody"
# Seconds for which like refusals to one address are counted before one entry tells them.
WINDOW = 60.0
# Further addresses are counted together, as `OTHER_ADDRESSES`.
MAX_ADDRESSES = 1_000
OTHER_ADDRESSES = "others"


@dataclass(kw_only=True, slots=True)
class RefusalCount:
    until: float
    more: int = 0


class AuditThrottle:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # By address and status, in the order in which their time ends.
        self._refused: dict[tuple[str, str], RefusalCount] = {}

    def tell(self, address: str, did: str, became: str) -> None:
        now = self._now()
        self._report_ended(now)
        known = (address, became)
        if known not in self._refused and len(self._refused) >= MAX_ADDRESSES:
            known = (OTHER_ADDRESSES, became)
        if (refused := self._refused.get(known)) is not None:
            refused.more += 1
            return
        self._refused[known] = RefusalCount(until=now + WINDOW)
        audit.write_entry(NOBODY, did, became, about=f"from {known[0]}")

    async def report_periodically(self) -> None:
        """Write what was counted even if no other refusal follows."""
        while True:
            await asyncio.sleep(WINDOW)
            self._report_ended(self._now())

    def close(self) -> None:
        """Write everything that was counted so far."""
        self._report_ended(float("inf"))

    def _report_ended(self, now: float) -> None:
        while self._refused:
            known, refused = next(iter(self._refused.items()))
            if refused.until > now:
                return
            del self._refused[known]
            if refused.more:
                address, became = known
                audit.write_entry(NOBODY, f"{refused.more} more", became, about=f"from {address}")
