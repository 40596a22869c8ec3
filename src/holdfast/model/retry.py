"""Retry policy: the attempts of a task and the delays between them; tasks and steps import it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import InvalidInput

MICROSECONDS = 1_000_000
MAX_COUNT = 1_000_000
MAX_SECONDS = 10 * 366 * 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Two budgets per generation: attempts that failed, and attempts that vanished."""

    max_attempts: int = 3
    max_lost: int = 5
    backoff: float = 5.0
    backoff_max: float = 300.0

    def __post_init__(self) -> None:
        for field in ("max_attempts", "max_lost"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidInput(field, "must be a whole number")
            if not 1 <= value <= MAX_COUNT:
                raise InvalidInput(field, f"must be between 1 and {MAX_COUNT}, not {value}")
        to_microseconds("backoff", self.backoff)
        to_microseconds("backoff_max", self.backoff_max)

    def delay(self, failures: int, jitter: float) -> float:
        """Seconds to wait after the given failure; `jitter` is drawn from [0, 1)."""
        return min(self.backoff_max, self.backoff * 2.0 ** min(failures - 1, 30)) * jitter


def to_microseconds(field: str, seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidInput(field, f"must be a number of seconds, not {type(seconds).__name__}")
    if not 0 <= seconds <= MAX_SECONDS:
        raise InvalidInput(field, f"must be between 0 seconds and ten years, not {seconds}")
    return round(seconds * MICROSECONDS)


def positive_microseconds(field: str, seconds: float) -> int:
    microseconds = to_microseconds(field, seconds)
    if microseconds == 0:
        raise InvalidInput(field, "must be longer than 0 seconds")
    return microseconds
