"""Records as people read them when they print one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.model.event import Event
from holdfast.model.moment import count_microseconds, to_datetime
from holdfast.model.run import Run
from holdfast.model.status import Hold, RunStatus
from holdfast.model.task import Lease, NamedLease

NOON = 1_767_268_800_000_000


def test_holds_are_told_by_name() -> None:
    assert str(Hold.PAUSED | Hold.LIMIT) == "paused, limit"
    assert f"{Hold.FAILING:>8}" == " failing"
    assert str(Hold(0)) == "none"
    assert int(Hold.PAUSED | Hold.LIMIT) == 17


def test_times_are_dates_in_utc_and_what_is_none_is_not_told() -> None:
    run = Run(
        id="r_1",
        workflow="shop",
        workflow_version="abc",
        key=None,
        status=RunStatus.RUNNING,
        holds=Hold.PAUSED,
        input={"order": 7},
        error=None,
        priority=0,
        concurrency_key=None,
        version=1,
        generation=1,
        created_at=to_datetime(NOON),
        finished_at=None,
    )
    assert (
        repr(run)
        == str(run)
        == (
            "Run(id='r_1', workflow='shop', workflow_version='abc', status='running', "
            "holds=[paused], input={'order': 7}, priority=0, version=1, generation=1, "
            "created_at=2026-01-01T12:00:00Z)"
        )
    )
    assert repr(Lease(owner="anna", expires_at=to_datetime(NOON + 1))) == (
        "Lease(owner='anna', expires_at=2026-01-01T12:00:00.000001Z)"
    )


def test_a_secret_is_not_told() -> None:
    lease = NamedLease(key="k", owner="anna", fence=1, token="secret", expires_at=to_datetime(NOON))
    assert "secret" not in repr(lease)


def test_only_moments_are_told_as_dates() -> None:
    event = Event(
        seq=NOON,
        type="task.done",
        run_id=None,
        task_id="t_1",
        version=2,
        source="running",
        target="done",
        attempt=1,
        generation=1,
        actor="anna",
        at=to_datetime(NOON),
        data={},
    )
    assert f"seq={NOON}" in repr(event)
    assert "at=2026-01-01T12:00:00Z" in repr(event)


@pytest.mark.parametrize(("moment", "year"), [(2**63, 9999), (-(2**63), 1)])
def test_a_moment_that_no_calendar_has_is_the_last_or_the_first_there(
    moment: int, year: int
) -> None:
    assert to_datetime(moment).year == year


def test_a_moment_is_the_same_in_both_forms() -> None:
    told = to_datetime(NOON + 1)
    assert (told.isoformat(), told.utcoffset()) == (
        "2026-01-01T12:00:00.000001+00:00",
        timedelta(),
    )
    assert count_microseconds(told) == NOON + 1
