"""What the audit says of strangers, by a clock that is moved by hand."""

from __future__ import annotations

import logging

import pytest

from holdfast.clock import ManualClock
from holdfast.server.auth.audit_throttle import MAX_ADDRESSES, WINDOW, AuditThrottle


def test_one_line_is_told_of_each_kind_and_address_and_then_how_many_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "holdfast.audit")
    clock = ManualClock()
    strangers = AuditThrottle(clock.monotonic)
    for became in ("401", "401", "401", "403"):
        strangers.tell("10.0.0.9", "POST /x", became)
    strangers.tell("10.0.0.8", "POST /x", "401")
    clock.advance(WINDOW)
    strangers.tell("10.0.0.9", "POST /y", "401")
    assert caplog.messages == [
        "nobody POST /x 401 from 10.0.0.9",
        "nobody POST /x 403 from 10.0.0.9",
        "nobody POST /x 401 from 10.0.0.8",
        "nobody 2 more 401 from 10.0.0.9",
        "nobody POST /y 401 from 10.0.0.9",
    ]


def test_very_many_addresses_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.audit")
    strangers = AuditThrottle(ManualClock().monotonic)
    for number in range(MAX_ADDRESSES + 20):
        strangers.tell(str(number), "POST /x", "401")
    strangers.close()
    assert len(caplog.messages) == MAX_ADDRESSES + 2
    assert caplog.messages[-2:] == [
        "nobody POST /x 401 from others",
        "nobody 19 more 401 from others",
    ]
