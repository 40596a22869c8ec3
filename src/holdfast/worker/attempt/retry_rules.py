"""Retry rules: what an error that a function raises says about another attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.errors import InvalidInput
from holdfast.model.units import describe_duration
from holdfast.worker.attempt.durable import parse_seconds, refuse_for_good

# A task that is given back for less would be claimed again and again without a pause.
SHORTEST_WAIT = 1.0
_MICROSECOND = timedelta(microseconds=1)

ErrorTypes = tuple[type[BaseException], ...]


class Permanent(Exception):
    """Raise it where another attempt would fail in the same way: the task fails at once."""


class RetryAfter(Exception):
    """Raise it to give the task back until later, which counts as no failure.

    The time is a number of seconds, "10m", a timedelta, or a datetime with a time zone.
    """

    def __init__(self, time: float | str | timedelta | datetime, message: str = "") -> None:
        with refuse_for_good():
            self.until = _read_time(time)
        self.message = message
        super().__init__(time, message)

    def __str__(self) -> str:
        told = f": {self.message}" if self.message else ""
        if isinstance(self.until, datetime):
            return f"{self.until.isoformat()}{told}"
        return f"{describe_duration(self.until // _MICROSECOND)} from now{told}"


def _read_time(time: float | str | timedelta | datetime) -> datetime | timedelta:
    if isinstance(time, datetime):
        if time.utcoffset() is None:
            raise InvalidInput("time", f"{time} has no time zone; give it one")
        return time
    return timedelta(seconds=max(parse_seconds("time", time), SHORTEST_WAIT))


def leaf_errors(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, in groups inside it too; or the one error."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from leaf_errors(each)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryRules:
    """The errors of one function that are worth another attempt, and those that are not.

    Without `retry_on` every error is worth one. `never_retry_on` goes before it.
    """

    retry_on: ErrorTypes | None = None
    never_retry_on: ErrorTypes = ()

    def allow_retry(self, error: BaseException) -> bool:
        """Whether another attempt may follow this error; of a group, each error has to allow it."""
        return all(map(self._allow_retry, leaf_errors(error)))

    def _allow_retry(self, error: BaseException) -> bool:
        if isinstance(error, self.never_retry_on):
            return False
        return self.retry_on is None or isinstance(error, self.retry_on)


EVERY_ERROR_RETRIED = RetryRules()


def read_error_types(field: str, given: object) -> ErrorTypes:
    """The classes of an option that takes one class of errors, or several."""
    listed = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    types: list[type[BaseException]] = []
    for each in listed:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            reason = f"{each!r} is no class of errors; give ConnectionError, or several as a tuple"
            raise InvalidInput(field, reason)
        types.append(each)
    return tuple(types)
