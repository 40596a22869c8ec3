"""Leases kept with one call: each stands for itself, and is told what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from holdfast.engine.engine import Engine
from holdfast.errors import InvalidInput, StoreBusy, StoreError
from holdfast.model.result import TransitionResult
from holdfast.model.task import Renewal
from holdfast.service.views import View, present
from holdfast.service.wording import in_commands
from holdfast.worker.remote.assignment_format import AWAY, INVALID

# How long who asks waits for an answer at all: no more than a part of what is to be kept.
SHORTEST, LONGEST = 1.0, 10.0
# How long those that are written wait for one whose row somebody has locked.
FOR_OTHERS = 1.0

Outcome = TransitionResult | InvalidInput | StoreError


def renew_each(engine: Engine, renewals: Sequence[Renewal], lease: float | None) -> list[View]:
    """Keep leases; what is to be said of all of them alike is raised, as of a single one."""
    replies = engine.work.renew_each(renewals, lease=lease)
    _wait(replies, engine.settings.lease if lease is None else lease)
    outcomes = [_outcome(each) for each in replies]
    errors = [each for each in outcomes if not isinstance(each, TransitionResult)]
    if len(errors) == len(outcomes) and len({_code(each) for each in errors}) == 1:
        raise errors[0]
    return [_tell(each, outcome) for each, outcome in zip(renewals, outcomes, strict=True)]


def _wait(replies: Sequence[Future[TransitionResult]], lease: float) -> None:
    left = [each for each in replies if not each.done()]
    wait(left, min(LONGEST, max(SHORTEST, lease / 3)), FIRST_COMPLETED)
    wait(left, FOR_OTHERS)


def _outcome(reply: Future[TransitionResult]) -> Outcome:
    if not reply.done():
        return StoreBusy("another transaction holds a row that this needs")
    error = reply.exception()
    return error if isinstance(error, InvalidInput | StoreError) else reply.result()


def _code(error: InvalidInput | StoreError) -> str:
    return INVALID if isinstance(error, InvalidInput) else AWAY


def _tell(renewal: Renewal, outcome: Outcome) -> View:
    if isinstance(outcome, TransitionResult):
        return present(task_id=renewal.task_id, ok=outcome.ok, reason=outcome.reason)
    known = isinstance(outcome, InvalidInput)
    detail = in_commands(str(outcome)) if known else "it is not written yet; ask again"
    return {
        "task_id": renewal.task_id,
        "ok": False,
        "reason": _code(outcome),
        "detail": detail,
    }
