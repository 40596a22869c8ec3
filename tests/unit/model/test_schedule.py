"""Cron in time zones: ticks over clock changes and leap days, and those that were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.model.cron_ticks import (
    GRACE,
    SECOND,
    TICKS_AT_ONCE,
    MissedTicks,
    check_cron,
    due_ticks,
    first_tick_after,
    format_tick,
    next_tick_after,
    ticks_after,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
CRONS = (
    "* * * * *",
    "*/7 * * * *",
    "30 2 * * *",
    "0,30 1,2 * * *",
    "15 * * * *",
    "0 9 * * 1-5",
    "0 0 1 */3 *",
    "15,45 30 2 * * *",
)
ZONES = ("UTC", BERLIN, NEW_YORK, LORD_HOWE, "Africa/Cairo", "Asia/Kathmandu")


def at(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def ticks(cron: str, zone: str, after: str, until: str) -> list[str]:
    found = takewhile(lambda tick: tick < at(until), ticks_after(cron, zone, at(after)))
    return [format_tick(tick).removesuffix(":00Z") for tick in found]


@pytest.mark.parametrize(
    ("cron", "zone", "day", "expected"),
    [
        # At a time that the clocks leave out: as soon as they have gone forward.
        ("30 2 * * *", BERLIN, "2026-03-29", ["2026-03-29T01:00"]),
        ("0,30 2 * * *", BERLIN, "2026-03-29", ["2026-03-29T01:00"]),
        ("30 2 * * *", NEW_YORK, "2026-03-08", ["2026-03-08T07:00"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-03", ["2026-10-03T15:30"]),
        ("30 30 2 * * *", BERLIN, "2026-03-29", ["2026-03-29T01:00"]),
        ("0,30 30 2 * * *", BERLIN, "2026-03-29", ["2026-03-29T01:00"]),
        ("30 30 2 29 3 *", BERLIN, "2026-03-29", ["2026-03-29T01:00"]),
        # At a time that comes twice: the first time alone.
        ("30 2 * * *", BERLIN, "2026-10-25", ["2026-10-25T00:30"]),
        ("30 1 * * *", NEW_YORK, "2026-11-01", ["2026-11-01T05:30"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-04", ["2026-04-04T14:45"]),
        ("0 30 2 * * *", BERLIN, "2026-10-25", ["2026-10-25T00:30"]),
        ("0,30 30 2 * * *", BERLIN, "2026-10-25", ["2026-10-25T00:30", "2026-10-25T00:30:30Z"]),
    ],
)
def test_a_time_of_day_comes_once_on_a_day_on_which_the_clocks_change(
    cron: str, zone: str, day: str, expected: list[str]
) -> None:
    assert ticks(cron, zone, f"{day}T00:00Z", f"{day}T23:59Z") == expected


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        (BERLIN, "2026-03-29T01:00"),
        (BERLIN, "2026-10-25T01:00"),
        (NEW_YORK, "2026-03-08T07:00"),
        (NEW_YORK, "2026-11-01T06:00"),
        (LORD_HOWE, "2026-04-04T15:00"),
        (LORD_HOWE, "2026-10-03T15:30"),
    ],
)
def test_ticks_of_every_half_hour_stay_half_an_hour_apart_while_the_clocks_change(
    zone: str, change: str
) -> None:
    start = at(f"{change}+00:00") - 3600 * SECOND
    found = list(islice(ticks_after("*/30 * * * *", zone, start), 6))
    assert found == [start + 1800 * SECOND * number for number in range(1, 7)]


@pytest.mark.parametrize(
    ("hours", "passes"),
    [("*", 2), ("*/1", 2), ("*/2", 2), ("1,*", 2), ("1,*/2", 2), ("0-23", 1), ("0,1,2", 1)],
)
def test_only_a_star_wherever_it_stands_has_an_hour_twice_that_comes_twice(
    hours: str, passes: int
) -> None:
    found = ticks(f"0 {hours} * * *", BERLIN, "2026-10-24T23:59Z", "2026-10-25T02:00Z")
    both = ["2026-10-25T00:00", "2026-10-25T01:00"]
    assert found == both[:passes]


def test_ticks_of_every_few_seconds_of_a_minute_come_in_both_passes_of_it_or_in_none() -> None:
    every = ticks("*/30 30 2 * * *", BERLIN, "2026-10-25T00:00Z", "2026-10-25T23:59Z")
    assert every == [f"2026-10-25T{time}" for time in ("00:30", "00:30:30Z", "01:30", "01:30:30Z")]
    assert ticks("*/30 30 2 * * *", BERLIN, "2026-03-29T00:00Z", "2026-03-29T23:59Z") == []


@pytest.mark.parametrize(
    ("cron", "day", "expected"),
    [
        # At 02:00 the clocks of Lord Howe Island go on to 02:30, or back to 01:30.
        ("30 * * * *", "2026-10-03", ["15:00", "15:30", "16:30"]),
        ("45 * * * *", "2026-10-03", ["15:15", "15:45", "16:45"]),
        ("15 * * * *", "2026-10-03", ["14:45", "16:15", "17:15"]),
        ("*/15 5 * * *", "2026-10-03", ["18:00", "18:15", "18:30"]),
        ("30 * * * *", "2026-04-04", ["14:30", "15:00", "16:00"]),
        ("45 * * * *", "2026-04-04", ["14:45", "15:15", "16:15"]),
        ("15 * * * *", "2026-04-04", ["15:45", "16:45", "17:45"]),
        ("*/15 5 * * *", "2026-04-04", ["18:30", "18:45", "19:00"]),
    ],
)
def test_a_clock_that_changes_by_half_an_hour_passes_no_tick_by(
    cron: str, day: str, expected: list[str]
) -> None:
    found = ticks(cron, LORD_HOWE, f"{day}T14:29Z", f"{day}T23:00Z")
    assert found[:3] == [f"{day}T{time}" for time in expected]


def test_a_working_hour_keeps_its_place_in_the_day_through_the_year() -> None:
    found = ticks("0 9 * * 1-5", BERLIN, "2026-03-26T12:00Z", "2026-03-31T12:00Z")
    assert found == ["2026-03-27T08:00", "2026-03-30T07:00", "2026-03-31T07:00"]


def test_a_leap_day_is_waited_for() -> None:
    found = ticks("0 0 29 2 *", "UTC", "2026-01-01T00:00Z", "2033-01-01T00:00Z")
    assert found == ["2028-02-29T00:00", "2032-02-29T00:00"]


def test_asked_in_the_second_pass_of_an_hour_its_first_pass_is_over() -> None:
    second_pass = at("2026-10-25T01:15+00:00")
    assert next_tick_after("30 2 * * *", BERLIN, second_pass) == at("2026-10-26T01:30+00:00")


@pytest.mark.parametrize(
    ("name", "cron"),
    [
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_a_name_stands_for_a_whole_cron_expression(name: str, cron: str) -> None:
    assert check_cron(name, "UTC") == (cron, "UTC")


@pytest.mark.parametrize(
    ("cron", "zone", "reason"),
    [
        (
            "61 * * * *",
            "UTC",
            r"^cron: '61 \* \* \* \*' is not a cron expression: bad minute; write",
        ),
        ("@reboot", "UTC", "^cron: '@reboot' is not a cron expression: .* or @hourly or @daily"),
        ("0 9 * *", "UTC", "^cron: .*wrong number of fields; write minute, hour"),
        ("0 0 30 2 *", "UTC", r"^cron: '0 0 30 2 \*' never comes: no month that it names has such"),
        ("0 0 32 2 *", "UTC", "^cron: .*bad day-of-month"),
        ("0 0 30 13 *", "UTC", "^cron: .*bad month"),
        ("0 " * 150, "UTC", "^cron: is 300 characters long"),
        (None, "UTC", "^cron: must be text"),
        ("0 9 * * *", "Berlin", "^zone: 'Berlin' is not a time zone; write e.g. 'Europe/Berlin'"),
        ("0 9 * * *", "Europe", "^zone: 'Europe' is not a time zone"),
        ("0 9 * * *", "../etc/passwd", "^zone: "),
        ("0 9 * * *", "", "^zone: '' is not a time zone"),
        ("0 9 * * *", "a\x00b", "^zone: contains a NUL"),
        ("0 9 * * *", 5, "^zone: must be text"),
    ],
)
def test_an_invalid_cron_or_zone_is_refused_with_the_place_and_the_reason(
    cron: object, zone: object, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        check_cron(cron, zone)


def test_a_cron_that_never_fires_is_refused() -> None:
    # The first of February is never the fifth Tuesday of its month.
    cron, zone = check_cron("0 0 */40 2 2#5", "UTC")
    with pytest.raises(InvalidInput, match=r"^cron: .* never fires: no day of the next 50 years"):
        first_tick_after(cron, zone, at("2026-01-01T00:00+00:00"))


@given(st.text(alphabet="0123456789*/,-#LW MONJAN²", max_size=30), st.sampled_from(ZONES))
def test_any_text_is_a_cron_or_is_refused(text: str, zone: str) -> None:
    try:
        cron, place = check_cron(text, zone)
    except InvalidInput as refused:
        told = refused.field
    else:
        told = "cron" if check_cron(cron, place) == (cron, place) else "changed"
    assert told == "cron"


@settings(max_examples=60)
@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.lists(st.integers(1, 30_000), max_size=8),
)
def test_every_tick_is_fired_at_most_once_and_in_order_however_the_clock_goes_on(
    cron: str, zone: str, advances: list[int]
) -> None:
    now = start = at("2026-03-28T20:00+00:00")
    fired: dict[MissedTicks, list[int]] = {policy: [] for policy in MissedTicks}
    waits: dict[MissedTicks, int | None] = dict.fromkeys(
        MissedTicks, first_tick_after(cron, zone, start)
    )
    for advance in advances:
        now += advance * SECOND
        for policy in MissedTicks:
            while (expected := waits[policy]) is not None and expected <= now:
                turn = due_ticks(cron, zone, policy, expected, now)
                assert len(turn.ticks) <= (TICKS_AT_ONCE if policy is MissedTicks.ALL else 1)
                fired[policy] += turn.ticks
                waits[policy] = turn.next_at
    every = list(takewhile(lambda tick: tick <= now, ticks_after(cron, zone, start)))
    assert fired[MissedTicks.ALL] == every
    for policy in (MissedTicks.ONE, MissedTicks.SKIP):
        assert fired[policy] == sorted(set(fired[policy]))
        assert set(fired[policy]) <= set(every)
    assert fired[MissedTicks.ONE][-1:] == every[-1:]


def test_ticks_that_were_missed_follow_the_policy() -> None:
    expected, now = at("2026-01-01T09:00+00:00"), at("2026-01-04T10:00+00:00")
    days = [expected + day * 86_400 * SECOND for day in range(5)]
    turns = {policy: due_ticks("0 9 * * *", "UTC", policy, expected, now) for policy in MissedTicks}
    assert turns[MissedTicks.SKIP].ticks == ()
    assert turns[MissedTicks.ONE].ticks == (days[3],)
    assert turns[MissedTicks.ALL].ticks == tuple(days[:4])
    assert {turn.next_at for turn in turns.values()} == {days[4]}


def test_a_tick_that_is_a_little_late_was_not_missed() -> None:
    expected = at("2026-01-01T09:00+00:00")
    for late, ticks_fired in ((0, 1), (GRACE, 1), (GRACE + 1, 0)):
        turn = due_ticks("0 9 * * *", "UTC", MissedTicks.SKIP, expected, expected + late)
        assert len(turn.ticks) == ticks_fired


def test_the_newest_of_a_year_of_seconds_is_found_without_walking_through_it() -> None:
    expected = at("2026-01-01T00:00:00+00:00")
    now = at("2027-01-01T00:00:00.7+00:00")
    turn = due_ticks("* * * * * *", BERLIN, MissedTicks.ONE, expected, now)
    assert turn.ticks == (at("2027-01-01T00:00:00+00:00"),)
    assert turn.next_at == at("2027-01-01T00:00:01+00:00")


def test_each_of_many_missed_ticks_is_fired_a_bounded_number_at_a_time() -> None:
    expected = at("2026-01-01T00:00+00:00")
    turn = due_ticks("* * * * *", "UTC", MissedTicks.ALL, expected, expected + 500 * 60 * SECOND)
    assert len(turn.ticks) == TICKS_AT_ONCE
    assert turn.next_at == expected + TICKS_AT_ONCE * 60 * SECOND
