"""Verifiers as Python functions: only what they accept goes on, the rest is done again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast import (
    Context,
    Holdfast,
    InvalidInput,
    Loop,
    TaskFailed,
    Verdict,
    WorkflowBuilder,
    goto,
    needs,
)
from tests.race.racers import eventually

PATIENCE = 30


class Judge:
    """Has a verifier say what is in its list, then accept; keeps what it was shown."""

    def __init__(self, *says: Verdict) -> None:
        self._says = list(says)
        self.shown: list[Any] = []

    def look(self, subject: object) -> Verdict:
        self.shown.append(subject)
        return self._says.pop(0) if self._says else Verdict.accept()


def building(flow: WorkflowBuilder) -> tuple[Loop, list[str]]:
    """A loop of one step; the list is what was done, with which feedback."""
    build = flow.loop("build", over="input.stories")
    done: list[str] = []

    @build.step
    def implement(item: str, feedback: str | None) -> str:
        done.append(f"{item} {feedback}")
        return f"{item}{len(done)}"

    return build, done


def made(hf: Holdfast, judge: Judge, **verifier: Any) -> tuple[WorkflowBuilder, list[str]]:
    """The same with a verifier."""
    flow = hf.workflow("flow")
    build, done = building(flow)

    @build.step(verifies="implement", backoff=0, **verifier)
    def verify(subject: str) -> Verdict:
        return judge.look(subject)

    return flow, done


def test_a_loop_gives_what_the_last_step_of_each_item_gave_verifiers_aside(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    build, _ = building(flow)

    @build.step
    def lint(change: str = needs("implement")) -> str:
        return f"{change} linted"

    @build.step(verifies="implement")
    def verify(subject: str) -> Verdict:
        assert subject
        return Verdict.accept()

    publish = flow.loop("publish", over=needs(build))

    @publish.step
    def write(item: str) -> str:
        return item

    @publish.step(verifies=write)
    def proof(subject: str) -> Verdict:
        assert subject
        return Verdict.accept()

    @publish.step
    def commit(item: str) -> str:
        return f"{item} committed"

    with hf.worker():
        run = flow.start(stories=["a"])
        assert run.result(PATIENCE) == ["a1 linted committed"]


def test_an_item_is_done_only_when_it_is_accepted(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    build = flow.loop("build", over="input.stories")
    begun, go_on = threading.Event(), threading.Event()

    @build.step
    def implement(item: str) -> str:
        return item

    @build.step(verifies=implement)
    def verify(subject: str) -> Verdict:
        begun.set()
        assert go_on.wait(PATIENCE)
        return Verdict.accept() if subject else Verdict.reject("nothing there")

    with hf.worker():
        run = flow.start(stories=["a", "b"])
        assert begun.wait(PATIENCE)
        assert hf.tasks.get(run.task("build.1.implement").id).status == "done"
        assert [hf.tasks.get(run.task(f"build.{n}").id).status for n in (1, 2)] == [
            "queued",
            "idle",
        ]
        go_on.set()
        assert run.result(PATIENCE) == ["a", "b"]
        assert run.task("build.2.verify").result(PATIENCE) == Verdict.accept()


def test_a_rejection_reopens_only_its_own_item_with_the_feedback(hf: Holdfast) -> None:
    judge = Judge(Verdict.accept(), Verdict.reject("too long"), Verdict.reject("too short"))
    flow, done = made(hf, judge)
    with hf.worker():
        assert flow.start(stories=["a", "b"]).result(PATIENCE) == ["a1", "b4"]
    assert done == ["a None", "b None", "b too long", "b too short"]
    assert judge.shown == ["a1", "b2", "b3", "b4"]


def test_without_a_verdict_nothing_passes(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def implement() -> str:
        return "work"

    @flow.step(verifies=implement, max_attempts=2, backoff=0)
    def verify() -> dict[str, str]:
        return {"opinion": "splendid"}

    with hf.worker():
        run = flow.start()
        with pytest.raises(TaskFailed, match="a verifier's output must hold `verdict`"):
            run.result(PATIENCE)
    task = hf.tasks.get(run.task("verify").id)
    assert (task.failures, task.round, hf.tasks.get(run.task("implement").id).epoch) == (2, 0, 1)


def test_a_verifier_that_forgets_its_verdict_is_tried_again(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    says: list[Any] = [None, "fine", Verdict.accept()]

    @flow.step
    def implement() -> str:
        return "work"

    @flow.step(verifies=implement, max_attempts=3, backoff=0)
    def verify() -> Verdict:
        said: Verdict = says.pop(0)
        return said

    with hf.worker():
        run = flow.start()
        assert run.result(PATIENCE) == "work"
        says += [None] * 3
        run = flow.start()
        with pytest.raises(TaskFailed, match=r"no verdict: .*; give Verdict\.accept\(\)"):
            run.result(PATIENCE)
    assert hf.tasks.get(run.task("verify").id).failures == 3


@pytest.mark.parametrize("items", [[-1], [1.5], "0", [True]])
def test_places_that_no_item_can_have_are_refused_where_the_verdict_is_made(items: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidInput, match=r"items: .* is no "):
        Verdict.reject("no", items=items)


def test_a_verifier_that_dies_is_tried_again_and_its_item_is_not(hf: Holdfast) -> None:
    judge = Judge()
    flow, done = made(hf, judge, agent="reviewer")
    run = flow.start(stories=["a"])
    with hf.worker():
        task = run.task("build.1.verify").id
        assert eventually(lambda: hf.tasks.get(task).state == "ready")
    assert len(hf.work.claim("ghost", agents=["reviewer"], lease=0.05)) == 1
    with hf.worker(agents=["default", "reviewer"]):
        assert run.result(PATIENCE) == ["a1"]
    assert (done, hf.tasks.get(task).lost) == (["a None"], 1)


def test_rounds_end_with_a_failure_and_a_retry_resumes_the_item_with_fresh_budgets(
    hf: Holdfast,
) -> None:
    judge = Judge(*[Verdict.reject(each) for each in ("one", "two", "three")])
    flow, done = made(hf, judge, max_rounds=2)
    with hf.worker():
        run = flow.start(stories=["a"])
        place = r"at step 'build\.1\.verify': rejected 2 times, last: two$"
        with pytest.raises(TaskFailed, match=place):
            run.result(PATIENCE)
        assert hf.runs.retry(run.id).ok
        assert run.result(PATIENCE) == ["a4"]
    assert done == ["a None", "a one", "a two", "a three"]


def test_rounds_may_end_with_a_skip(hf: Holdfast) -> None:
    flow, done = made(hf, Judge(Verdict.reject("no")), max_rounds=1, on_failure="skip")
    with hf.worker():
        run = flow.start(stories=["a"])
        assert run.result(PATIENCE) == [None]
        assert run.task("build.1.verify").result(PATIENCE) is None
        assert run.task("build.1.implement").result(PATIENCE) is None
    assert done == ["a None"]


def test_rounds_may_end_with_a_person_who_allows_one_more_or_ends_it(hf: Holdfast) -> None:
    judge = Judge(Verdict.reject("no"), Verdict.reject("still no"))
    flow, done = made(hf, judge, max_rounds=1, on_failure="ask")
    with hf.worker():
        run = flow.start(stories=["a"])
        verify = run.task("build.1.verify")
        assert eventually(lambda: hf.tasks.get(verify.id).holds.names == ("approval",))
        assert hf.approve(verify).ok
        assert eventually(lambda: len(done) == 2 and bool(hf.tasks.get(verify.id).holds))
        assert hf.reject(verify, reason="enough").ok
        with pytest.raises(TaskFailed):
            run.result(PATIENCE)
    assert done == ["a None", "a no"]


def test_a_verifier_of_a_whole_loop_sends_back_the_items_it_names(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    build = flow.loop("build", over="input.stories", parallel=3)
    judge = Judge(Verdict.reject("rhyme", items=[0, 2]), Verdict.reject({"all": "again"}))
    done: list[str] = []

    @build.step
    def implement(item: str, feedback: Any = "nothing said") -> str:  # noqa: ANN401
        done.append(f"{item} {feedback}")
        return item.upper()

    @flow.step(verifies=build)
    def review(subject: list[str]) -> Verdict:
        return judge.look(subject)

    @flow.step
    def merge(changes: list[str] = needs(build)) -> str:
        return "".join(changes)

    with hf.worker(concurrency=1):
        run = flow.start(stories=["a", "b", "c"])
        assert run.result(PATIENCE) == "ABC"
    assert not hf.tasks.get(run.task("build.1.implement").id).superseded
    assert sorted(done[:3]) == [f"{each} nothing said" for each in "abc"]
    assert sorted(done[3:5]) == ["a rhyme", "c rhyme"]
    assert sorted(done[5:]) == [f"{each} {{'all': 'again'}}" for each in "abc"]
    assert judge.shown == [["A", "B", "C"]] * 3


def test_a_step_that_fails_goes_back_to_a_loop_whose_steps_hear_why(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    build, done = building(flow)

    @flow.step(max_attempts=1, on_failure=goto(build, max_rounds=2))
    def check(ctx: Context, built: list[str] = needs(build)) -> str:
        if ctx.attempt < 3:
            raise ValueError(f"red {ctx.attempt}")
        return "".join(built)

    with hf.worker():
        run = flow.start(stories=["a"])
        assert run.result(PATIENCE) == "a3"
    assert done == ["a None", "a ValueError: red 1", "a ValueError: red 2"]
    assert not hf.tasks.get(run.task("build.1").id).superseded


def test_a_verifier_out_of_rounds_may_go_back_further_with_what_it_said(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    judge = Judge(Verdict.reject("thin"))
    heard: list[str | None] = []

    @flow.step
    def plan(feedback: str | None = None) -> str:
        heard.append(feedback)
        return "plan"

    @flow.step
    def implement() -> str:
        return "work"

    @flow.step(verifies=implement, max_rounds=1, on_failure=goto(plan))
    def verify(subject: str) -> Verdict:
        return judge.look(subject)

    with hf.worker():
        assert flow.start().result(PATIENCE) == "work"
    assert heard == [None, "thin"]


def test_a_step_that_fails_for_good_may_be_skipped(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step(max_attempts=1, on_failure="skip")
    def measure() -> int:
        raise OSError

    @flow.step
    def report(measured: int | None = needs(measure)) -> str:
        return f"measured {measured}"

    with hf.worker():
        assert flow.start().result(PATIENCE) == "measured None"


def test_the_log_says_what_became_of_a_step_that_has_a_plan_for_its_failure(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def build() -> str:
        return "built"

    @flow.step(max_attempts=1, on_failure=goto(build))
    def check(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError("red")

    @flow.step(max_attempts=1, on_failure="skip")
    def measure() -> None:
        raise ValueError("no ruler")

    @flow.step(max_attempts=1, on_failure="ask")
    def ship() -> None:
        raise ValueError("no van")

    with hf.worker():
        run = flow.start()
        ship_task = run.task("ship").id
        assert eventually(lambda: bool(hf.tasks.get(ship_task).holds))
    told = [message.partition(" raised ")[2] for message in caplog.messages]
    said = [each.partition("\n")[0] for each in told]
    assert [each for each in said if each] == [
        "ValueError: red; it goes back to build, and is tried again after it",
        "ValueError: no ruler; it is skipped",
        f'ValueError: no van; it waits for approval: hf.approve("{ship_task}")',
    ]
