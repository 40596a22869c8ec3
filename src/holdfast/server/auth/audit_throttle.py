"""Strangers in the audit: of many who are refused alike, one line and how many more there were."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.service.admin import audit

NOBODY = "nobody"
# For so many seconds what is refused alike to one address is counted, and then told together.
WINDOW = 60.0
# With more addresses at once they are counted together.
MAX_ADDRESSES = 1_000
OTHER_ADDRESSES = "others"


@dataclass(kw_only=True, slots=True)
class RefusalCount:
    until: float
    more: int = 0


class AuditThrottle:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # By address and what became of it, those first whose time is over first.
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
        """Tell what was counted though no other stranger comes."""
        while True:
            await asyncio.sleep(WINDOW)
            self._report_ended(self._now())

    def close(self) -> None:
        """Tell what was counted, however long ago it began."""
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
