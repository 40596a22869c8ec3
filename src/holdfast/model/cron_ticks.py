"""Cron ticks: when a cron expression fires in a time zone, and the rule for missed ticks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holdfast.errors import InvalidInput
from holdfast.model.text import clean_text

SECOND = 1_000_000
DAY = 86_400 * SECOND
# A tick is not missed when a busy or starting engine is late by no more than this.
GRACE = 60 * SECOND
# The most ticks of one schedule that one transaction fires.
TICKS_AT_ONCE = 100
MAX_CRON = 200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FORM = 'write minute, hour, day, month and weekday, as in "0 9 * * 1-5", or @hourly or @daily'
# Names of cron expressions, as other tools have them.
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class MissedTicks(StrEnum):
    """The ticks that are fired after a time without an engine: none, the newest alone, or all."""

    SKIP = "skip"
    ONE = "one"
    ALL = "all"


@dataclass(frozen=True, kw_only=True, slots=True)
class DueTicks:
    """The ticks to fire now, oldest first, and the next tick to wait for, if there is one."""

    ticks: tuple[int, ...]
    next_at: int | None


def check_cron(cron: object, zone: object) -> tuple[str, str]:
    """The cron expression and the time zone, cleaned; refuses either where it cannot be read."""
    text = clean_text("cron", cron, limit=MAX_CRON)
    zone_name = clean_text("zone", zone, limit=MAX_CRON)
    _read_zone(zone_name)
    expression = _NAMED.get(text.strip().lower(), text)
    _simulate(expression, _EPOCH)
    return " ".join(expression.split()), zone_name


def first_tick_after(cron: str, zone: str, moment: int) -> int:
    """The first tick after a moment; refuses a cron expression that never fires."""
    found = next_tick_after(cron, zone, moment)
    if found is None:
        reason = f"{cron!r} never fires: no day of the next 50 years fits; {_FORM}"
        raise InvalidInput("cron", reason)
    return found


def next_tick_after(cron: str, zone: str, moment: int) -> int | None:
    return next(ticks_after(cron, zone, moment), None)


def ticks_after(cron: str, zone: str, moment: int) -> Iterator[int]:
    """Every tick after a moment, each later than the one before."""
    where = _read_zone(zone)
    tick = _next_tick(cron, where, moment)
    while tick is not None:
        yield tick
        tick = _next_tick(cron, where, tick)


def due_ticks(cron: str, zone: str, missed: MissedTicks, expected: int, now: int) -> DueTicks:
    """The ticks that a schedule fires at `now`, when the tick `expected` is due."""
    if missed is MissedTicks.ALL:
        return _all_due(cron, zone, expected, now)
    newest = _newest_due(cron, zone, expected, now)
    late = missed is MissedTicks.SKIP and now - newest > GRACE
    return DueTicks(ticks=() if late else (newest,), next_at=next_tick_after(cron, zone, newest))


def format_tick(moment: int) -> str:
    """A tick in ISO 8601, as the keys of the tasks and runs that it starts have it."""
    return _to_datetime(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_local_time(moment: int, zone: str) -> datetime:
    return _to_datetime(moment).astimezone(_read_zone(zone))


def _all_due(cron: str, zone: str, expected: int, now: int) -> DueTicks:
    fired = [expected]
    for tick in ticks_after(cron, zone, expected):
        if tick > now or len(fired) == TICKS_AT_ONCE:
            return DueTicks(ticks=tuple(fired), next_at=tick)
        fired.append(tick)
    return DueTicks(ticks=tuple(fired), next_at=None)


def _newest_due(cron: str, zone: str, expected: int, now: int) -> int:
    """The last tick that is due, found by halving: a year of ticks each second is never walked."""
    newest, high, middle = expected, now, expected
    while high - newest >= SECOND:
        tick = next_tick_after(cron, zone, middle)
        if tick is None or tick > now:
            high = middle
        else:
            newest = tick
        middle = (newest + high) // 2
    return newest


def _next_tick(cron: str, where: ZoneInfo, moment: int) -> int | None:
    # cronsim handles times of day for cron expressions of five fields alone, so this file does.
    find = _next_time_of_day if _is_time_of_day(cron) else _next_on_the_wall
    return find(cron, where, moment)


def _is_time_of_day(cron: str) -> bool:
    """Whether the seconds (if given), the minutes and the hours have no `*`."""
    return not any("*" in field for field in cron.split()[:-3])


def _next_time_of_day(cron: str, where: ZoneInfo, moment: int) -> int | None:
    on_the_wall = _to_datetime(moment).astimezone(where).replace(tzinfo=None, fold=0)
    found = (_first_moment_of(tick, where) for tick in _simulate(cron, on_the_wall))
    # In an hour that comes twice, the second pass shows times that the first pass showed.
    return next((tick for tick in found if tick > moment), None)


def _first_moment_of(on_the_wall: datetime, where: ZoneInfo) -> int:
    """The first moment of a local time; for a time that clocks skip, the moment of the change."""
    moment = _to_microseconds(on_the_wall.replace(tzinfo=where))
    if _to_datetime(moment).astimezone(where).replace(tzinfo=None, fold=0) == on_the_wall:
        return moment
    return _first_change(where, moment - DAY, moment) or moment


def _next_on_the_wall(cron: str, where: ZoneInfo, moment: int) -> int | None:
    """The next tick by local time, searched from each change of the clocks to the next.

    Alone, cronsim jumps by whole hours and misses ticks where the clocks change by half an hour.
    """
    begin = start = moment
    while True:
        offset = _offset(where, begin)
        tick = next(_simulate(cron, _to_datetime(start + offset).replace(tzinfo=None)), None)
        if tick is None:
            return None
        found = _to_microseconds(tick.replace(tzinfo=UTC)) - offset
        change = _first_change(where, begin, found)
        if change is None:
            return found
        begin, start = change, change - SECOND


def _first_change(where: ZoneInfo, begin: int, end: int) -> int | None:
    """The first moment up to `end` at which the offset to UTC differs from that at `begin`."""
    offset, low = _offset(where, begin), begin
    while low < end:
        high = min(low + DAY, end)
        if _offset(where, high) != offset:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(where, middle) == offset else (low, middle)
            return high
        low = high
    return None


def _offset(where: ZoneInfo, moment: int) -> int:
    return (_to_datetime(moment).astimezone(where).utcoffset() or timedelta()) // _MICROSECOND


def _to_datetime(moment: int) -> datetime:
    return _EPOCH + moment * _MICROSECOND


def _to_microseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


def _simulate(cron: str, start: datetime) -> CronSim:
    try:
        return CronSim(cron, start)
    except CronSimError as error:
        if _fits_another_month(cron, start):
            reason = f"{cron!r} never comes: no month that it names has such a day; {_FORM}"
            raise InvalidInput("cron", reason) from error
        reason = str(error).lower()
        raise InvalidInput(
            "cron", f"{cron!r} is not a cron expression: {reason}; {_FORM}"
        ) from error


def _fits_another_month(cron: str, start: datetime) -> bool:
    """Whether each field can be read, and only the day fits none of the named months."""
    *before, month, weekday = cron.split() if len(cron.split()) > 1 else (cron, "", "")
    other = " ".join((*before, "*", weekday))
    return _can_be_read(other, start) and _can_be_read(f"0 0 1 {month} *", start)


def _can_be_read(cron: str, start: datetime) -> bool:
    try:
        CronSim(cron, start)
    except CronSimError:
        return False
    return True


def _read_zone(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        reason = f"{zone!r} is not a time zone; write e.g. 'Europe/Berlin' or 'UTC'"
        raise InvalidInput("zone", reason) from error
