"""What an attempt says that it used: any JSON, of which the numbers of a mapping are added up."""

from __future__ import annotations

from typing import TypeGuard

from holdfast.errors import InvalidInput

# Of dollars, tokens or whatever else; so that no sum of them leaves what numbers can tell.
MOST = 1_000_000_000_000
SHOWN = 60


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_amount(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that somebody can have used."""
    return is_number(value) and 0 <= value <= MOST


def check_usage(usage: object) -> None:
    """Raises `InvalidInput` with the name of a number that nobody can have used."""
    if not isinstance(usage, dict):
        return
    for name, value in usage.items():
        if is_number(value) and not is_amount(value):
            field = f"usage.{ascii(name)[1:-1][:SHOWN]}"
            raise InvalidInput(field, f"must be from 0 to {MOST}, not {str(value)[:SHOWN]}")
