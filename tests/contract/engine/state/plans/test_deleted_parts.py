"""Parts that are deleted from a plan: it ends with what is left, or goes on without them."""

from __future__ import annotations

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.status import Status
from tests.contract.engine.state.plans.test_plans import plan, states
from tests.contract.task_states import break_for_good, create, finish, take


@pytest.mark.parametrize("others", [0, 1])
def test_a_plan_ends_with_the_deletion_of_its_last_open_child_and_so_do_those_around_it(
    engine: Engine, others: int
) -> None:
    top, (inner,) = plan(engine, "inner")
    assert engine.tasks.start_planning(inner).ok
    done = [create(engine, "done", parent=inner, enqueue=False) for _ in range(others)]
    last = create(engine, "last", parent=inner, enqueue=False)
    for each in (top, inner):
        assert engine.tasks.finalize_plan(each).ok
    for each in done:
        finish(engine, each, "given")
    assert engine.tasks.delete(last).ok
    assert states(engine, [inner, top]) == ["done", "done"]
    assert engine.tasks.get(inner).output == ["given"] * others
    assert engine.tasks.reopen(inner).ok
    for each in done:
        finish(engine, each)
    assert states(engine, [inner, top]) == ["done", "done"]


def test_a_plan_goes_on_once_what_had_failed_of_it_is_deleted(engine: Engine) -> None:
    parent, (broken, other, runs, waits) = plan(engine, "broken", "other", "runs", "waits")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    attempt = take(engine, runs)
    second = take(engine, other)
    break_for_good(engine, broken)
    assert engine.work.fail(other, second.token, "broken", retryable=False).ok
    assert engine.tasks.delete(other).ok
    assert engine.tasks.get(waits).state == "stalled"
    assert engine.tasks.delete(broken).ok
    assert engine.tasks.get(waits).state == "ready"
    assert engine.work.complete(runs, attempt.token).ok
    assert engine.tasks.get(parent).status is Status.IDLE
    finish(engine, waits)
    assert engine.tasks.get(parent).status is Status.DONE


def test_a_plan_that_has_failed_stays_so_and_is_done_by_a_retry_without_what_failed(
    engine: Engine,
) -> None:
    parent, (broken, waits) = plan(engine, "broken", "waits")
    assert engine.tasks.finalize_plan(parent, graph={}).ok
    break_for_good(engine, broken)
    assert engine.tasks.delete(broken).ok
    assert states(engine, [parent, waits]) == ["failed", "stalled"]
    assert engine.tasks.delete(waits).ok
    assert engine.tasks.get(parent).status is Status.FAILED
    assert engine.tasks.retry(parent).ok
    assert engine.tasks.get(parent).status is Status.DONE
