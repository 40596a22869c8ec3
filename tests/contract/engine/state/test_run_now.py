"""Run now ends a sleep for good, and is refused where it could not end what a task waits for."""

from __future__ import annotations

import pytest

from holdfast.clock import MICROSECONDS, ManualClock
from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice, advice_of
from holdfast.model.effect import WakeCondition
from holdfast.model.result import Refusal
from holdfast.model.task import NewTask
from tests.contract.task_states import create, start, take

MINUTE = 60 * MICROSECONDS


def asleep(engine: Engine, task_id: str, *names: str, until: int) -> None:
    """The task sleeps until a time, under each of these names."""
    notes = [(name, until) for name in names]
    token = take(engine, task_id).token
    assert engine.work.suspend(task_id, token, WakeCondition(until=until), notes=notes).ok


@pytest.mark.parametrize("name", ["sleep", "sleep #2", "sleep (late)"])
def test_a_sleep_is_cut_short_once_and_for_all_and_the_answer_says_so(
    engine: Engine, clock: ManualClock, name: str
) -> None:
    task_id, other = create(engine), create(engine)
    until = clock.now() + MINUTE
    for each in (task_id, other):
        asleep(engine, each, name, until=until)
    clock.advance(1)
    answer = engine.tasks.run_now(task_id)
    assert (answer.ok, answer.status, answer.repeated) == (True, "queued", False)
    assert answer.detail == "its sleep was cut short, and it goes on from there"
    assert engine.work.effects(task_id) == {name: clock.now()}
    assert engine.work.effects(other) == {name: until}
    assert [each.task_id for each in engine.work.claim("worker", count=9)] == [task_id]


def test_only_the_sleep_that_a_task_waits_for_now_is_cut_short(
    engine: Engine, clock: ManualClock
) -> None:
    task_id, until = create(engine), clock.now() + MINUTE
    token = take(engine, task_id).token
    notes = [("sleep (later)", until + MINUTE), ("sleepy", until), ("sleep (now)", until)]
    assert engine.work.suspend(task_id, token, WakeCondition(until=until), notes=notes).ok
    assert engine.tasks.run_now(task_id).detail
    assert engine.work.effects(task_id) == {
        "sleep (later)": until + MINUTE,
        "sleepy": until,
        "sleep (now)": clock.now(),
    }
    # It has not slept on yet, so nothing is cut short by asking again.
    assert engine.tasks.run_now(task_id).detail == ""


def test_a_sleep_of_an_epoch_that_is_over_stays_as_it_was(
    engine: Engine, clock: ManualClock
) -> None:
    task_id, until = create(engine), clock.now() + MINUTE
    asleep(engine, task_id, "sleep", until=until)
    assert engine.tasks.reset(task_id).ok
    assert engine.tasks.edit(task_id, {"scheduled_for": until}).ok
    assert engine.tasks.enqueue(task_id).ok
    assert engine.tasks.run_now(task_id).detail == ""


def test_a_running_attempt_keeps_its_sleeps(engine: Engine, clock: ManualClock) -> None:
    task_id, other, until = create(engine), create(engine), clock.now() + MINUTE
    asleep(engine, task_id, "sleep", until=until)
    clock.advance(61)
    take(engine, task_id)
    asleep(engine, other, "sleep", until=until)
    assert engine.tasks.run_now(task_id).reason is Refusal.INVALID_TRANSITION
    assert engine.work.effects(task_id) == {"sleep": until}
    assert engine.tasks.run_now(other).detail


@pytest.mark.parametrize("until", [None, MINUTE])
def test_a_task_that_waits_for_a_signal_is_refused_with_the_signal(
    engine: Engine, clock: ManualClock, until: int | None
) -> None:
    run = start(engine)
    task_id = run.steps["plan"]
    moment = None if until is None else clock.now() + until
    wait = WakeCondition(target=run.id, signals=("go", "stop"), until=moment)
    notes = [] if moment is None else [("sleep", moment)]
    assert engine.work.suspend(task_id, take(engine, task_id).token, wait, notes=notes).ok
    before, effects = engine.tasks.get(task_id), engine.work.effects(task_id)
    refused = engine.tasks.run_now(task_id)
    assert (refused.ok, refused.reason) == (False, Refusal.INVALID_TRANSITION)
    assert "it waits for the signal 'go'" in refused.detail
    assert advice_of(refused.detail) == tuple(
        Advice(Action.SIGNAL, run.id, (("signal", name),)) for name in ("go", "stop")
    )
    assert (engine.tasks.get(task_id), engine.work.effects(task_id)) == (before, effects)
    assert engine.signals.send(run.id, "go").ok
    assert engine.tasks.run_now(task_id).ok


def test_a_task_that_waits_for_its_children_or_an_answer_is_refused_with_what_ends_that(
    engine: Engine,
) -> None:
    parent, asking = create(engine), create(engine)
    token = take(engine, parent).token
    assert engine.work.spawn(parent, token, [NewTask(title="child")], name="spawn").answer.ok
    assert engine.work.suspend(parent, token, WakeCondition(children=True)).ok
    refused = engine.tasks.run_now(parent)
    assert "until the tasks that it has made have ended" in refused.detail
    assert advice_of(refused.detail) == (Advice(Action.WHY, parent),)
    assert engine.work.ask(asking, take(engine, asking).token, "which?").ok
    refused = engine.tasks.run_now(asking)
    assert refused.detail.startswith("it waits for an answer: ")
    assert advice_of(refused.detail)[0].action is Action.ANSWER
    assert engine.tasks.get(asking).run_now is False


def test_a_refused_run_now_cuts_no_sleep_short(engine: Engine, clock: ManualClock) -> None:
    cancelled, asked, until = create(engine), create(engine), clock.now() + MINUTE
    for each in (cancelled, asked):
        asleep(engine, each, "sleep", until=until)
    assert engine.tasks.cancel(cancelled).ok
    assert engine.tasks.hold(asked, "question").ok
    for each, told in (
        (cancelled, "it has ended cancelled; "),
        (asked, "it waits for an answer: "),
    ):
        refused = engine.tasks.run_now(each)
        assert (refused.ok, refused.reason) == (False, Refusal.INVALID_TRANSITION)
        assert refused.detail.startswith(told)
        assert engine.work.effects(each) == {"sleep": until}


def test_a_sleep_that_is_over_is_not_cut_short(engine: Engine, clock: ManualClock) -> None:
    task_id, until = create(engine), clock.now() + MINUTE
    asleep(engine, task_id, "sleep", until=until)
    clock.advance(61)
    engine.recovery.step()
    assert engine.tasks.run_now(task_id).detail == ""
    assert engine.work.effects(task_id) == {"sleep": until}
