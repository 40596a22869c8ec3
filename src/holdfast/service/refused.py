"""A refused transition, for a front end to tell: the code, what it was about, and the reason."""

from __future__ import annotations

from dataclasses import replace

from holdfast.errors import HoldfastError
from holdfast.model.result import Refusal, TransitionResult

STOP = "stop, and change nothing more: the attempt is over"


class Refused(HoldfastError):
    def __init__(self, identifier: str, answer: TransitionResult) -> None:
        self.identifier = identifier
        self.reason = answer.reason or Refusal.INVALID_TRANSITION
        self.detail = answer.detail
        self.status = answer.status
        super().__init__(f"{identifier}: {self.reason}; {answer.detail}")


def accepted(identifier: str, answer: TransitionResult) -> TransitionResult:
    """The same answer when it happened, or is so already; raises `Refused` when it did not."""
    if not answer.ok and not answer.repeated:
        raise Refused(identifier, answer)
    return answer


def may_act(identifier: str, answer: TransitionResult) -> TransitionResult:
    """The same of whoever asks whether they may act; one who may not is told to stop."""
    if answer.ok or answer.reason == Refusal.NOT_FOUND:
        return accepted(identifier, answer)
    told = "; ".join(each for each in (answer.detail, STOP) if each)
    raise Refused(identifier, replace(answer, detail=told))
