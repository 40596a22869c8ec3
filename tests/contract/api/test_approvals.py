"""People in a pipeline: approvals they settle, questions they answer."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any

import pytest

from holdfast import (
    AsyncContext,
    Context,
    Handle,
    Holdfast,
    InvalidInput,
    RunHandle,
    TaskFailed,
    Verdict,
    WorkflowBuilder,
    needs,
)
from holdfast.model.advice import ANSWER, Action, Advice
from holdfast.model.workflow.graph import Workflow
from tests.contract.advised import fixes_of
from tests.race.racers import eventually

PATIENCE = 30


def gated(hf: Holdfast) -> WorkflowBuilder:
    flow = hf.workflow("flow")

    @flow.step
    def build() -> str:
        return "built"

    flow.approval("approve", "Merge it?")

    @flow.step
    def merge(what: str = needs(build)) -> str:
        return f"{what} and merged"

    return flow


def waiting(hf: Holdfast, run: RunHandle) -> Handle[Any]:
    """The approval of a run, once it has all it needs."""
    found = run.task("approve")
    assert eventually(lambda: not hf.tasks.get(found.id).blocked)
    return found


def test_a_run_goes_on_when_a_person_approves(hf: Holdfast) -> None:
    flow = gated(hf)
    run = flow.start()
    refused = hf.approve(run.task("approve"))
    assert not refused.ok
    with hf.worker():
        approval = waiting(hf, run)
        assert hf.tasks.get(approval.id).title == "Merge it?"
        assert hf.approve(approval, {"by": "ada"}).ok
        assert run.result(PATIENCE) == "built and merged"
        assert approval.result(PATIENCE) == {"by": "ada"}
    assert not hf.reject(approval.id).ok


def test_steps_written_after_an_approval_wait_for_it_unless_their_needs_say_otherwise(
    hf: Holdfast,
) -> None:
    flow = gated(hf)

    @flow.step(needs=["build"])
    def aside() -> None: ...

    @flow.step
    def last(what: str = needs("merge")) -> str:
        return what

    loop = flow.loop("loop", over="input.names")

    @loop.step
    def greet(item: str) -> str:
        return item

    graph = {step.id: step.needs for step in flow.graph.steps}
    assert graph["merge"] == ("build", "approve")
    assert (graph["aside"], graph["last"]) == (("build",), ("merge", "approve"))
    assert graph["loop"] == ("last", "approve")
    assert flow.graph.steps[-1].steps[0].needs == ()


def test_a_question_names_what_is_known_of_its_run_and_waits_for_that(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def build() -> dict[str, int]:
        return {"size": 3}

    @flow.step(needs=[])
    def look() -> None: ...

    flow.approval("approve", "Merge {{ steps.build.size }} of {{ input.task }}{{ '{{' }}?")
    loop = flow.loop("each", over="input.names")
    loop.approval("fine", "Is {{ item }} fine?")

    @loop.step
    def greet(item: str) -> str:
        return item

    assert {step.id: step.needs for step in flow.graph.steps}["approve"] == ("look", "build")
    with hf.worker():
        run = flow.start(task="all", names=["ada"])
        assert hf.approve(approval := waiting(hf, run)).ok
        assert eventually(lambda: "fine" in {task.step for task in hf.tasks.list(run=run.id)})
        item = run.task("each.1.fine")
        assert hf.tasks.get(approval.id).title == "Merge 3 of all{{?"
        assert hf.tasks.get(item.id).title == "Is ada fine?"
        assert hf.approve(item).ok
        assert run.result(PATIENCE) == ["ada"]


NOT_KNOWN = {
    "{{ item": "question: '{{ item…' is no variable",
    "{{ nope }}": "question: 'nope' begins with none of input",
    "{{ item }}": "approval: item stands in no loop",
    "{{ steps.gone }}": "approval: 'gone' is no step it can see",
    "{{ feedback }}": "approval: feedback is not known there",
}


def test_a_question_that_names_what_is_not_known_there_is_refused(hf: Holdfast) -> None:
    def ask(name: str, question: str) -> Workflow:
        flow = hf.workflow(name)
        flow.approval("approve", question)
        return flow.graph

    for number, (question, told) in enumerate(NOT_KNOWN.items()):
        with pytest.raises(InvalidInput, match=re.escape(told)):
            ask(f"flow{number}", question)


def test_a_run_fails_when_a_person_rejects(hf: Holdfast) -> None:
    flow = gated(hf)
    with hf.worker():
        run = flow.start()
        assert asyncio.run(hf.reject.aio(waiting(hf, run), "not today", actor="ada")).ok
        with pytest.raises(TaskFailed, match="at step 'approve'"):
            run.result(PATIENCE)
    assert hf.tasks.get(run.task("approve").id).error == "not today"
    assert hf.tasks.events(run.task("approve").id)[-1].actor == "ada"


def test_a_note_given_with_an_approval_is_kept_in_the_history(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step(max_attempts=1, on_failure="ask")
    def deploy(ctx: Context) -> str:
        if ctx.attempt == 1:
            raise ValueError("red")
        return "deployed"

    flow.approval("approve", "Merge it?")
    with hf.worker():
        run = flow.start()
        held = run.task("deploy")
        assert eventually(lambda: hf.tasks.get(held.id).holds.names == ("approval",))
        assert hf.approve(held, {"said": "it's \N{GREEN HEART}"}).ok
        assert hf.approve(waiting(hf, run), "looks good").ok
        assert run.result(PATIENCE) == "looks good"
    notes = [event.data.get("note") for event in hf.runs.events(run.id)]
    assert [note for note in notes if note] == [{"said": "it's \N{GREEN HEART}"}, "looks good"]


def asked(hf: Holdfast, task: str, question: str) -> bool:
    found = hf.tasks.get(task)
    return found.holds.names == ("question",) and found.question == question


def test_a_step_asks_and_goes_on_with_the_answers_and_holds_no_worker_meanwhile(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")

    @flow.step(max_attempts=1)
    def deploy(ctx: Context) -> list[str]:
        return [ctx.ask("which branch?"), ctx.ask("which host?"), ctx.ask("which host?")]

    @hf.task
    def other() -> str:
        return "meanwhile"

    with hf.worker(concurrency=1):
        run = flow.start()
        task = run.task("deploy").id
        for question, answer in (("branch", "main"), ("host", "a"), ("host", "b")):
            assert eventually(partial(asked, hf, task, f"which {question}?"))
            assert other.enqueue().result(PATIENCE) == "meanwhile"
            assert hf.answer(task, answer).ok
        assert run.result(PATIENCE) == ["main", "a", "b"]
    assert not hf.answer(task, "late").ok
    assert (hf.tasks.get(task).failures, hf.tasks.get(task).question) == (0, None)


def test_a_question_that_the_store_cannot_keep_fails_its_step_at_once(hf: Holdfast) -> None:
    @hf.task
    def deploy(ctx: Context) -> object:
        return ctx.ask("which\x00branch?")

    with hf.worker(), pytest.raises(TaskFailed, match="contains a NUL character"):
        deploy.enqueue().result(PATIENCE)


@pytest.mark.parametrize(("last", "name"), [("other", "branch"), (None, None)])
def test_a_step_that_asks_a_question_still_gets_the_feedback_of_its_verifier(
    hf: Holdfast, last: str | None, name: str | None
) -> None:
    flow = hf.workflow("flow")
    heard: list[str | None] = []

    @flow.step
    def implement(ctx: Context, feedback: str | None) -> str:
        heard.append(feedback)
        return f"{ctx.ask('which branch?', name=name)} {feedback}"

    @flow.step(verifies=implement)
    def verify(subject: str) -> Verdict:
        return Verdict.accept() if "long" in subject else Verdict.reject("too long")

    with hf.worker():
        run = flow.start()
        task = run.task("implement").id
        for answer in ("main", last):
            assert eventually(partial(asked, hf, task, "which branch?"))
            assert hf.answer(task, answer).ok
        assert run.result(PATIENCE) == f"{last} too long"
    assert heard == [None, None, "too long", "too long"]


def test_an_answer_outlives_the_attempt_that_heard_it(hf: Holdfast) -> None:
    @hf.task(max_attempts=2, backoff=0)
    async def deploy(ctx: AsyncContext) -> str:
        branch: str = await ctx.ask({"which": "branch"})
        if hf.tasks.get(ctx.task_id).failures == 0:
            raise ConnectionError
        return branch

    with hf.worker():
        job = deploy.enqueue()
        assert eventually(lambda: hf.tasks.get(job.id).question == {"which": "branch"})
        assert hf.answer(job, "main").ok
        assert job.result(PATIENCE) == "main"


def test_a_question_whose_hold_was_lifted_without_an_answer_is_asked_again(hf: Holdfast) -> None:
    @hf.task
    def deploy(ctx: Context) -> Any:  # noqa: ANN401 - whatever the answer is
        return ctx.ask("which branch?")

    with hf.worker():
        job = deploy.enqueue()
        assert eventually(lambda: asked(hf, job.id, "which branch?"))
        assert hf.tasks.unhold(job.id, "question").ok
        assert eventually(lambda: hf.tasks.get(job.id).attempt == 2)
        assert eventually(lambda: asked(hf, job.id, "which branch?"))
        assert hf.answer(job, None).ok
        assert job.result(PATIENCE) is None


def test_a_step_that_fails_for_good_may_wait_for_a_person(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step(max_attempts=1, on_failure="ask")
    def deploy(attempt: int) -> str:
        if attempt == 1:
            raise ConnectionError
        return f"attempt {attempt}"

    with hf.worker():
        run = flow.start()
        task = run.task("deploy").id
        assert eventually(lambda: hf.tasks.get(task).holds.names == ("approval",))
        assert hf.approve(task).ok
        assert run.result(PATIENCE) == "attempt 2"


def test_why_says_what_a_person_is_asked_and_how_to_settle_it(hf: Holdfast) -> None:
    flow = gated(hf)
    run = flow.start()
    approval = run.task("approve")
    approve = Advice(Action.APPROVE, approval.id)
    assert approve not in fixes_of(hf.why(approval)) + fixes_of(hf.why(run))
    with hf.worker():
        waiting(hf, run)
    for told in (hf.why(approval), hf.why(run)):
        assert "a person settles it: Merge it?" in str(told)
        assert approve in fixes_of(told)
    assert hf.approve(approval).ok
    assert approve not in fixes_of(hf.why(approval)) + fixes_of(hf.why(run))


def test_why_says_what_a_step_asks_or_how_it_failed_and_how_to_go_on(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def paint(ctx: Context) -> object:
        return ctx.ask("Which colour?")

    @flow.step(needs=[], max_attempts=1, on_failure="ask")
    def measure() -> int:
        raise OSError("no ruler")

    run = flow.start()
    painted, measured = run.task("paint"), run.task("measure")
    with hf.worker():
        assert eventually(lambda: all(hf.tasks.get(each.id).holds for each in (painted, measured)))
    answer = Advice(Action.ANSWER, painted.id, (ANSWER,))
    approve = Advice(Action.APPROVE, measured.id)
    assert fixes_of(hf.why(painted)) == [answer]
    assert fixes_of(hf.why(measured)) == [approve]
    told = str(hf.why(run))
    assert 'hold: question; it asks "Which colour?"' in told
    assert "hold: approval; it ended with OSError: no ruler" in told
    assert {answer, approve} <= {*fixes_of(hf.why(run))}
    assert hf.tasks.hold(painted.id).ok
    assert fixes_of(hf.why(painted)) == [answer, Advice(Action.RESUME, painted.id)]
