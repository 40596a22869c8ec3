"""Asking as a worker: claims, renewals and reports, with tokens that live or have long gone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from hypothesis import strategies as st

from holdfast.clock import MICROSECONDS
from holdfast.engine.core.operation import Sweep
from holdfast.model.moment import count_microseconds
from holdfast.model.task import Assignment, Renewal
from tests.simulation.model_comparison import Ask, Attempt, Bench, Phase
from tests.simulation.plain import claims, elapsed_time, reports
from tests.simulation.request_kinds import has_attempts, has_tasks, kind, later, picks, seconds

AGENTS = st.sampled_from([("default",), ("reviewer",), ("default", "reviewer")])
TAGS = st.sampled_from([(), ("gpu",), ("big", "gpu")])
WORKERS = st.sampled_from(["ann", "bob"])
LIVE = st.sampled_from([True, True, True, False])
RESULTS = st.sampled_from(["same", "other"])
# No `floats`: those are drawn by the code that is there, and so are others in another test run.
JITTER = st.sampled_from([0.0, 0.25, 0.5, 0.999])


def _worker(name: str, agents: tuple[str, ...], tags: tuple[str, ...], lease: int) -> claims.Worker:
    return claims.Worker(name=name, agents=agents, tags=tags, lease=lease * MICROSECONDS)


def _assigned(bench: Bench, reply: object, expected: list[claims.Assigned]) -> object:
    """Compare what was assigned in the model's terms, and keep the tokens for ever."""
    if not isinstance(reply, list):
        return expected
    given: list[claims.Assigned] = []
    for each in reply:
        assert isinstance(each, Assignment)
        about = (each.input, each.needs, each.item, each.feedback)
        given.append((each.task.id, each.attempt, count_microseconds(each.expires_at), *about))
        bench.attempts.append(Attempt(task=each.task.id, fence=each.attempt, token=each.token))
    assert given == expected, f"claimed {given}, expected {expected}"
    return reply


@kind(name=WORKERS, agents=AGENTS, tags=TAGS, lease=seconds, count=st.integers(1, 4))
def claim(  # noqa: PLR0913 - what a worker says of itself
    bench: Bench,
    *,
    name: str,
    agents: tuple[str, ...],
    tags: tuple[str, ...],
    lease: int,
    count: int,
) -> Ask:
    worker = _worker(name, agents, tags, lease)
    return Ask(
        name="claim",
        phase=Phase.CLAIM,
        submit=lambda: bench.engine.work.claim.submit(
            name, agents=agents, tags=tags, count=count, lease=lease
        ),
        expect=lambda reply: _assigned(bench, reply, claims.claim(bench.world, worker, count)),
    )


@kind(has_tasks, pick=picks, name=WORKERS, tags=TAGS, lease=seconds)
def claim_by_id(bench: Bench, *, pick: int, name: str, tags: tuple[str, ...], lease: int) -> Ask:
    task = bench.task(pick)
    worker = _worker(name, ("default", "reviewer"), tags, lease)
    return Ask(
        name="claim_by_id",
        phase=Phase.CLAIM_BY_ID,
        keys=frozenset({task}),
        submit=lambda: bench.engine.work.claim_by_id.submit(
            task, name, agents=worker.agents, tags=tags, lease=lease
        ),
        expect=lambda reply: _assigned(bench, reply, claims.claim_by_id(bench.world, worker, task)),
    )


@kind(has_attempts, pick=picks, live=LIVE, lease=seconds)
def renew(bench: Bench, *, pick: int, live: bool, lease: int) -> Ask:
    who = bench.attempt(pick, live=live)
    return Ask(
        name="renew",
        phase=Phase.RENEW,
        keys=frozenset({who.task}),
        submit=lambda: bench.engine.work.renew.submit(
            [Renewal(task_id=who.task, token=who.token)], lease=lease
        ),
        expect=lambda _: [reports.renew(bench.world, who.task, who.fence, lease * MICROSECONDS)],
    )


@kind(has_attempts, pick=picks, live=LIVE, output=RESULTS)
def complete(bench: Bench, *, pick: int, live: bool, output: str) -> Ask:
    who = bench.attempt(pick, live=live)
    return Ask(
        name="complete",
        phase=Phase.COMPLETE,
        keys=frozenset({who.task}),
        submit=lambda: bench.engine.work.complete.submit(who.task, who.token, output),
        expect=lambda _: reports.complete(bench.world, who.task, who.fence, output),
    )


@kind(
    has_attempts,
    pick=picks,
    live=LIVE,
    error=RESULTS,
    retryable=st.sampled_from([True, True, False]),
    jitter=JITTER,
)
def fail(  # noqa: PLR0913 - what a worker says of a failure
    bench: Bench, *, pick: int, live: bool, error: str, retryable: bool, jitter: float
) -> Ask:
    who = bench.attempt(pick, live=live)
    task = bench.world.tasks.get(who.task)
    goes_back = task is not None and task.on_failure.action == "goto"

    def submit() -> Future[Any]:
        bench.dice.jitter = jitter
        return bench.engine.work.fail.submit(who.task, who.token, error, retryable=retryable)

    return Ask(
        name="fail",
        phase=Phase.GO_BACK if goes_back else Phase.FAIL,
        keys=frozenset({who.task}),
        submit=submit,
        expect=lambda _: reports.fail(
            bench.world, who.task, who.fence, error, retryable=retryable, jitter=jitter
        ),
    )


@kind(has_attempts, pick=picks, live=LIVE, after=st.none() | seconds)
def release(bench: Bench, *, pick: int, live: bool, after: int | None) -> Ask:
    who = bench.attempt(pick, live=live)
    until = later(bench, after)
    return Ask(
        name="release",
        phase=Phase.RELEASE,
        keys=frozenset({who.task}),
        submit=lambda: bench.engine.work.release.submit(who.task, who.token, until=until),
        expect=lambda _: reports.release(bench.world, who.task, who.fence, until),
    )


def _expired(bench: Bench) -> Sequence[str]:
    bench.world.now = bench.clock.now()
    return [task.id for task in reports.expired(bench.world)]


def _time_matters(bench: Bench) -> bool:
    held = any(task.held_until for task in bench.world.tasks.values())
    return held or any(run.slot for run in bench.world.runs.values())


@kind(_expired)
def recover(bench: Bench) -> Ask:
    expired = _expired(bench)
    return Ask(
        name="recover",
        phase=Phase.LOSE,
        keys=frozenset(expired),
        submit=bench.engine.work.recover.submit,
        expect=lambda _: reports.recover(bench.world),
    )


@kind(_time_matters)
def sweep(bench: Bench) -> Ask:
    return Ask(
        name="sweep",
        phase=Phase.SWEEP,
        submit=lambda: bench.engine.commits.submit(Sweep()),
        expect=lambda _: elapsed_time.sweep(bench.world),
    )
