"""What is reported of a group of exceptions."""

from __future__ import annotations

import pytest

from holdfast.errors import TaskFailed
from holdfast.model.effect import WakeCondition
from holdfast.worker.attempt.attempt_lease import AttemptEnded
from holdfast.worker.attempt.durable import InvalidCall, SignalTimeout
from holdfast.worker.attempt.execution import choose_reported_error
from holdfast.worker.attempt.json_values import InvalidEffect
from holdfast.worker.attempt.retry_rules import Permanent, RetryAfter
from holdfast.worker.attempt.waits import Suspended

WAIT, FAILURE = Suspended(WakeCondition()), ValueError("stumbled")


def group(*inside: BaseException) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup("unhandled", [BaseExceptionGroup("inside", inside), inside[0]])


def test_a_wait_counts_where_nothing_failed_beside_it() -> None:
    assert choose_reported_error(WAIT) is WAIT
    assert choose_reported_error(group(WAIT, WAIT)) is WAIT


def test_a_failure_counts_before_a_wait_and_is_told_without_it() -> None:
    told = choose_reported_error(group(WAIT, FAILURE))
    assert isinstance(told, BaseExceptionGroup)
    assert told.split(Suspended)[0] is None
    assert told.split(ValueError)[1] is None


@pytest.mark.parametrize(
    "final",
    [
        TaskFailed("t_1", "failed", None),
        SignalTimeout("go", "t_1"),
        InvalidCall("duration", "is none"),
    ],
)
def test_a_final_failure_counts_before_all_other_errors(final: Exception) -> None:
    assert choose_reported_error(group(FAILURE, WAIT, final)) is final


def test_a_wait_that_was_caught_counts_before_what_was_raised_instead() -> None:
    child = TaskFailed("t_1", "failed", None)
    for raised in (FAILURE, child, group(FAILURE, child)):
        assert choose_reported_error(raised, WAIT) is WAIT
    assert choose_reported_error(group(WAIT, child), WAIT) is child


@pytest.mark.parametrize("raised", [AttemptEnded("lost"), InvalidEffect("mail", "no JSON")])
def test_an_error_that_forbids_a_report_or_a_retry_counts_before_a_caught_wait(
    raised: BaseException,
) -> None:
    assert choose_reported_error(raised, WAIT) is raised
    assert choose_reported_error(group(FAILURE, raised), WAIT) is raised


def test_what_asks_for_later_counts_before_a_wait_and_after_a_failure() -> None:
    later = RetryAfter(60)
    assert choose_reported_error(group(WAIT, later)) is later
    told = choose_reported_error(group(later, FAILURE, WAIT))
    assert isinstance(told, BaseExceptionGroup)
    assert told.split(ValueError)[1] is None
    final = Permanent("never")
    assert choose_reported_error(group(later, final, FAILURE)) is final
