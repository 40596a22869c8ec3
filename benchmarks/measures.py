"""The measures of `python -m benchmarks`: their titles, and the function that takes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks.durable import connections
from benchmarks.scenarios import (
    BEST_OF_NOTHING,
    BEST_OF_SHORT,
    COMMITS_OF_A_PIPELINE,
    PROCESSES,
    SLOWER,
    SMALL_LOOP,
    Pair,
    Scenarios,
    Sizes,
)
from benchmarks.waiting import (
    MILLISECONDS,
    PAUSE,
    Figure,
    dispatch,
    dispatch_across,
    dispatch_over_tcp,
    idle,
    pipeline_at_a_distance,
    start_up,
)
from benchmarks.workspaces import open_and_close

SIZES = Sizes(
    tasks=20_000,
    pipelines=5_000,
    alone=40,
    finished=1_000_000,
    drained=100_000,
    claims=2_000,
    batch=400,
    loop=100_000,
    short=400,
    dispatches=300,
    idle=10,
    starts=10,
    durable=2_000,
    files=10_000,
)
ALONE = f"a pipeline alone, beside {COMMITS_OF_A_PIPELINE} bare commits"
AS_IT_COMES = "as it comes"
OF_NOTHING = f"beside the best of {', '.join(map(str, BEST_OF_NOTHING))}"
OF_SHORT = f"beside the best of {', '.join(map(str, BEST_OF_SHORT))}"
DURABLE = "durable functions of five effects, beside tasks of none"
SLOWLY = f"{ALONE}, each {SLOWER * MILLISECONDS:g} ms longer"
Rate = Callable[[Scenarios, str, int], Pair]
Rates = Mapping[str, Rate]
Wait = partial[list[Figure]]


def steady_rates(sizes: Sizes) -> Rates:
    """The rates that are taken in many pairs."""
    among = f"among {sizes.finished:,} finished tasks, beside none"
    return {
        "tasks made and drained, beside the same by hand": Scenarios.tasks,
        f"tasks made and drained, {AS_IT_COMES}, beside by hand": Scenarios.tasks_as_it_comes,
        "tasks made ten thousand in a call, beside the same by hand": Scenarios.bulk,
        "waiting tasks drained, beside the same by hand": Scenarios.waiting_tasks,
        f"waiting tasks drained, {AS_IT_COMES}, beside by hand": (
            Scenarios.waiting_tasks_as_it_comes
        ),
        "five-step pipelines, beside the same by hand": Scenarios.pipelines,
        f"five-step pipelines, {AS_IT_COMES}, beside by hand": Scenarios.pipelines_as_it_comes,
        f"waiting tasks drained, {AS_IT_COMES}, {OF_NOTHING}": Scenarios.tasks_beside_best,
        f"five-step pipelines, {AS_IT_COMES}, {OF_NOTHING}": Scenarios.pipelines_beside_best,
        f"steps that sleep for 5 ms, {AS_IT_COMES}, {OF_SHORT}": Scenarios.sleeps_beside_best,
        f"steps of 5 ms of Python, {AS_IT_COMES}, {OF_SHORT}": Scenarios.computations_beside_best,
        f"both in turns, {AS_IT_COMES}, {OF_SHORT}": Scenarios.both_beside_best,
        ALONE: Scenarios.alone,
        SLOWLY: Scenarios.alone_on_a_slow_disk,
        "a pipeline alone, beside the same by hand": Scenarios.alone_by_hand,
        f"{DURABLE}, 500 at once": Scenarios.durable_at_500,
        f"{DURABLE}, 100 at once": Scenarios.durable_at_100,
        f"{DURABLE}, 20 at once": Scenarios.durable_at_20,
        f"{DURABLE}, as it comes": Scenarios.durable_as_it_comes,
        "one effect after another in one function, beside as many bare commits": (
            Scenarios.effects_alone
        ),
        "an enqueue alone, with a key, beside a bare commit": Scenarios.enqueue_alone,
        "a claim alone, beside a bare commit": Scenarios.claim_alone,
        "a complete alone, beside a bare commit": Scenarios.complete_alone,
        f"{PROCESSES} processes drain tasks, beside one": Scenarios.shared_tasks,
        f"{PROCESSES} processes drain pipelines, beside one": Scenarios.shared_pipelines,
        f"tasks {among}": Scenarios.drained,
        f"tasks among {sizes.drained:,} that a worker finished, beside none": (
            Scenarios.drained_among_drained
        ),
        f"claims {among}": Scenarios.claims,
        f"completions {among}": Scenarios.completions,
    }


def loop_rates(sizes: Sizes) -> Rates:
    """The rates of long loops, which take too long for many pairs."""
    return {f"items of a loop of {sizes.loop:,}, beside one of {SMALL_LOOP:,}": Scenarios.loops}


def waits(sizes: Sizes) -> Sequence[Wait]:
    """How long a task waits for an idle worker, what that worker costs, and how commands start."""
    return [
        partial(dispatch, count=sizes.dispatches),
        partial(dispatch, count=sizes.dispatches, pause=PAUSE),
        partial(dispatch_across, count=sizes.dispatches),
        partial(dispatch_over_tcp, count=sizes.dispatches),
        partial(pipeline_at_a_distance, count=sizes.alone),
        partial(idle, seconds=sizes.idle),
        partial(start_up, starts=sizes.starts),
        partial(connections, count=sizes.durable, concurrency=500),
        partial(open_and_close, files=sizes.files),
    ]
