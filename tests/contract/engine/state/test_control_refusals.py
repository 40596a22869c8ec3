"""Refusals of changes to tasks: their codes, and what they advise to do instead."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.engine.engine import Engine
from holdfast.model.advice import Action, Advice
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
from tests.contract.advised import advised
from tests.contract.engine.state.plans.test_plans import plan
from tests.contract.task_states import break_for_good, create, finish, start, take

LOOP = Workflow.define(
    "loop",
    (
        Step(
            id="build",
            for_each=Reference.parse("for_each", "input"),
            steps=(Step(id="make"),),
        ),
    ),
)


def refused(call: Callable[[str], TransitionResult], task_id: str) -> list[Advice]:
    answer = call(task_id)
    assert answer.reason is Refusal.INVALID_TRANSITION
    return advised(answer)


def test_a_refused_enqueue_advises_what_to_do_instead(engine: Engine) -> None:
    parent, (child,) = plan(engine, "one")
    for call in (engine.tasks.enqueue, engine.tasks.run_now):
        assert refused(call, parent) == [Advice(Action.FINALIZE_PLAN, parent)]
    assert engine.tasks.finalize_plan(parent).ok
    assert refused(engine.tasks.enqueue, parent) == [Advice(Action.WHY, parent)]
    assert refused(engine.tasks.enqueue, child) == []
    take(engine, child)
    assert refused(engine.tasks.run_now, child) == []
    run = start(engine, LOOP, input=["a", "b"])
    item = engine.runs.task(run.id, "build.2").id
    assert refused(engine.tasks.enqueue, item) == []
    done, failed = create(engine), create(engine)
    finish(engine, done)
    break_for_good(engine, failed)
    assert refused(engine.tasks.enqueue, done) == [Advice(Action.REOPEN, done)]
    assert refused(engine.tasks.enqueue, failed) == [Advice(Action.RETRY, failed)]


def test_a_refused_retry_of_what_is_done_advises_to_reopen_it(engine: Engine) -> None:
    lone = create(engine)
    assert refused(engine.tasks.retry, lone) == []
    finish(engine, lone)
    assert refused(engine.tasks.retry, lone) == [Advice(Action.REOPEN, lone)]


def test_a_refused_reset_of_unfinished_work_advises_to_cancel_it(engine: Engine) -> None:
    parent, (child,) = plan(engine, "one")
    assert refused(engine.tasks.reset, parent) == []
    assert refused(engine.tasks.reset, child) == []
    assert engine.tasks.finalize_plan(parent).ok
    assert refused(engine.tasks.reset, parent) == [Advice(Action.CANCEL, parent)]
    take(engine, child)
    assert refused(engine.tasks.reset, child) == [Advice(Action.CANCEL, child)]


def test_a_reset_of_finished_work_is_refused_where_others_have_gone_on_from_it(
    engine: Engine,
) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, one)
    finish(engine, two)
    answer = engine.tasks.reset(two)
    assert answer.reason is Refusal.STARTED_DEPENDENTS
    assert advised(answer) == [Advice(Action.REOPEN, two)]
    attempt = take(engine, create(engine, "maker"))
    made = engine.work.spawn(attempt.task.id, attempt.token, [NewTask(title="made")], name="m")
    assert engine.work.release(attempt.task.id, attempt.token).ok
    assert engine.tasks.reset(attempt.task.id).ok
    for again in (engine.tasks.reset, engine.tasks.retry):
        assert refused(again, made.value[0]) == []
    run = start(engine)
    run.finish("plan", "work")
    answer = engine.tasks.reset(run.steps["plan"])
    assert (answer.reason, advised(answer)) == (Refusal.STARTED_DEPENDENTS, [])
