"""Asking for runs of verified, conditional and approved work, and settling what they ask back."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.model.run import NewRun
from holdfast.model.status import Hold
from tests.simulation import flows
from tests.simulation.model_comparison import Ask, Bench, Phase
from tests.simulation.new_work_requests import start_run
from tests.simulation.plain import approvals, reports
from tests.simulation.plain.world import WAITING
from tests.simulation.request_kinds import has_attempts, has_runs, kind, picks
from tests.simulation.user_requests import retry_from
from tests.simulation.worker_requests import LIVE

ACCEPT: dict[str, object] = {"verdict": "accept", "list": ["a", "b"]}
REJECT: dict[str, object] = {"verdict": "reject", "feedback": "no", "list": []}
SECOND: dict[str, object] = {**REJECT, "items": [1]}
SILENT: dict[str, object] = {**REJECT, "feedback": None}
RESULTS = st.sampled_from([ACCEPT, ACCEPT, REJECT, REJECT, SECOND, SILENT, "no verdict", []])
SETTLED = {"approve": approvals.approve, "reject": approvals.reject, "answer": approvals.answer}
NOTES = st.sampled_from(["fine", "not fine", None])


FLOWS, LOOPS = st.sampled_from(sorted(flows.FLOWS)), st.sampled_from(sorted(flows.LOOPS))
INPUTS = st.sampled_from(flows.INPUTS)
AT = [*flows.STEPS, *flows.PLACES, *[None] * len(flows.STEPS)]


@kind(name=FLOWS, given=INPUTS)
def begin(bench: Bench, *, name: str, given: object) -> Ask:
    return start_run(bench, NewRun(workflow=flows.WORKFLOWS[name], input=given))


@kind(name=LOOPS, given=INPUTS)
def begin_loop(bench: Bench, *, name: str, given: object) -> Ask:
    return begin(bench, name=name, given=given)


@kind(has_attempts, pick=picks, live=LIVE, output=RESULTS)
def complete(bench: Bench, *, pick: int, live: bool, output: object) -> Ask:
    who = bench.attempt(pick, live=live)
    task = bench.world.tasks.get(who.task)
    judges = task is not None and task.verifies is not None and output != ACCEPT
    return Ask(
        name="complete",
        phase=Phase.JUDGE if judges else Phase.COMPLETE,
        keys=frozenset({who.task}),
        submit=lambda: bench.engine.work.complete.submit(who.task, who.token, output),
        expect=lambda _: reports.complete(bench.world, who.task, who.fence, output),
    )


@kind(has_attempts, pick=picks, live=LIVE)
def ask(bench: Bench, *, pick: int, live: bool) -> Ask:
    who = bench.attempt(pick, live=live)
    return Ask(
        name="ask",
        phase=Phase.ASK,
        keys=frozenset({who.task}),
        submit=lambda: bench.engine.work.ask.submit(who.task, who.token, "which?"),
        expect=lambda _: reports.ask(bench.world, who.task, who.fence, "which?"),
    )


def _somebody_asks(bench: Bench) -> bool:
    open_ones = [each for each in bench.world.tasks.values() if each.status in WAITING]
    return any(each.holds or each.kind == "approval" for each in open_ones)


@kind(_somebody_asks, pick=picks, what=st.sampled_from([*SETTLED, "approve"]), note=NOTES)
def settle(bench: Bench, *, pick: int, what: str, note: object) -> Ask:
    asked = Hold.QUESTION if what == "answer" else Hold.APPROVAL
    task = bench.asking(asked, pick)
    return Ask(
        name=what,
        phase=Phase.STEER,
        keys=frozenset({task}),
        submit=lambda: getattr(bench.engine.tasks, what).submit(task, note),
        expect=lambda _: SETTLED[what](bench.world, task, note),
    )


@kind(has_runs, pick=picks, step=st.sampled_from(AT))
def retry_flow(bench: Bench, *, pick: int, step: str | None) -> Ask:
    return retry_from(bench, bench.run(pick), step)
