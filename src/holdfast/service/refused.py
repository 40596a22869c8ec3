"""A refused transition, for a front end to tell: the code, what it was about, and the reason."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.model.result import Refusal, TransitionResult


class Refused(HoldfastError):
    def __init__(self, identifier: str, answer: TransitionResult) -> None:
        self.identifier = identifier
        self.reason = answer.reason or Refusal.INVALID_TRANSITION
        self.detail = answer.detail
        self.status = answer.status
        super().__init__(f"{identifier}: {self.reason}; {answer.detail}")


def accepted(identifier: str, answer: TransitionResult) -> TransitionResult:
    """The same answer when it happened; raises `Refused` when it did not."""
    if not answer.ok:
        raise Refused(identifier, answer)
    return answer
