"""What is not queued or not reset says why, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.engine.engine import Engine
from holdfast.model.result import Refusal, TransitionResult
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.reference import Reference
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


def refused(call: Callable[[str], TransitionResult], task_id: str) -> str:
    answer = call(task_id)
    assert answer.reason is Refusal.INVALID_TRANSITION
    return answer.detail


def test_a_refused_enqueue_says_why(engine: Engine) -> None:
    parent, (child,) = plan(engine, "one")
    for call in (engine.tasks.enqueue, engine.tasks.run_now):
        fix = f'hf.tasks.finalize_plan("{parent}") has its children start'
        assert refused(call, parent) == f"it is being planned; {fix}"
    assert engine.tasks.finalize_plan(parent).ok
    told = f'it is a plan, and its children are what runs; hf.why("{parent}") says how they stand'
    assert refused(engine.tasks.enqueue, parent) == told
    assert refused(engine.tasks.enqueue, child) == "it is in the queue already"
    take(engine, child)
    assert refused(engine.tasks.run_now, child) == "it is running"
    run = start(engine, LOOP, input=["a", "b"])
    item = engine.runs.task(run.id, "build.2").id
    told = "it is an item, which its loop starts when its turn has come"
    assert refused(engine.tasks.enqueue, item) == told
    done, failed = create(engine), create(engine)
    finish(engine, done)
    break_for_good(engine, failed)
    for each, status, verb in ((done, "done", "reopen"), (failed, "failed", "retry")):
        fix = f'hf.tasks.{verb}("{each}") does it again'
        assert refused(engine.tasks.enqueue, each) == f"it has ended {status}; {fix}"


def test_a_refused_retry_says_why(engine: Engine) -> None:
    lone = create(engine)
    assert refused(engine.tasks.retry, lone) == "it has not failed; it is queued"
    finish(engine, lone)
    told = f'it is done; hf.tasks.reopen("{lone}") does it again'
    assert refused(engine.tasks.retry, lone) == told


def test_a_refused_reset_of_unfinished_work_says_why(engine: Engine) -> None:
    parent, (child,) = plan(engine, "one")
    assert refused(engine.tasks.reset, parent) == "it is being planned already"
    assert refused(engine.tasks.reset, child) == "it is idle already"
    assert engine.tasks.finalize_plan(parent).ok
    first = 'hf.tasks.cancel("{}") ends {}, and then it can be reset'
    told = refused(engine.tasks.reset, parent)
    assert told == f"it is a plan in progress; {first.format(parent, 'it')}"
    take(engine, child)
    told = refused(engine.tasks.reset, child)
    assert told == f"it is running; {first.format(child, 'that')}"


def test_a_refused_reset_of_finished_work_says_what_has_gone_on_from_it(engine: Engine) -> None:
    parent, (one, two) = plan(engine, "one", "two")
    assert engine.tasks.finalize_plan(parent).ok
    finish(engine, one)
    finish(engine, two)
    answer = engine.tasks.reset(two)
    assert answer.reason is Refusal.STARTED_DEPENDENTS
    fix = f'hf.tasks.reopen("{two}") does it again'
    assert answer.detail == f"feature {parent}, which it is part of, is done; {fix}"
    lone = create(engine)
    create(engine, needs=(lone,))
    finish(engine, lone)
    attempt = take(engine, create(engine, "maker"))
    made = engine.work.spawn(attempt.task.id, attempt.token, [NewTask(title="made")], name="m")
    assert engine.work.release(attempt.task.id, attempt.token).ok
    assert engine.tasks.reset(attempt.task.id).ok
    for again in (engine.tasks.reset, engine.tasks.retry):
        told = again(made.value[0]).detail
        assert told == "it was made in an epoch that is over, and counts no more"
    run = start(engine)
    run.finish("plan", "work")
    told = engine.tasks.reset(run.steps["plan"]).detail
    assert told == "tasks that need it have started; retry from it instead"
