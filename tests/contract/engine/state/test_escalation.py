"""A step that failed for good is handed to another agent, once, with the failure as feedback."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast, TaskFailed, escalate
from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Hold
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import Escalation, OnFailure, Step, Workflow, read_workflow
from holdfast.model.workflow.step import FailureAction
from tests.contract.single_statements import write
from tests.contract.task_states import StartedRun, start, take

TWICE = RetryPolicy(max_attempts=2, max_lost=2, backoff=0, backoff_max=0)


def handing(**options: Any) -> Workflow:
    over = OnFailure(action="escalate", escalation=Escalation(agent="senior", **options))
    build = Step(id="build", agent="junior", retry=TWICE, tags=("git",), on_failure=over)
    return Workflow.define("feature", (build, Step(id="ship", needs=("build",))))


def fail(run: StartedRun, problem: str = "broken", *, retryable: bool = True) -> str:
    """Fail the next attempt at the step; what became of the task."""
    assignment = take(run.engine, run.steps["build"])
    told = run.engine.work.fail(assignment.task_id, assignment.token, problem, retryable=retryable)
    assert told.ok
    return str(told.status)


def test_another_agent_gets_the_step_with_the_failure_and_new_budgets(engine: Engine) -> None:
    run = start(engine, handing())
    assert [fail(run, "first"), fail(run, "last")] == ["queued", "queued"]
    task = run.task("build")
    assert (task.agent, task.escalated_from, task.feedback) == ("senior", "junior", "last")
    assert (task.failures, task.generation, task.epoch, task.state) == (0, 2, 1, "ready")
    assert [run.status, *run.holds] == ["running"]
    assert engine.work.claim("worker", agents=["junior"], tags=["git"]) == []
    assert [fail(run, "his first"), fail(run, "his last")] == ["queued", "failed"]
    assert (run.status, run.task("build").error) == ("failed", "his last")
    events = [event for event in engine.tasks.events(run.steps["build"]) if event.attempt]
    handed = [event for event in events if event.type == "task.escalated"]
    assert [(each.source, each.target, each.generation) for each in handed] == [
        ("running", "queued", 2)
    ]
    assert [each.outcome for each in engine.tasks.attempts(task.id)] == ["failed"] * 4
    assert engine.runs.retry(run.id).ok
    assert (run.task("build").agent, run.task("build").failures) == ("senior", 0)


def test_what_is_not_to_be_tried_again_is_handed_over_at_once(engine: Engine) -> None:
    run = start(engine, handing())
    assert fail(run, retryable=False) == "queued"
    assert run.task("build").agent == "senior"
    assert fail(run, retryable=False) == "failed"


def test_lost_attempts_hand_a_step_over_when_their_budget_is_used_up(
    engine: Engine, clock: ManualClock
) -> None:
    run = start(engine, handing())
    for _ in range(2):
        take(engine, run.steps["build"], lease=5)
        clock.advance(5)
        engine.recovery.step()
    task = run.task("build")
    assert (task.agent, task.lost) == ("senior", 0)
    assert [each.outcome for each in engine.tasks.attempts(task.id)] == ["lost", "lost"]


@pytest.mark.parametrize(("then", "status"), [("skip", "done"), ("ask", "queued")])
def test_what_follows_when_the_other_agent_fails_too_is_said_with_it(
    engine: Engine, then: FailureAction, status: str
) -> None:
    run = start(engine, handing(then=then))
    assert fail(run, retryable=False) == "queued"
    assert fail(run, retryable=False) == status
    task = run.task("build")
    assert (task.skipped, Hold.APPROVAL in task.holds) == (then == "skip", then == "ask")
    if then == "ask":
        assert engine.tasks.approve(task.id).ok
        assert run.task("build").agent == "senior"


@pytest.mark.parametrize(("then", "stands"), [("skip", "done"), ("ask", "queued")])
def test_a_step_that_cannot_begin_ends_as_is_said_for_the_other_agent(
    engine: Engine, then: FailureAction, stands: str
) -> None:
    over = OnFailure(action="escalate", escalation=Escalation(agent="senior", then=then))
    texts = StepWork(command=("build",), prompt="{{ steps.plan.missing }}")
    build = Step(id="build", needs=("plan",), agent="junior", on_failure=over, work=texts)
    run = start(engine, Workflow.define("told", (Step(id="plan"), build)))
    run.finish("plan")
    task = run.task("build")
    assert (task.status, task.agent, task.escalated_from) == (stands, "junior", None)
    assert "steps.plan.missing" in str(task.error)
    if then == "skip":
        assert run.status == "completed"
    else:
        assert engine.tasks.reject(task.id).ok
        assert run.status == "failed"


def test_a_late_worker_of_the_first_agent_is_refused(engine: Engine) -> None:
    run = start(engine, handing())
    assignment = take(engine, run.steps["build"])
    assert engine.work.fail(assignment.task_id, assignment.token, "x", retryable=False).ok
    again = engine.work.fail(assignment.task_id, assignment.token, "x", retryable=False)
    assert (again.ok, again.repeated) == (True, True)
    late = engine.work.complete(assignment.task_id, assignment.token, "done")
    assert not late.ok
    assert run.task("build").agent == "senior"


def test_the_work_limits_and_tags_are_those_of_the_other_agent(engine: Engine) -> None:
    other = Escalation(
        agent="senior",
        work=StepWork(prompt="Mend {{ feedback }}", command=("senior", "{{ prompt }}")),
        retry=RetryPolicy(max_attempts=5, max_lost=1),
        timeout=60,
        tags=(),
    )
    build = Step(
        id="build",
        agent="junior",
        retry=TWICE,
        tags=("git",),
        work=StepWork(prompt="Build", command=("junior",)),
        on_failure=OnFailure(action="escalate", escalation=other),
    )
    workflow = Workflow.define("feature", (build,))
    assert read_workflow(workflow.definition).steps == workflow.steps
    run = start(engine, workflow)
    first = take(engine, run.steps["build"])
    assert first.work is not None
    assert first.work.command == ("junior",)
    assert engine.work.fail(first.task_id, first.token, "no disk", retryable=False).ok
    task = run.task("build")
    assert (task.tags, task.timeout, task.retry.max_attempts) == ((), 60, 5)
    (second,) = engine.work.claim("worker", agents=["senior"])
    assert second.work is not None
    assert (second.work.prompt, second.work.command) == (
        "Mend no disk",
        ("senior", "{{ prompt }}"),
    )


def test_why_says_who_has_it_after_whom(engine: Engine) -> None:
    run = start(engine, handing())
    fail(run, "no disk", retryable=False)
    told = engine.why(run.steps["build"]).summary
    assert told.endswith("it was handed to senior after junior had failed with no disk")


def escalation_row(task: Assignment) -> tuple[object, ...]:
    return (
        *(task.task_id, task.attempt, '"x"', "", None, None, "third", "[]"),
        *(1, 1, 0, 0, None, False, "fail"),
    )


def test_a_task_is_handed_over_once(engine: Engine) -> None:
    run = start(engine, handing())
    fail(run, retryable=False)
    task = take(engine, run.steps["build"])
    assert write(engine, "escalate_tasks", rows=[escalation_row(task)]) == set()
    assert engine.work.complete(task.task_id, task.token, "done").ok


def test_a_task_that_was_given_back_is_not_handed_over(engine: Engine) -> None:
    run = start(engine, handing())
    task = take(engine, run.steps["build"])
    assert engine.work.release(task.task_id, task.token).ok
    assert write(engine, "escalate_tasks", rows=[escalation_row(task)]) == set()


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Step(id="a", agent="senior"), "which is its own agent; name another"),
        (Step(id="a", approval="Go?"), "no agent works on it"),
    ],
)
def test_a_step_that_no_other_agent_could_do_is_refused(step: Step, told: str) -> None:
    over = OnFailure(action="escalate", escalation=Escalation(agent="senior"))
    wrong = Step(id=step.id, agent=step.agent, approval=step.approval, on_failure=over)
    with pytest.raises(InvalidDefinition, match=told):
        Workflow.define("wrong", (wrong,))


def test_a_python_step_is_handed_to_another_worker(hf: Holdfast) -> None:
    feature = hf.workflow("feature")
    seen: list[object] = []

    @feature.step(agent="junior", max_attempts=1, on_failure=escalate("senior", on_failure="fail"))
    def build(feedback: str | None = None) -> str:
        seen.append(feedback)
        if len(seen) != 2:
            raise ValueError("no disk")
        return "built"

    with hf.worker(agents=["junior", "senior"]):
        assert feature.start().result("20s") == "built"
        assert seen == [None, "ValueError: no disk"]
        seen.clear()
        seen.append("two fail")
        seen.append("now")
        with pytest.raises(TaskFailed, match="no disk"):
            feature.start().result("20s")
    with pytest.raises(InvalidInput, match="neither 'fail', 'skip', 'ask'"):
        feature.step(on_failure=escalate("senior", on_failure="goto"))(lambda: None)
