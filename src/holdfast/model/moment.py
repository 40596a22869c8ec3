"""Moments: microseconds since 1970 in the store, datetimes in UTC in everything that people use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import overload

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@overload
def to_datetime(microseconds: int) -> datetime: ...
@overload
def to_datetime(microseconds: int | None) -> datetime | None: ...


# The records of one commit have the same time, and are often read together.
@lru_cache(maxsize=1_024)
def to_datetime(microseconds: int | None) -> datetime | None:
    """The moment in UTC; before or after all that a calendar has, the first or the last there."""
    if microseconds is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _LAST if microseconds > 0 else _FIRST


def count_microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def describe_moment(moment: datetime | int) -> str:
    """A moment as a date and a time in UTC."""
    told = to_datetime(moment) if isinstance(moment, int) else moment
    return told.isoformat().replace("+00:00", "Z")
