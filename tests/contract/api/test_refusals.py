"""What the Python API refuses, where it is written or called, and with which words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from holdfast import (
    AsyncContext,
    Holdfast,
    InvalidDefinition,
    InvalidInput,
    ShuttingDown,
    TaskFailed,
    Worker,
    needs,
)
from tests.contract.raw_store import count_rows


class Opaque:
    """A type with no form in JSON."""


def nothing() -> None: ...


def test_bad_calls_name_the_argument_and_leave_nothing_behind(hf: Holdfast, store_url: str) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def only(count: int) -> int:
        return count

    @hf.task
    def job(count: int) -> int:
        return count

    before = count_rows(store_url) if hf.doctor().ok else {}
    with pytest.raises(InvalidInput, match="count: is missing; step 'only' takes it"):
        flow.start()
    with pytest.raises(InvalidInput, match="cuont: is no input of 'flow', which takes count"):
        flow.start(count=1, cuont=2)
    with pytest.raises(InvalidInput, match="count: Input should be a valid integer"):
        flow.start(count="many")
    unchecked: Any = job
    with pytest.raises(InvalidInput, match="job: missing a required argument: 'count'"):
        unchecked.enqueue()
    with pytest.raises(InvalidInput, match="job: got an unexpected keyword argument 'cuont'"):
        unchecked.enqueue(1, cuont=2)
    with pytest.raises(InvalidInput, match="count: Input should be a valid integer"):
        job.enqueue_many([{"count": 1}, {"count": "many"}])
    no_mappings: list[Any] = [1]
    with pytest.raises(InvalidInput, match="calls: 1 is no mapping of names of parameters"):
        job.enqueue_many(no_mappings)
    assert count_rows(store_url) == before


def test_an_input_must_fit_every_step_that_takes_it(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def loose(number: float) -> float:
        return number

    @flow.step
    def tight(number: int) -> int:
        return number

    with pytest.raises(InvalidInput, match="number: Input should be a valid integer"):
        flow.start(number=1.5)


def test_a_name_is_given_once(hf: Holdfast) -> None:
    hf.task(name="job")(nothing)
    with pytest.raises(InvalidDefinition, match="job: is already a task"):
        hf.task(name="job")(nothing)
    flow = hf.workflow("flow")
    with pytest.raises(InvalidDefinition, match="flow: is already a workflow"):
        hf.workflow("flow")
    flow.step(nothing)
    with pytest.raises(InvalidDefinition, match="step 'nothing' is defined twice"):
        flow.step(nothing)


def test_a_graph_that_cannot_run_is_refused_when_it_is_started(hf: Holdfast) -> None:
    circle = hf.workflow("circle")

    @circle.step(needs=["after"])
    def before() -> None: ...

    @circle.step(needs=[before])
    def after() -> None: ...

    with pytest.raises(InvalidDefinition, match="a cycle: before → after → before"):
        circle.start()
    lost = hf.workflow("lost")
    lost.step(needs=["nohting"])(nothing)
    with pytest.raises(InvalidDefinition, match="needs 'nohting', which is not a step"):
        lost.start()
    with pytest.raises(InvalidDefinition, match="needs 'before', which is no step"):
        hf.workflow("other").step(needs=[before])(nothing)
    with pytest.raises(InvalidDefinition, match="has no steps"):
        hf.workflow("empty").start()


def test_a_function_that_cannot_be_called_by_name_is_refused(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    def reserved(key: str) -> str:
        return key

    def many(*numbers: int) -> int:
        return sum(numbers)

    def placed(number: int, /) -> int:
        return number

    def dreaming(parcel: str = needs(nothing)) -> str:
        return parcel

    refused: list[tuple[Callable[..., Any], str]] = [
        (reserved, "parameter 'key': the name is Holdfast's own"),
        (many, "parameter 'numbers': a step takes named parameters"),
        (placed, "parameter 'number': arguments are passed by name"),
    ]
    for function, reason in refused:
        with pytest.raises(InvalidDefinition, match=reason):
            flow.step(function)
        with pytest.raises(InvalidDefinition, match=reason):
            hf.task(function)
    with pytest.raises(InvalidDefinition, match="parameter 'parcel': needs"):
        hf.task(dreaming)


def test_a_step_that_has_no_name_is_refused(hf: Holdfast) -> None:
    with pytest.raises(InvalidDefinition, match="has no name of its own; put it into a function"):
        hf.workflow("flow").step(partial(nothing))


def test_a_coroutine_that_a_plain_function_gives_is_not_tried_again(hf: Holdfast) -> None:
    async def later() -> int:
        return 7

    @hf.task
    def wrapped() -> Any:  # noqa: ANN401 - what a decorator knows of what it wraps
        return later()

    with hf.worker(), pytest.raises(TaskFailed, match="'wrapped' gave a coroutine") as failed:
        wrapped.enqueue().result(timeout=20)
    assert hf.tasks.get(failed.value.identifier).attempt == 1


def test_an_object_whose_call_is_a_coroutine_can_be_a_task(hf: Holdfast) -> None:
    class Double:
        async def __call__(self, ctx: AsyncContext, number: int) -> int:
            return await ctx.effect("double", lambda: 2 * number)

    double = hf.task(name="double")(Double())
    with hf.worker():
        assert double.enqueue(7).result(timeout=20) == 14


def test_a_type_with_no_form_in_json_is_refused_before_anything_is_enqueued(hf: Holdfast) -> None:
    flow = hf.workflow("flow")

    @flow.step
    def takes(thing: Opaque) -> None: ...

    @flow.step
    def gives() -> Opaque:
        return Opaque()

    with pytest.raises(InvalidDefinition) as refused:
        flow.start(thing=Opaque())
    assert [each.partition(";")[0] for each in refused.value.mistakes] == [
        "takes: thing: Opaque has no form in JSON",
        "gives: return: Opaque has no form in JSON",
    ]
    with pytest.raises(InvalidDefinition, match="gives: return: Opaque"):
        hf.task(gives).enqueue()


def test_a_type_that_cannot_be_found_is_named(hf: Holdfast) -> None:
    class Local: ...

    @hf.task
    def takes(thing: Local) -> None: ...

    with pytest.raises(InvalidDefinition, match=r"'Local' is not defined.*at module level"):
        takes.enqueue(Local())


def test_unknown_options_are_named_with_the_nearest_known(hf: Holdfast, store_url: str) -> None:
    def job() -> None: ...

    made: Any = hf.task(job)
    program: Any = hf
    opened: Any = Holdfast
    refused: list[tuple[Callable[[], object], str]] = [
        (
            lambda: program.task(max_atempts=2),
            "max_atempts: is no option; did you mean max_attempts",
        ),
        (lambda: made.using(priorty=2), "priorty: is no option; did you mean priority"),
        (lambda: program.worker(agent="a"), "agent: is no option; did you mean agents"),
        (lambda: opened(store_url, leese=3), "leese: is no setting; did you mean lease"),
        (lambda: hf.task(timeout="soon"), "timeout: 'soon' is not a duration"),
        (lambda: hf.task(timeout=-5), "timeout: must be between 0 seconds and ten years"),
        (lambda: hf.task(timeout=0), "timeout: must be longer than 0 seconds"),
        (lambda: made.enqueue(key=""), "key: must be non-empty"),
        (lambda: hf.task(tags="gpu"), "tags: must be a list, not str"),
        (lambda: program.task(concurrency=3), "concurrency: 3 is neither a key nor"),
        (lambda: hf.worker(agents="planner"), "agents: must be a list, not str"),
        (lambda: hf.worker(concurrency=0), "concurrency: must be between 1 and"),
        (lambda: hf.worker(name="a b"), "name: 'a b' is not a name"),
    ]
    for call, reason in refused:
        with pytest.raises(InvalidInput, match=reason):
            call()


def test_a_url_that_names_no_store_is_refused_before_anything_is_opened() -> None:
    for url in ("mysql://host/db", "sqlite://:memory:", "shop.db"):
        with pytest.raises(InvalidInput, match=r"^url: "):
            Holdfast(url)


def test_a_closed_holdfast_says_so(store_url: str) -> None:
    hf = Holdfast(store_url)
    hf.close()
    hf.close()
    with pytest.raises(ShuttingDown, match="open another"):
        hf.doctor()


def test_a_worker_starts_only_once(hf: Holdfast) -> None:
    worker: Worker = hf.worker()
    with worker, pytest.raises(InvalidInput, match="make another"):
        worker.start()
    worker.stop()
    with pytest.raises(InvalidInput, match="make another"):
        worker.start()
