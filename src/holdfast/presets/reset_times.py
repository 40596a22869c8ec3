"""Reset times: when a usage limit lifts, found in what a client says of it."""

from __future__ import annotations

import re
from datetime import datetime

_UNIT = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WORDS = r"(?:days?|hours?|minutes?|mins?|seconds?|secs?|[dhms])"
_SPAN = re.compile(
    rf"\b(?:in|after)\s+((?:\d+(?:\.\d+)?\s*{_WORDS}\b[\s,]*(?:and\s+)?)+"
    rf"|(?:\d+(?:\.\d+)?[dhms])+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.IGNORECASE)
_DATE = re.compile(
    r"\b([A-Z][a-z]{2})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,? (\d{4}),? (?:at )?(\d{1,2}):(\d{2}) ?"
    r"([AP]M)",
)
_ISO = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)")


def find_reset(message: str) -> tuple[datetime | None, float | None]:
    """The moment or the seconds that a message names; a date without a zone has none."""
    joined = " ".join(message.split())
    try:
        if found := _ISO.search(joined):
            return datetime.fromisoformat(found[0]), None
        if found := _DATE.search(joined):
            month, day, year, hour, minute, half = found.groups()
            read = f"{month} {day} {year} {hour}:{minute} {half}"
            return datetime.strptime(read, "%b %d %Y %I:%M %p"), None  # noqa: DTZ007 - local
    except ValueError:
        return None, None
    if found := _SPAN.search(joined):
        parts = _PART.findall(found[1])
        return None, sum(float(number) * _UNIT[unit.lower()] for number, unit in parts)
    return None, None
