"""Effects, waits, signals and children under the engine's own verbs: every write is fenced."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import KeyConflict
from holdfast.model.effect import EffectRecord, WakeCondition
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.run import NewRun
from holdfast.model.status import Status
from holdfast.model.task import Assignment, NewTask
from holdfast.model.workflow.graph import Step, Workflow
from tests.contract.task_states import (
    MISSING_RUN,
    MISSING_TASK,
    break_for_good,
    create,
    finish,
    start,
    take,
)

LATER = 2_000_000_000_000_000

Verb = Callable[[Engine, Assignment], EffectRecord | TransitionResult]


def record(engine: Engine, attempt: Assignment) -> EffectRecord:
    return engine.work.record_effect(attempt.task.id, attempt.token, "pay", attempt.attempt)


def suspend(engine: Engine, attempt: Assignment) -> TransitionResult:
    return engine.work.suspend(
        attempt.task.id, attempt.token, WakeCondition(until=LATER), notes=[("nap", 1)]
    )


def listen(engine: Engine, attempt: Assignment) -> EffectRecord:
    task = attempt.task.id
    return engine.work.take_signal(task, attempt.token, task, "go", name="wait go")


def spawn(engine: Engine, attempt: Assignment) -> EffectRecord:
    return engine.work.spawn(
        attempt.task.id, attempt.token, [NewTask(title="child")], name="spawn child"
    )


VERBS = pytest.mark.parametrize("verb", [record, suspend, listen, spawn])


def answer(reply: EffectRecord | TransitionResult) -> TransitionResult:
    return reply.answer if isinstance(reply, EffectRecord) else reply


@VERBS
def test_a_stale_attempt_of_the_same_worker_leaves_nothing_behind(
    engine: Engine, clock: ManualClock, verb: Verb
) -> None:
    task = create(engine)
    stale = take(engine, task)
    clock.advance(31)
    engine.work.recover()
    live = take(engine, task)
    engine.signals.send(task, "go")
    before = engine.tasks.get(task)
    assert answer(verb(engine, stale)).reason is Refusal.STALE_TOKEN
    assert engine.tasks.get(task) == before
    assert engine.work.effects(task) == {}
    assert answer(verb(engine, live)).ok


@VERBS
def test_durable_operations_after_a_cancel_are_refused_and_leave_nothing_behind(
    engine: Engine, verb: Verb
) -> None:
    task = create(engine)
    attempt = take(engine, task)
    assert engine.tasks.cancel(task).ok
    assert answer(verb(engine, attempt)).reason in {Refusal.CANCELLED, Refusal.ALREADY_TERMINAL}
    assert engine.work.effects(task) == {}
    assert engine.tasks.get(task).status is Status.CANCELLED


@pytest.mark.parametrize("verb", [record, listen, spawn])
def test_an_expired_lease_gives_no_effects(engine: Engine, clock: ManualClock, verb: Verb) -> None:
    task = create(engine)
    attempt = take(engine, task)
    engine.signals.send(task, "go")
    clock.advance(31)
    assert answer(verb(engine, attempt)).reason is Refusal.LEASE_EXPIRED
    assert engine.work.effects(task) == {}


@VERBS
def test_a_task_that_is_not_there_is_not_found(engine: Engine, verb: Verb) -> None:
    task = create(engine)
    attempt = take(engine, task)
    assert engine.tasks.cancel(task).ok
    assert engine.tasks.delete(task).ok
    assert answer(verb(engine, attempt)).reason is Refusal.NOT_FOUND


def test_the_first_value_under_a_name_stays(engine: Engine) -> None:
    task = create(engine)
    first = take(engine, task)
    assert not record(engine, first).answer.repeated
    assert engine.work.release(task, first.token).ok
    again = record(engine, take(engine, task))
    assert again.answer.repeated
    assert again.value == 1


def test_a_signal_is_taken_once_and_remembered(engine: Engine) -> None:
    task = create(engine)
    attempt = take(engine, task)
    assert not listen(engine, attempt).found
    for number in (1, 2):
        assert engine.signals.send(task, "go", number).ok
    assert listen(engine, attempt).value == {"signal": 1}
    assert listen(engine, attempt).value == {"signal": 1}
    second = engine.work.take_signal(task, attempt.token, task, "go", name="wait go 2")
    assert second.value == {"signal": 2}


def test_a_task_that_waits_is_due_when_its_signal_comes_and_not_before(engine: Engine) -> None:
    task, other = create(engine), create(engine)
    for each in (task, other):
        attempt = take(engine, each)
        wait = WakeCondition(target=each, signals=("go",))
        assert engine.work.suspend(each, attempt.token, wait).ok
    assert engine.work.claim("worker", count=2) == []
    assert engine.signals.send(task, "stop").ok
    assert engine.work.claim("worker", count=2) == []
    assert engine.signals.send(task, "go").ok
    assert [each.task.id for each in engine.work.claim("worker", count=2)] == [task]


def test_a_signal_that_came_before_the_wait_makes_it_due_at_once(engine: Engine) -> None:
    task = create(engine)
    attempt = take(engine, task)
    assert engine.signals.send(task, "go").ok
    assert engine.work.suspend(task, attempt.token, WakeCondition(target=task, signals=("go",))).ok
    assert len(engine.work.claim("worker")) == 1


def test_a_signal_wakes_nobody_whose_time_has_come_already(
    engine: Engine, clock: ManualClock
) -> None:
    task = create(engine)
    attempt = take(engine, task)
    wait = WakeCondition(target=task, signals=("go",), until=clock.now() + 1_000_000)
    assert engine.work.suspend(task, attempt.token, wait).ok
    clock.advance(2)
    assert engine.work.claim("worker", agents=["nobody"]) == []
    version = engine.tasks.get(task).version
    assert engine.signals.send(task, "go").ok
    assert engine.tasks.get(task).version == version
    assert len(engine.work.claim("worker")) == 1


def test_a_signal_to_nobody_is_refused(engine: Engine) -> None:
    task = create(engine)
    finish(engine, task)
    assert engine.signals.send(task, "go").reason is Refusal.ALREADY_TERMINAL
    for missing in (MISSING_RUN, MISSING_TASK):
        assert engine.signals.send(missing, "go").reason is Refusal.NOT_FOUND


def test_the_same_signal_under_its_key_counts_once_also_when_its_target_has_ended(
    engine: Engine,
) -> None:
    task, run = create(engine), start(engine)
    for target in (task, run.id):
        assert engine.signals.send(target, "go", 1, key="webhook-1").ok
    attempt = take(engine, task)
    assert listen(engine, attempt).value == {"signal": 1}
    assert engine.work.complete(task, attempt.token).ok
    assert engine.runs.cancel(run.id).ok
    for target, status in ((task, "done"), (run.id, "cancelled")):
        again = engine.signals.send(target, "go", 1, key="webhook-1")
        assert again == TransitionResult(ok=True, repeated=True, status=status)
        with pytest.raises(KeyConflict, match="another payload"):
            engine.signals.send(target, "go", 2, key="webhook-1")
        for name, key in (("go", "webhook-2"), ("stop", "webhook-1"), ("go", None)):
            late = engine.signals.send(target, name, 1, key=key)
            assert late.reason is Refusal.ALREADY_TERMINAL


def test_the_same_attempt_makes_its_children_once(engine: Engine) -> None:
    task = create(engine)
    attempt = take(engine, task)
    first, again = spawn(engine, attempt), spawn(engine, attempt)
    assert first.value == again.value
    assert again.answer.repeated
    child = engine.tasks.get(first.value[0])
    assert (child.parent_id, child.parent_epoch, child.status) == (task, 1, Status.QUEUED)


def test_a_task_that_waits_for_its_children_is_ready_when_the_last_of_them_has_ended(
    engine: Engine,
) -> None:
    task = create(engine)
    attempt = take(engine, task)
    children = [NewTask(title=f"child {number}") for number in range(3)]
    made = engine.work.spawn(task, attempt.token, children, name="map").value
    assert engine.work.suspend(task, attempt.token, WakeCondition(children=True)).ok
    finish(engine, made[0])
    break_for_good(engine, made[1])
    assert engine.tasks.get(task).state == "waiting"
    assert engine.tasks.cancel(made[2]).ok
    assert engine.tasks.get(task).state == "ready"
    outcomes = [child.status for child in engine.work.children(task, made)]
    assert outcomes == [Status.DONE, Status.FAILED, Status.CANCELLED]


def test_children_that_ended_before_the_wait_make_it_due_at_once(engine: Engine) -> None:
    task = create(engine)
    attempt = take(engine, task)
    (child,) = spawn(engine, attempt).value
    finish(engine, child)
    assert engine.work.suspend(task, attempt.token, WakeCondition(children=True)).ok
    assert engine.tasks.get(task).state == "ready"


def test_children_belong_to_the_run_and_to_the_epoch_that_made_them(engine: Engine) -> None:
    flow = Workflow.define("flow", (Step(id="one"), Step(id="two", needs=("one",))))
    run = engine.runs.start(NewRun(workflow=flow)).id
    one, two = (task.id for task in engine.runs.tasks(run))
    attempt = take(engine, one)
    made = engine.work.spawn(
        one, attempt.token, [NewTask(title="a"), NewTask(title="b")], name="map"
    ).value
    finish(engine, made[0])
    assert engine.work.complete(one, attempt.token).ok
    finish(engine, two)
    assert engine.runs.get(run).status == "running"
    assert engine.runs.retry(run, step="one").ok
    first, second = (engine.tasks.get(each) for each in made)
    assert (first.status, first.superseded) == (Status.DONE, True)
    assert (second.status, second.superseded) == (Status.CANCELLED, True)
    assert engine.work.effects(one) == {}
    finish(engine, one)
    finish(engine, two)
    assert engine.runs.get(run).status == "completed"


def test_a_retry_takes_up_failed_children_and_their_parents_together(engine: Engine) -> None:
    task = create(engine)
    attempt = take(engine, task)
    (child,) = spawn(engine, attempt).value
    break_for_good(engine, child)
    assert engine.work.fail(task, attempt.token, "child failed", retryable=False).ok
    assert engine.tasks.retry(child).ok
    assert [engine.tasks.get(each).status for each in (task, child)] == [Status.QUEUED] * 2
