"""To ask for what is so already is no error to a front end: it is repeated, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.service.refused import accepted
from tests.contract.raw import dump
from tests.contract.stages import break_for_good, create, finish, start
from tests.contract.test_planning import plan

Ask = Callable[[str], TransitionResult]


def twice(store_url: str, ask: Ask, identifier: str) -> None:
    first = ask(identifier)
    assert (first.ok, first.repeated) == (True, False)
    store = dump(store_url)
    again = ask(identifier)
    assert (again.repeated, again.status) == (True, first.status)
    assert accepted(identifier, again) == again
    assert dump(store_url) == store


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry"])
def test_a_run_is_asked_for_the_same_twice(engine: Engine, store_url: str, verb: str) -> None:
    run = start(engine)
    if verb == "resume":
        assert engine.runs.pause(run.id).ok
    if verb == "retry":
        run.break_for_good("plan")
    twice(store_url, getattr(engine.runs, verb), run.id)


@pytest.mark.parametrize(
    "verb", ["hold", "unhold", "cancel", "enqueue", "retry", "reopen", "reset", "start_planning"]
)
def test_a_task_is_asked_for_the_same_twice(engine: Engine, store_url: str, verb: str) -> None:
    task_id = create(engine, enqueue=verb not in {"enqueue", "start_planning"})
    if verb == "unhold":
        assert engine.tasks.hold(task_id).ok
    if verb in {"retry", "reopen", "reset"}:
        break_for_good(engine, task_id)
    twice(store_url, getattr(engine.tasks, verb), task_id)


@pytest.mark.parametrize("verb", ["retry", "reopen", "reset", "cancel"])
def test_a_plan_is_asked_for_the_same_twice(engine: Engine, store_url: str, verb: str) -> None:
    parent, (child,) = plan(engine, "one")
    assert engine.tasks.finalize_plan(parent).ok
    if verb != "cancel":
        break_for_good(engine, child)
    twice(store_url, getattr(engine.tasks, verb), parent)


def test_a_retry_is_repeated_only_where_there_was_one(engine: Engine, store_url: str) -> None:
    run, lone, idle = start(engine), create(engine), create(engine)
    break_for_good(engine, idle)
    assert engine.tasks.reset(idle).ok
    done = create(engine)
    break_for_good(engine, done)
    assert engine.tasks.retry(done).ok
    finish(engine, done)
    store = dump(store_url)
    answers = [
        engine.runs.retry(run.id),
        engine.tasks.retry(lone),
        engine.tasks.reopen(lone),
        engine.tasks.retry(idle),
        engine.tasks.retry(done),
    ]
    assert [each.reason for each in answers] == [Refusal.INVALID_TRANSITION] * 5
    assert not any(each.repeated for each in answers)
    assert dump(store_url) == store


def test_an_ended_plan_is_not_being_planned(engine: Engine) -> None:
    parent, _ = plan(engine, "one")
    assert engine.tasks.cancel(parent).ok
    answer = engine.tasks.start_planning(parent)
    assert (answer.reason, answer.repeated) == (Refusal.INVALID_TRANSITION, False)
