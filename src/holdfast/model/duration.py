"""Durations as people write them: 90, "30s", "2m", "1h30m", "3d"."""

from __future__ import annotations

import re

from holdfast.errors import InvalidInput

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def parse_duration(field: str, value: object) -> float:
    """Seconds, from a number of them or a text with units."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.replace(" ", "")
        parts = _PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            return sum(float(number) * _SECONDS[unit] for number, unit in parts)
    raise InvalidInput(field, f"{value!r} is not a duration; write 90, '30s', '2m' or '1h30m'")
