"""Asking as a person or a program does: steer one task or one run, or take a named lease."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from holdfast.clock import MICROSECONDS
from holdfast.model.status import Hold
from holdfast.model.task import NamedLease
from tests.simulation.model_comparison import Ask, Attempt, Bench, Phase
from tests.simulation.plain import control, elapsed_time, reopen
from tests.simulation.plain.world import Answer
from tests.simulation.request_kinds import has_runs, has_tasks, kind, later, picks, seconds

ALONE = {
    "enqueue": control.enqueue,
    "run_now": control.run_now,
    "cancel": control.cancel,
    "reset": control.reset,
    "retry": reopen.retry,
    "reopen": reopen.reopen,
    "delete": control.delete,
}
STEPS = st.sampled_from(["plan", "work", "review", "top", "left", "bottom", "one", "two"])
HOLDS = st.sampled_from(["paused", "question", "limit"])


@kind(has_tasks, pick=picks, what=st.sampled_from(sorted(ALONE)))
def steer(bench: Bench, *, pick: int, what: str) -> Ask:
    task = bench.task(pick)
    return Ask(
        name=what,
        phase=Phase.STEER,
        keys=frozenset({task}),
        submit=lambda: getattr(bench.engine.tasks, what).submit(task),
        expect=lambda _: ALONE[what](bench.world, task),
    )


@kind(has_tasks, pick=picks, reason=HOLDS, on=st.booleans(), after=st.none() | seconds)
def hold(bench: Bench, *, pick: int, reason: str, on: bool, after: int | None) -> Ask:
    task, chosen = bench.task(pick), Hold[reason.upper()]
    until = later(bench, after) if reason == "limit" else None
    tasks = bench.engine.tasks
    return Ask(
        name="hold" if on else "unhold",
        phase=Phase.STEER,
        keys=frozenset({task}),
        submit=lambda: (
            tasks.hold.submit(task, reason, until=until)
            if on
            else tasks.unhold.submit(task, reason)
        ),
        expect=lambda _: (
            control.hold(bench.world, task, chosen, until)
            if on
            else control.unhold(bench.world, task, chosen)
        ),
    )


@kind(has_tasks, pick=picks, others=st.lists(picks, min_size=1, max_size=2))
def block(bench: Bench, *, pick: int, others: list[int]) -> Ask:
    task = bench.task(pick)
    on = [bench.beside(task, other) for other in others]
    return Ask(
        name="block",
        phase=Phase.STEER,
        keys=frozenset({task}),
        submit=lambda: bench.engine.tasks.block.submit(task, on),
        expect=lambda _: _or_error(control.block(bench.world, task, on)),
    )


@kind(has_tasks, pick=picks, other=st.none() | picks)
def unblock(bench: Bench, *, pick: int, other: int | None) -> Ask:
    task = bench.task(pick)
    on = None if other is None else [bench.beside(task, other)]
    return Ask(
        name="unblock",
        phase=Phase.STEER,
        keys=frozenset({task}),
        submit=lambda: bench.engine.tasks.unblock.submit(task, on),
        expect=lambda _: _or_error(control.unblock(bench.world, task, on)),
    )


EDITS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.just("edited"),
        "priority": st.integers(0, 3),
        "position": st.integers(0, 3),
        "agent": st.sampled_from(["default", "reviewer"]),
        "tags": st.sampled_from([(), ("gpu",)]),
        "max_attempts": st.integers(1, 3),
        "max_lost": st.integers(1, 3),
    },
)


@kind(has_tasks, pick=picks, changes=EDITS, moved=st.none() | st.just(0) | seconds)
def edit(bench: Bench, *, pick: int, changes: dict[str, Any], moved: int | None) -> Ask:
    task = bench.task(pick)
    if moved is not None:
        changes = changes | {"scheduled_for": later(bench, moved or None)}
    return Ask(
        name="edit",
        phase=Phase.STEER,
        keys=frozenset({task}),
        submit=lambda: bench.engine.tasks.edit.submit(task, changes),
        expect=lambda _: control.edit(bench.world, task, changes, fresh=True),
    )


@kind(has_runs, pick=picks)
def cancel_run(bench: Bench, *, pick: int) -> Ask:
    run = bench.run(pick)
    return Ask(
        name="cancel_run",
        phase=Phase.STEER_RUN,
        keys=frozenset({run}),
        submit=lambda: bench.engine.runs.cancel.submit(run),
        expect=lambda _: control.cancel_run(bench.world, run),
    )


@kind(has_runs, pick=picks, on=st.booleans(), reason=st.sampled_from(["paused", "budget"]))
def hold_run(bench: Bench, *, pick: int, on: bool, reason: str) -> Ask:
    run, chosen = bench.run(pick), Hold[reason.upper()]
    runs = bench.engine.runs
    return Ask(
        name="hold_run" if on else "unhold_run",
        phase=Phase.STEER_RUN,
        keys=frozenset({run}),
        submit=lambda: (runs.hold if on else runs.unhold).submit(run, reason),
        expect=lambda _: control.hold_run(bench.world, run, chosen, on=on),
    )


@kind(has_runs, pick=picks, step=st.none() | STEPS)
def retry_run(bench: Bench, *, pick: int, step: str | None) -> Ask:
    return retry_from(bench, bench.run(pick), step)


def retry_from(bench: Bench, run: str, step: str | None) -> Ask:
    return Ask(
        name="retry_run",
        phase=Phase.STEER_RUN,
        keys=frozenset({run}),
        submit=lambda: bench.engine.runs.retry.submit(run, step=step),
        expect=lambda _: (
            reopen.retry_run(bench.world, run)
            if step is None
            else reopen.retry_from(bench.world, run, step)
        ),
    )


@kind(has_runs, pick=picks)
def advance(bench: Bench, *, pick: int) -> Ask:
    """Advance finds nothing to do: whatever followed has followed already."""
    run = bench.run(pick)
    return Ask(
        name="advance",
        phase=Phase.ADVANCE,
        keys=frozenset({run}),
        submit=lambda: bench.engine.runs.advance.submit(run),
        expect=lambda _: (False, False),
    )


@kind(key=st.sampled_from(["door", "gate"]), ttl=seconds)
def acquire_lease(bench: Bench, *, key: str, ttl: int) -> Ask:
    def expect(reply: object) -> object:
        fence = elapsed_time.acquire(bench.world, key, "ann", ttl * MICROSECONDS)
        if isinstance(reply, NamedLease) and reply.fence == fence:
            bench.leases.append(Attempt(task=key, fence=fence, token=reply.token))
            return reply
        return fence

    return Ask(
        name="acquire_lease",
        phase=Phase.ACQUIRE_LEASE,
        submit=lambda: bench.engine.leases.acquire.submit(key, "ann", ttl=ttl),
        expect=expect,
    )


@kind(lambda bench: bench.leases, pick=picks, ttl=st.none() | seconds)
def keep_lease(bench: Bench, *, pick: int, ttl: int | None) -> Ask:
    """Renew a named lease, or give it back when no time is asked for."""
    forged = Attempt(task="door", fence=0, token="1." + "0" * 32)
    held = bench.leases[-1 - pick % len(bench.leases)] if bench.leases else forged
    leases, wanted = bench.engine.leases, None if ttl is None else ttl * MICROSECONDS
    return Ask(
        name="release_lease" if ttl is None else "renew_lease",
        phase=Phase.RELEASE_LEASE if ttl is None else Phase.RENEW_LEASE,
        submit=lambda: (
            leases.release.submit(held.task, held.token)
            if ttl is None
            else leases.renew.submit(held.task, held.token, ttl=ttl)
        ),
        expect=lambda _: elapsed_time.keep(bench.world, held.task, held.fence, wanted),
    )


def _or_error(answer: Answer) -> object:
    return answer[0] if answer[0] == "InvalidInput" else answer
