"""Results of operations, and the reasons for a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Refusal(StrEnum):
    """The reason why a transition changed nothing; a stable code of the command line and HTTP."""

    NOT_FOUND = "not_found"
    INVALID_TRANSITION = "invalid_transition"
    STALE_TOKEN = "stale_token"  # noqa: S105 - a reason, not a secret
    LEASE_EXPIRED = "lease_expired"
    ALREADY_TERMINAL = "already_terminal"
    ALREADY_CLAIMED = "already_claimed"
    ALREADY_PASSED = "already_passed"
    CANCELLED = "cancelled"
    RESULT_CONFLICT = "result_conflict"
    HEAD_MOVED = "head_moved"
    INVALID_OUTPUT = "invalid_output"
    VERSION_CONFLICT = "version_conflict"
    STARTED_DEPENDENTS = "started_dependents"
    NEEDED_BY_OTHERS = "needed_by_others"
    PART_OF_RUN = "part_of_run"
    UNKNOWN_STEP = "unknown_step"
    HELD = "held"


# Only a holder of the attempt's token can have given the attempt back.
GIVEN_BACK = "the attempt was given back before"


@dataclass(frozen=True, kw_only=True, slots=True)
class TransitionResult:
    """The result of a transition: `ok` when it happened, else the `reason` why not.

    `repeated` says that the transition had happened before; a refusal that is `repeated` asked
    for a state that already holds. The `detail` says the result in words; the detail of a failure
    says what the step's `on_failure` did.
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
    """Whether an advance of a run unblocked tasks, and whether the run has completed."""

    advanced: bool
    completed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """Whether a run or task is at the expected version; `early` when that may still come."""

    met: bool
    version: int
    status: str
    early: bool = False
