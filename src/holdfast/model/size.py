"""Sizes as people write them: 2GB, 500MB, or a number of bytes."""

from __future__ import annotations

import re

from holdfast.errors import InvalidInput

_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)?", re.IGNORECASE)
_BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MOST = 2**53


def parse_size(field: str, value: object) -> int:
    """A number of bytes, from one or from a text with a unit."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    match = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    size = -1.0 if match is None else float(match[1]) * _BYTES[(match[2] or "").upper()]
    if not 0 <= size <= _MOST:
        raise InvalidInput(field, f"{value!r} is not a size; write '2GB', '500MB' or 0")
    return round(size)


def tell_size(size: int) -> str:
    unit = next((each for each in ("TB", "GB", "MB", "KB") if size >= _BYTES[each]), "B")
    return f"{size / _BYTES[unit]:.3g} {unit}"
