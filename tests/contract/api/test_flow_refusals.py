"""What a workflow with loops and verifiers may not say, and with which words it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import (
    Holdfast,
    InvalidDefinition,
    InvalidInput,
    Verdict,
    WorkflowBuilder,
    goto,
    needs,
)


@dataclass
class Story:
    title: str


def nothing() -> None: ...


def judge(subject: None) -> Verdict:
    return Verdict.reject(subject)


def planned(hf: Holdfast) -> tuple[WorkflowBuilder, Callable[[], list[str]]]:
    flow = hf.workflow("flow")

    @flow.step
    def plan() -> list[str]:
        return []

    return flow, plan


def refused(flow: WorkflowBuilder) -> str:
    with pytest.raises(InvalidDefinition) as error:
        flow.start()
    return str(error.value)


def test_names_that_only_a_loop_or_a_verifier_fills_are_refused_elsewhere(hf: Holdfast) -> None:
    flow, plan = planned(hf)

    def item_outside(item: str) -> str:
        return item

    def filled_twice(feedback: Any = needs(plan)) -> None:  # noqa: ANN401
        assert feedback

    with pytest.raises(InvalidDefinition, match=r"item_outside: parameter 'item': .*only in a"):
        flow.step(item_outside)
    with pytest.raises(InvalidDefinition, match=r"parameter 'subject': .*say verifies="):
        flow.step(judge)
    with pytest.raises(InvalidDefinition, match="parameter 'feedback': the name is Holdfast's own"):
        flow.step(filled_twice)
    assert hf.task(item_outside)("a") == "a"


def test_a_verifier_judges_one_step_beside_it_and_a_step_has_one_verifier(hf: Holdfast) -> None:
    flow, plan = planned(hf)
    flow.step(verifies=plan)(judge)

    @flow.step(verifies=plan)
    def again() -> Verdict:
        return Verdict.accept()

    assert "step 'plan' is verified by 'judge' and 'again'; one gives the verdict" in refused(flow)

    people = hf.workflow("people")
    people.step(verifies=people.approval("gate", "Go on?"))(judge)
    assert "step 'gate' is an approval, which a person settles" in refused(people)

    courts = hf.workflow("courts")
    courts.step(nothing)
    courts.step(verifies=nothing)(judge)

    @courts.step(verifies=judge)
    def appeal() -> Verdict:
        return Verdict.accept()

    assert "step 'judge' is a verifier itself; verify what it verifies" in refused(courts)


def test_a_verifier_says_that_it_gives_a_verdict(hf: Holdfast) -> None:
    flow, plan = planned(hf)

    @flow.step(verifies=plan)
    def verify(subject: list[str]) -> bool:
        return bool(subject)

    told = refused(flow)
    assert "verify: return: a verifier gives Verdict.accept() or Verdict.reject(…)" in told


def test_a_graph_that_cannot_run_is_refused_with_a_suggestion(hf: Holdfast) -> None:
    flow, plan = planned(hf)
    loop = flow.loop("loop", over=needs(plan), when="steps.paln.build")

    @loop.step(verifies="plam")
    def verify() -> Verdict:
        return Verdict.accept()

    @flow.step(needs=["lop"])
    def later() -> None: ...

    told = refused(flow)
    assert "step 'later' needs 'lop', which is not a step; did you mean 'loop'?" in told
    assert "step 'loop': when: 'paln' is no step it can see; did you mean 'plan'?" in told
    assert "step 'verify' verifies 'plam', which is no step beside it" in told


def test_a_goto_leads_back_and_nothing_needs_itself(hf: Holdfast) -> None:
    forward, _ = planned(hf)

    @forward.step(on_failure=goto("later"))
    def early() -> None: ...

    @forward.step
    def later() -> None: ...

    assert "step 'early' goes back to 'later', which it does not need" in refused(forward)

    circle = hf.workflow("circle")
    loop = circle.loop("loop", over="input.names")

    @loop.step(needs=["after"])
    def inside() -> None: ...

    @circle.step
    def after() -> None: ...

    assert "a cycle: loop → after → loop" in refused(circle)


def test_steps_inside_a_loop_are_needed_through_the_loop_alone(hf: Holdfast) -> None:
    flow, plan = planned(hf)
    loop = flow.loop("loop", over=needs(plan))
    assert "step 'loop' is a loop without steps" in refused(flow)
    loop.step(nothing)
    with pytest.raises(
        InvalidDefinition, match="which is in the loop 'loop'; need the loop itself"
    ):
        flow.approval("gate", "Go on?", needs=[nothing])
    with pytest.raises(InvalidDefinition, match="loop: step 'plan' is defined twice"):
        loop.step(plan)
    with pytest.raises(InvalidDefinition, match="needs 'other', which is no step of this workflow"):
        flow.approval("gate", "Go on?", needs=[hf.workflow("w").loop("other", over="input.names")])


def test_a_parameter_takes_the_none_that_may_come(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("loop", over="input.names", when="input.wanted")

    @loop.step(on_failure="skip")
    def try_it(item: str, feedback: str) -> str:
        return item + feedback

    @loop.step(verifies=try_it)
    def verify(subject: str) -> Verdict:
        return Verdict.reject(subject)

    inner = flow.loop("inner", over="input.names")

    @inner.step(when="item.wanted")
    def maybe(item: Story) -> Story:
        return item

    @flow.step
    def last(
        tried: list[str] = needs(loop),
        told: list[Story] = needs(inner),
        fine: list[Story | None] = needs(inner),
    ) -> str:
        return f"{tried} {told} {fine}"

    with pytest.raises(InvalidDefinition) as error:
        flow.start(names=[], wanted=True)
    ending = "; annotate it with | None"
    assert [each.removesuffix(ending) for each in error.value.mistakes] == [
        "try_it: feedback: is None the first time",
        "verify: subject: 'try_it' may be skipped and then gives None",
        "last: tried: 'loop' may be skipped and then gives None",
        "last: told: 'inner' may be skipped and then in the list gives None",
    ]


def test_options_are_refused_by_name(hf: Holdfast) -> None:
    flow, plan = planned(hf)
    unchecked: Any = flow
    program: Any = hf
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: flow.step(max_rounds=2), "max_rounds: counts a verifier's rounds; say verifies="),
        (lambda: flow.step(on_failure="skipp"), "'skipp' is neither .*did you mean skip"),
        (lambda: flow.step(on_failure="goto"), "'goto' is neither 'fail', 'skip', 'ask' nor goto"),
        (lambda: unchecked.step(verfies=plan), "verfies: is no option; did you mean verifies"),
        (lambda: flow.step(when=True), "when: True is no reference; write needs"),
        (lambda: flow.step(when="plan.deploy"), "when: 'plan.deploy' begins with none of input"),
        (lambda: flow.loop("a.b", over="input.x"), "name: 'a.b' has a dot"),
        (lambda: flow.loop("a", over=["b"]), r"over: \['b'\] is no reference"),
        (lambda: flow.approval("a", "x" * 10_001), "question: is 10001 characters long"),
        (lambda: program.task(verifies=plan), "verifies: is no option"),
    ]
    for call, reason in calls:
        with pytest.raises(InvalidInput, match=reason):
            call()


def test_a_loop_over_the_whole_input_is_refused(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    with pytest.raises(InvalidDefinition, match="loop 'each': over: the whole input is no list"):
        flow.loop("each", over="input")
