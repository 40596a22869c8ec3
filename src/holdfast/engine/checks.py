"""The plainest checks of what callers pass, for those who only look: quick to import."""

from __future__ import annotations

from holdfast.errors import InvalidInput
from holdfast.ids import id_of, parse_run_id, parse_task_id
from holdfast.model.text import clean_text

MAX_INTEGER = 2**31 - 1


def task_id(value: object, field: str = "task_id") -> str:
    return parse_task_id(clean_text(field, id_of(value)), field=field)


def run_id(value: object, field: str = "run_id") -> str:
    return parse_run_id(clean_text(field, id_of(value)), field=field)


def number(field: str, value: object, *, least: int, most: int = MAX_INTEGER) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, f"must be a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidInput(field, f"must be between {least} and {most}, not {value}")
    return value
