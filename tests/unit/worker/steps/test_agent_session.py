"""What one attempt of an agent adds up to, and when its limit is taken to lift."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.presets.agent_report import UsageLimit
from holdfast.worker.steps.agent_session import FARTHEST, find_limit_end

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("limit", "met_before", "wait"),
    [
        (UsageLimit(message="", seconds=3_600), 0, timedelta(hours=1)),
        (UsageLimit(message="", at=NOW + timedelta(hours=2)), 0, timedelta(hours=2)),
        # Nobody said when: after five minutes, then twice as long, up to an hour.
        (UsageLimit(message=""), 0, timedelta(minutes=5)),
        (UsageLimit(message=""), 1, timedelta(minutes=10)),
        (UsageLimit(message=""), 9, timedelta(hours=1)),
        # A time that has passed by this clock is none.
        (UsageLimit(message="", at=NOW - timedelta(hours=2)), 0, timedelta(minutes=5)),
        (UsageLimit(message="", seconds=0.5), 0, timedelta(seconds=10)),
        (UsageLimit(message="", seconds=1e18), 0, FARTHEST),
        (UsageLimit(message="", at=NOW + timedelta(days=900)), 0, FARTHEST),
    ],
)
def test_a_limit_lifts_when_it_was_said_or_else_later_each_time(
    limit: UsageLimit, met_before: int, wait: timedelta
) -> None:
    assert find_limit_end(limit, NOW, met_before) == NOW + wait


def test_a_time_without_a_zone_is_that_of_this_machine() -> None:
    told = (NOW + timedelta(hours=3)).astimezone().replace(tzinfo=None)
    limit = UsageLimit(message="", at=told)
    assert find_limit_end(limit, NOW, 0) == NOW + timedelta(hours=3)
