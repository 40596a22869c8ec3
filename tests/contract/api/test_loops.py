"""Loops of Python functions: each item of a list goes through the steps, and all give a list."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import assert_type

import pytest

from holdfast import (
    Context,
    Holdfast,
    InvalidInput,
    NotFound,
    RunHandle,
    TaskFailed,
    Verdict,
    needs,
)
from tests.race.racers import eventually

PATIENCE = 30


@dataclass
class Story:
    title: str
    files: list[str]


@dataclass
class Plan:
    stories: list[Story]
    deploy: bool = False


@dataclass
class Change:
    title: str
    lines: int


PLAN = [Story("one", ["a", "b"]), Story("three", []), Story("fourteen", ["c"])]


def test_each_item_goes_through_the_steps_and_the_loop_gives_the_list(hf: Holdfast) -> None:
    feature = hf.workflow("feature")
    order: list[str] = []

    @feature.step
    def plan() -> Plan:
        return Plan(PLAN)

    build = feature.loop("build", over=needs(plan, "stories"))

    @build.step
    def implement(ctx: Context, item: Story) -> Change:
        assert ctx.run_id is not None
        order.append(f"implement {item.title}")
        return Change(item.title, len(item.title))

    @build.step
    def test(item: Story, attempt: int, change: Change = needs(implement)) -> Change:
        assert (item.title, attempt) == (change.title, 1)
        order.append(f"test {item.title}")
        return change

    @feature.step
    def merge(changes: list[Change] = needs(build)) -> list[int]:
        assert all(isinstance(each, Change) for each in changes)
        return [each.lines for each in changes]

    assert_type(test(PLAN[0], 1, Change("one", 3)), Change)
    assert_type(merge([]), list[int])
    order.clear()
    with hf.worker():
        assert feature.start().result(PATIENCE) == [3, 5, 8]
    assert order == [f"{step} {each.title}" for each in PLAN for step in ("implement", "test")]


def test_an_empty_list_is_done_at_once(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("loop", over="input.names")

    @loop.step
    def greet(item: str) -> str:
        return item

    with hf.worker():
        assert flow.start(names=[]).result(PATIENCE) == []
        assert flow.start(names=["a"]).result(PATIENCE) == ["a"]


def test_a_parallel_loop_runs_up_to_its_limit_of_items_and_keeps_outputs_in_list_order(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("loop", over="input.names", parallel=2)
    begun = {name: threading.Event() for name in "abc"}
    go_on = {name: threading.Event() for name in "abc"}

    @loop.step
    def greet(item: str) -> str:
        begun[item].set()
        assert go_on[item].wait(PATIENCE)
        return item.upper()

    with hf.worker(concurrency=5):
        run = flow.start(names=["a", "b", "c"])
        assert begun["a"].wait(PATIENCE)
        assert begun["b"].wait(PATIENCE)
        states = [hf.tasks.get(run.task(f"loop.{place}").id).status for place in range(1, 4)]
        assert states == ["queued", "queued", "idle"]
        with pytest.raises(NotFound, match=r"loop\.3\.greet"):
            run.task("loop.3.greet")
        go_on["b"].set()
        assert begun["c"].wait(PATIENCE)
        go_on["c"].set()
        assert run.task("loop.3").result(PATIENCE) == "C"
        go_on["a"].set()
        assert run.result(PATIENCE) == ["A", "B", "C"]


def test_a_loop_in_a_loop_is_over_a_part_of_the_item_and_gives_lists_of_lists(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")
    stories = flow.loop("stories", over="input.stories", parallel=2)
    files = stories.loop("files", over="item.files", parallel=2)

    @files.step
    def edit(item: str, suffix: str) -> str:
        return item + suffix

    @stories.step
    def commit(item: Story, edited: list[str] = needs(files)) -> Change:
        return Change(" ".join([item.title, *edited]), len(edited))

    with hf.worker():
        run = flow.start(stories=PLAN, suffix="!")
        assert run.result(PATIENCE) == [
            Change("one a! b!", 2),
            Change("three", 0),
            Change("fourteen c!", 1),
        ]
        assert run.task("stories.1.files").result(PATIENCE) == ["a!", "b!"]
        assert run.task("stories.1.files.2").result(PATIENCE) == "b!"
        assert run.task("stories.1.files.2.edit").result(PATIENCE) == "b!"
        assert run.task("stories.3").result(PATIENCE) == Change("fourteen c!", 1)
        known = hf.handle(run.id)
        assert isinstance(known, RunHandle)
        assert known.task("stories.2").result(PATIENCE) == {
            "title": "three",
            "lines": 0,
        }
        for address in ("stories.4", "stories.1.edit", "commit", f"stories.{9 * 10**12}"):
            with pytest.raises(NotFound):
                run.task(address)


def test_an_item_with_two_last_steps_gives_both_by_name(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("loop", over="input.titles")

    @loop.step
    def left(item: str) -> Change:
        return Change(item, 1)

    @loop.step(needs=[])
    def right(item: str) -> str:
        return item

    with hf.worker():
        result = flow.start(titles=["a"]).result(PATIENCE)
    assert result == [{"left": Change("a", 1), "right": "a"}]


def test_steps_of_a_loop_need_each_other_in_one_item_and_steps_around_it(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step(needs=[])
    def plan() -> Plan:
        return Plan(PLAN[:2])

    @flow.step(needs=[])
    def style() -> dict[str, str]:
        return {"mark": "?"}

    outer = flow.loop("outer", over=needs(plan, "stories"))
    inner = outer.loop("inner", over="item.files")

    @inner.step
    def edit(item: str, whole: Plan = needs(plan), mark: str = needs(style, "mark")) -> str:
        return f"{item}{mark} of {len(whole.stories)}"

    graph = {step.id: set(step.needs) for step in flow.graph.steps}
    assert graph["outer"] == {"plan", "style"}
    with hf.worker():
        assert flow.start().result(PATIENCE) == [["a? of 2", "b? of 2"], []]


def test_an_item_gives_what_an_inner_loop_gave_that_takes_more_of_it_inside(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    stories = flow.loop("stories", over="input.stories")

    @stories.step
    def implement(item: Story) -> Change:
        return Change(item.title, 1)

    files = stories.loop("files", over="item.files", needs=[])

    @files.step
    def edit(item: str, change: Change = needs(implement)) -> Change:
        return Change(f"{change.title} {item}", 2)

    @stories.step(verifies=implement, needs=[files])
    def verify(subject: Change) -> Verdict:
        return Verdict.accept() if subject.lines else Verdict.reject("no")

    with hf.worker():
        run = flow.start(stories=PLAN[:1])
        assert run.result(PATIENCE) == [[Change("one a", 2), Change("one b", 2)]]


def test_a_condition_skips_a_step_a_loop_and_the_steps_of_an_item(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def plan(deploy: bool = False) -> Plan:  # noqa: FBT001, FBT002 - an input
        return Plan(PLAN, deploy=deploy)

    loop = flow.loop("loop", over=needs(plan, "stories"), when="input.build")

    @loop.step(when="item.files")
    def edit(item: Story) -> str:
        return item.title

    @flow.step(when=needs(plan, "deploy"))
    def deploy_it() -> str:
        return "deployed"

    @flow.step(when="input.deploy", needs=[])
    def boast() -> str:
        return "so"

    @flow.step(needs=[deploy_it, boast])
    def tell(
        built: list[str | None] | None = needs(loop), said: str | None = needs(deploy_it)
    ) -> str:
        return f"{built} {said}"

    assert flow.graph.steps[2].needs == ("loop", "plan")
    with hf.worker():
        assert flow.start(build=False).result(PATIENCE) == "None None"
        run = flow.start(build=True, deploy=True)
        assert run.result(PATIENCE) == "['one', None, 'fourteen'] deployed"
        assert run.task("boast").result(PATIENCE) == "so"
        assert hf.tasks.get(run.task("loop.2.edit").id).skipped
        assert run.task("loop.2.edit").result(PATIENCE) is None


def test_an_input_that_a_loop_is_over_is_checked_when_the_run_starts(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("loop", over="input.stories")

    @loop.step
    def implement(item: Story) -> str:
        return item.title

    with pytest.raises(InvalidInput, match="stories: is missing; step 'loop' takes it"):
        flow.start()
    with pytest.raises(InvalidInput, match=r"stories: must be a list, not dict; the loop 'loop'"):
        flow.start(stories={})
    with pytest.raises(InvalidInput, match=r"stories\[1\]: files: .*'implement' takes it"):
        flow.start(stories=[PLAN[0], {"title": "no files"}])
    with pytest.raises(InvalidInput, match="stories: is not JSON"):
        flow.start(stories=[object()])
    with hf.worker():
        assert flow.start(stories=[PLAN[0]]).result(PATIENCE) == ["one"]


def test_an_item_that_does_not_fit_its_annotation_fails_its_step_and_names_it(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def plan() -> list[int]:
        return [1]

    loop = flow.loop("loop", over=needs(plan))

    @loop.step
    def implement(item: Story) -> str:
        return item.title

    with hf.worker():
        run = flow.start()
        with pytest.raises(TaskFailed, match="'implement' takes it"):
            run.result(PATIENCE)
    assert hf.tasks.get(run.task("loop.1.implement").id).failures == 1


def test_a_program_without_the_function_of_an_item_leaves_it_to_one_that_has_it(
    hf: Holdfast, store_url: str
) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("loop", over="input.names")

    @loop.step
    def greet(item: str) -> str:
        return item

    with Holdfast(store_url) as other, other.worker(name="unable"):
        run = flow.start(names=["a"])
        task = run.task("loop.1.greet").id
        assert eventually(lambda: hf.tasks.get(task).holds.names == ("version",))
        with hf.worker(name="able"):
            assert run.result(PATIENCE) == ["a"]


def test_a_skipped_steps_output_counts_as_an_empty_list_for_loops_and_as_false_for_conditions(
    hf: Holdfast,
) -> None:
    flow = hf.workflow("flow")

    @flow.step(when="input.go")
    def plan() -> dict[str, list[int]]:
        return {"xs": [1]}

    each = flow.loop("each", over=needs(plan, "xs"))

    @each.step
    def one(item: int) -> int:
        return item

    @flow.step(when=needs(plan, "xs"))
    def only_then() -> int:
        return 1

    @flow.step
    def end(found: list[int] = needs(each), then: int | None = needs(only_then)) -> list[object]:
        return [found, then]

    with hf.worker():
        assert flow.start(go=False).result(PATIENCE) == [[], None]
        assert flow.start(go=True).result(PATIENCE) == [[1], 1]


def test_a_run_that_was_failed_by_a_cancel_names_what_was_cancelled(hf: Holdfast) -> None:
    flow = hf.workflow("flow")
    loop = flow.loop("build", over="input.names", parallel=3)

    @loop.step
    def first(item: str) -> str:
        return item

    failed, cancelled = (flow.start(names=["a", "b", "c"]) for _ in range(2))
    assert hf.tasks.cancel(failed.task("build.2").id).ok
    with pytest.raises(TaskFailed, match=r"ended failed at step 'build\.2': cancelled$"):
        failed.result(PATIENCE)
    assert hf.runs.cancel(cancelled.id).ok
    with pytest.raises(TaskFailed, match=r"ended cancelled($|: )"):
        cancelled.result(PATIENCE)
