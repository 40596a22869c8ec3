"""What an operation answers: that it happened, or why it did not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Refusal(StrEnum):
    """Why a transition changed nothing; the stable codes of the command line and HTTP."""

    NOT_FOUND = "not_found"
    INVALID_TRANSITION = "invalid_transition"
    STALE_TOKEN = "stale_token"  # noqa: S105 - a reason, not a secret
    LEASE_EXPIRED = "lease_expired"
    ALREADY_TERMINAL = "already_terminal"
    ALREADY_CLAIMED = "already_claimed"
    CANCELLED = "cancelled"
    RESULT_CONFLICT = "result_conflict"
    INVALID_OUTPUT = "invalid_output"
    VERSION_CONFLICT = "version_conflict"
    STARTED_DEPENDENTS = "started_dependents"
    NEEDED_BY_OTHERS = "needed_by_others"
    PART_OF_RUN = "part_of_run"
    UNKNOWN_STEP = "unknown_step"
    HELD = "held"


# Only who has the token of an attempt can have said so, or whom it was passed on to.
GIVEN_BACK = "the attempt was given back before"


@dataclass(frozen=True, kw_only=True, slots=True)
class TransitionResult:
    """`ok` when it happened, `repeated` when it had happened before; else why not.

    What is refused and `repeated` was asked for what is so already.
    The `detail` says it in words; of a failure, what the step's plan for it made of it.
    """

    ok: bool
    reason: Refusal | None = None
    detail: str = ""
    repeated: bool = False
    status: str | None = None

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvanceResult:
    advanced: bool
    completed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """Whether a run or task is at the version that was expected; `early` when that may yet come."""

    met: bool
    version: int
    status: str
    early: bool = False
