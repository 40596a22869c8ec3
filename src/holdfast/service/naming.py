"""Mistakes in fields that a front end has other words for, told in its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import InvalidInput


@contextmanager
def renamed(**fields: str) -> Iterator[None]:
    """Tell what is wrong with a field by the name it was sent under."""
    try:
        yield
    except InvalidInput as error:
        if error.field not in fields:
            raise
        raise InvalidInput(fields[error.field], error.reason) from error
