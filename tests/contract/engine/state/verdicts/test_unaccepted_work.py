"""Nothing passes without an acceptance: a verifier that is skipped leaves out what it judged."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, InvalidDefinition, Verdict, needs
from holdfast.engine.engine import Engine
from holdfast.model.retry import RetryPolicy
from holdfast.model.status import Status
from holdfast.model.workflow.graph import OnFailure, Step
from holdfast.model.workflow.reference import Reference
from tests.contract.engine.state.loops.test_loops import begin, loop, of
from tests.contract.engine.state.verdicts.test_verifiers import ACCEPT, REJECT, current, do, judge
from tests.contract.single_statements import write
from tests.contract.task_states import finish, take

PATIENCE = 30
SKIP = OnFailure(action="skip")


@pytest.fixture
def engine(lasting_engine: Engine) -> Engine:
    """One store for all of these tests: each looks at its own runs."""
    return lasting_engine


def verify(*needed: str, when: str | None = None) -> Step:
    return Step(
        id="verify",
        needs=needed,
        verifies="implement",
        max_rounds=1,
        retry=RetryPolicy(max_attempts=1),
        on_failure=SKIP,
        when=None if when is None else Reference.parse("when", when),
    )


BODY = (Step(id="implement"), Step(id="lint", needs=("implement",)), verify("lint"))


def given(engine: Engine, run: str, step: str) -> list[tuple[object, bool]]:
    return [(task.output, task.skipped) for task in of(engine, run, step)]


@pytest.mark.parametrize("verdict", [REJECT, "no verdict"])
def test_an_item_without_an_acceptance_gives_nothing_and_the_others_go_on(
    engine: Engine, verdict: object
) -> None:
    run = begin(engine, loop("input", body=BODY), given=[1, 2])
    for place, said in enumerate((verdict, ACCEPT)):
        for step in ("implement", "lint"):
            finish(engine, current(engine, run, step, place).id)
        judge(engine, run, said, place=place)
    assert given(engine, run, "implement") == [(None, True), ("output", False)]
    assert given(engine, run, "lint") == [(None, True), ("output", False)]
    assert current(engine, run, "build").output == [None, "output"]


def test_a_loop_gives_none_in_the_place_of_what_was_never_accepted(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    build = flow.loop("build", over="input.stories")

    @build.step
    def implement(item: str) -> str:
        return item

    @build.step
    def lint(change: str = needs(implement)) -> str:
        return f"{change} linted"

    @build.step(verifies=implement, max_rounds=1, on_failure="skip")
    def verify(subject: str) -> Verdict:
        return Verdict.accept() if subject == "good" else Verdict.reject("no")

    @flow.step
    def last(made: list[str | None] = needs(build)) -> list[str | None]:
        return made

    with hf.worker():
        run = flow.start(stories=["bad", "good"])
        assert run.result(PATIENCE) == [None, "good linted"]
        assert run.task("build").result() == [None, "good linted"]


def test_a_step_that_needs_work_that_may_never_be_accepted_has_to_take_none(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def implement() -> str:
        return "made"

    @flow.step(verifies=implement, on_failure="skip")
    def verify(subject: str) -> Verdict:
        return Verdict.accept() if subject else Verdict.reject("no")

    @flow.step
    def last(made: str = needs(implement)) -> str:
        return made

    with pytest.raises(InvalidDefinition, match="last: made: 'implement' may be skipped"):
        flow.start()


def test_a_step_that_needs_a_loop_with_work_that_may_never_be_accepted_has_to_take_none(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def implement() -> str:
        return "made"

    files = flow.loop("files", over="input.names", needs=[])

    @files.step
    def edit(made: str = needs(implement)) -> str:
        return made

    @flow.step(verifies=implement, needs=[files], on_failure="skip")
    def verify(subject: str) -> Verdict:
        return Verdict.accept() if subject else Verdict.reject("no")

    @flow.step(needs=[verify])
    def last(edited: list[str] = needs(files)) -> list[str]:
        return edited

    with pytest.raises(InvalidDefinition, match="last: edited: 'files' may be skipped"):
        flow.start(names=["a"])


def test_a_later_step_goes_on_when_the_verifier_and_the_step_before_it_were_skipped(
    engine: Engine,
) -> None:
    once = RetryPolicy(max_attempts=1)
    lint = Step(id="lint", needs=("implement",), retry=once, on_failure=SKIP)
    last = Step(id="last", needs=("implement", "lint"))
    run = begin(engine, Step(id="implement"), lint, verify("lint"), last)
    do(engine, run, "implement")
    taken = take(engine, current(engine, run, "lint").id)
    assert engine.work.fail(taken.task.id, taken.token, "red").ok
    judge(engine, run, "no verdict")
    assert given(engine, run, "implement") == given(engine, run, "lint") == [(None, True)]
    assert take(engine, current(engine, run, "last").id).needs["implement"] is None
    assert engine.runs.retry(run, step="lint").ok
    assert [current(engine, run, each.id).state for each in (lint, last)] == ["blocked"] * 2
    do(engine, run, "implement", "lint")
    judge(engine, run, ACCEPT)
    assert take(engine, current(engine, run, "last").id).needs["implement"] == "output"


def test_a_whole_loop_that_was_never_accepted_gives_nothing(engine: Engine) -> None:
    judged = Step(id="verify", verifies="build", max_rounds=1, on_failure=SKIP)
    run = begin(engine, loop("input", body=(Step(id="one"),)), judged, given=[1])
    do(engine, run, "one")
    assert judge(engine, run, REJECT).ok
    assert given(engine, run, "build") == [(None, True), ("output", False)]
    assert engine.runs.get(run).status == "completed"


def test_work_whose_verifier_cannot_begin_gives_nothing(engine: Engine) -> None:
    when = "steps.implement.large"
    run = begin(engine, Step(id="implement"), verify("implement", when=when))
    do(engine, run, "implement")
    assert given(engine, run, "implement") == [(None, True)]
    assert engine.runs.retry(run, step="implement").ok
    assert given(engine, run, "implement") == [(None, False)]


def test_only_steps_between_the_work_and_its_verifier_are_left_out_and_once(engine: Engine) -> None:
    steps = (Step(id="plan"), Step(id="implement", needs=("plan",)), *BODY[1:])
    beside = Step(id="beside", needs=("plan",))
    last = Step(id="last", needs=("implement",))
    run, _ = runs = [begin(engine, *steps, beside, last) for _ in range(2)]
    for each in runs:
        do(engine, each, "plan", "implement", "lint", "beside")
        assert judge(engine, each, ACCEPT).ok
        do(engine, each, "last")
    named = {current(engine, run, step).id for step in ("implement", "lint")}
    asked = {"task_id": current(engine, run, "verify").id}
    assert write(engine, "skip_unaccepted", **asked) == named
    assert write(engine, "skip_unaccepted", **asked) == set()
    assert engine.runs.retry(run, step="implement").ok
    assert write(engine, "skip_unaccepted", **asked) == set()
    assert current(engine, run, "beside").status is Status.DONE


def test_a_verifier_that_is_begun_again_judges_work_done_anew(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    done: list[str] = []

    @flow.step
    def implement() -> str:
        done.append("implement")
        return "work"

    @flow.step(verifies=implement, max_attempts=1, on_failure="skip")
    def verify(subject: str) -> Verdict:
        done.append(f"verify {subject}")
        if len(done) == 2:
            raise RuntimeError("network down")
        return Verdict.accept()

    @flow.step
    def last(made: str | None = needs(implement)) -> str | None:
        return made

    with hf.worker():
        run = flow.start()
        assert run.result(PATIENCE) is None
        assert hf.runs.retry(run.id, step="verify").ok
        assert run.result(PATIENCE) == "work"
    assert done == ["implement", "verify work"] * 2


@pytest.mark.parametrize("again", ["verify", "lint"])
def test_work_left_out_by_a_skipped_verifier_comes_back_with_the_verifier(
    engine: Engine, again: str
) -> None:
    last = Step(id="last", needs=("build",))
    run = begin(engine, loop("input", body=BODY), last, given=[1])
    do(engine, run, "implement", "lint")
    judge(engine, run, "no verdict")
    do(engine, run, "last")
    assert engine.tasks.reopen(current(engine, run, again).id).ok
    states = [current(engine, run, step.id).state for step in (*BODY, last)]
    assert states == ["ready", "blocked", "blocked", "blocked"]
    do(engine, run, "implement", "lint")
    judge(engine, run, ACCEPT)
    assert given(engine, run, "implement") == given(engine, run, "lint") == [("output", False)]
    assert current(engine, run, "build").output == ["output"]


@pytest.mark.parametrize("again", ["implement", "lint", "verify"])
def test_a_message_reaches_its_task_though_what_was_left_out_comes_back(
    engine: Engine, again: str
) -> None:
    run = begin(engine, *BODY)
    do(engine, run, "implement", "lint")
    judge(engine, run, "no verdict")
    assert engine.tasks.follow_up(current(engine, run, again).id, "shorter").ok
    assert current(engine, run, "implement").state == "ready"
    told = {step.id: current(engine, run, step.id).feedback for step in BODY}
    assert told == dict.fromkeys(told) | {again: "shorter"}


def test_a_verifier_that_is_reset_has_what_it_left_out_done_again(engine: Engine) -> None:
    run = begin(engine, Step(id="implement"), verify("implement"), Step(id="open", needs=()))
    do(engine, run, "implement")
    judge(engine, run, "no verdict")
    assert engine.tasks.reset(current(engine, run, "verify").id).ok
    assert current(engine, run, "implement").state == "ready"
    assert current(engine, run, "verify").blocked


def test_a_loop_that_was_left_out_may_be_left_out_again(engine: Engine) -> None:
    judged = Step(id="verify", verifies="build", max_rounds=1, on_failure=SKIP)
    run = begin(engine, loop("input", body=(Step(id="one"),)), judged, given=[1])
    for verdict, left in (
        (REJECT, (None, True)),
        (REJECT, (None, True)),
        (ACCEPT, (["output"], False)),
    ):
        do(engine, run, "one")
        assert judge(engine, run, verdict).ok
        assert given(engine, run, "build")[0] == left
        assert engine.runs.get(run).status == "completed"
        assert engine.runs.retry(run, step="verify").ok
    assert current(engine, run, "one").status is Status.DONE


def test_work_skipped_by_its_own_condition_does_not_come_back_with_its_verifier(
    engine: Engine,
) -> None:
    left = Step(id="implement", when=Reference.parse("when", "input.wanted"))
    run = begin(engine, left, verify("implement"), given={"wanted": False})
    judge(engine, run, "no verdict")
    before = current(engine, run, "implement").version
    assert engine.runs.retry(run, step="verify").ok
    assert current(engine, run, "implement").version == before
    assert current(engine, run, "verify").state == "ready"


def test_work_that_was_rejected_is_not_begun_twice_when_its_verifier_is(engine: Engine) -> None:
    run = begin(engine, Step(id="implement"), Step(id="verify", verifies="implement"))
    do(engine, run, "implement")
    assert judge(engine, run, REJECT).ok
    before = current(engine, run, "implement")
    assert engine.runs.retry(run, step="verify").ok
    assert current(engine, run, "implement") == before
