"""Units: durations, moments and sizes as people write them.

A duration is 90 or "1h30m"; a moment is a datetime, its text, or a duration from now such as "2s";
a size is "2GB", "500MB" or a number of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import inf

from holdfast.errors import InvalidInput
from holdfast.model.advice import Action, advise

Moment = datetime | timedelta | str | int

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Seconds or milliseconds that were passed as microseconds are long before this moment.
_EARLIEST = (datetime(2001, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LATEST = 2**53
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)?", re.IGNORECASE)
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MAX_SIZE = 2**53
_FORMS = advise(Action.WRITE_TIME)


def parse_duration(field: str, value: object) -> float:
    """Seconds, from a number of them, a timedelta or a text with units."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        text = value.replace(" ", "")
        parts = _DURATION_PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    raise InvalidInput(field, f"{value!r} is not a duration; write 90, '30s', '2m' or '1h30m'")


def parse_grace(field: str, value: object) -> float:
    """The seconds that running steps may go on after a signal; 0 is allowed."""
    seconds = parse_duration(field, value)
    if not 0 <= seconds < inf:
        raise InvalidInput(field, f"{value!r} is no time that steps can be given")
    return seconds


def describe_duration(microseconds: int) -> str:
    """A duration in words: 2h, 1h 30m, 45s; fractions only of a duration below one second."""
    whole = timedelta(microseconds=microseconds).total_seconds()
    if 0 < whole < 1:
        return f"{whole:g}s"
    hours, rest = divmod(round(whole), 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return " ".join(f"{value}{unit}" for value, unit in parts if value) or "0s"


def parse_moment(field: str, value: object, now: Callable[[], int]) -> int:
    """Microseconds since 1970; a duration counts from `now()`, which is called only then."""
    told = read_datetime(value) if isinstance(value, str) else value
    if isinstance(told, datetime):
        if told.utcoffset() is None:
            raise InvalidInput(field, f"{value} has no time zone; " + _FORMS)
        return _check_range(field, (told - _EPOCH) // _MICROSECOND)
    if isinstance(value, str | timedelta):
        seconds = min(_from_now(field, value), _LATEST)
        return _check_range(field, now() + round(seconds * 1_000_000))
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"is a {type(value).__name__}; " + _FORMS)
    return _check_range(field, value)


def read_datetime(text: str) -> datetime | None:
    """The datetime of a text in ISO 8601, or None for another text."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def is_duration(value: object) -> bool:
    """Whether a moment counts from now."""
    return isinstance(value, timedelta) or (isinstance(value, str) and read_datetime(value) is None)


def _from_now(field: str, value: str | timedelta) -> float:
    try:
        return parse_duration(field, value)
    except InvalidInput as error:
        raise InvalidInput(field, f"{value!r} is not a time; " + _FORMS) from error


def _check_range(field: str, moment: int) -> int:
    if moment < _EARLIEST:
        raise InvalidInput(field, f"{moment} microseconds since 1970 is before 2001; " + _FORMS)
    if moment > _LATEST:
        raise InvalidInput(field, f"{moment} microseconds since 1970 is after 2255; " + _FORMS)
    return moment


def parse_size(field: str, value: object) -> int:
    """The bytes of a size, from a number or from a text with a unit."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_SIZE:
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = -1.0 if match is None else float(match[1]) * _BYTES[(match[2] or "").upper()]
    if not 0 <= size <= _MAX_SIZE:
        raise InvalidInput(field, f"{value!r} is not a size; write '2GB', '500MB' or 0")
    return round(size)


def describe_size(size: int) -> str:
    unit = next((each for each in ("TB", "GB", "MB", "KB") if size >= _BYTES[each]), "B")
    return f"{size / _BYTES[unit]:.3g} {unit}"
