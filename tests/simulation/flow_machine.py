"""The state machine about runs that judge, skip, ask and begin again."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.simulation import flow_asks, flows, people_asks, worker_asks
from tests.simulation.kinds import Kind, asked_by
from tests.simulation.machine import Machine, has_rules

_OF_RUNS = ("steer", "hold", "block", "unblock", "edit", "cancel_run", "hold_run", "advance")


@has_rules(begin=2, complete=2, fail=2, settle=5, retry_flow=3)
class FlowMachine(Machine):
    """Runs with verifiers, conditions, approvals, questions and ways to fail."""

    kinds: ClassVar[dict[str, Kind]] = {
        **{name: asked_by(people_asks)[name] for name in _OF_RUNS},
        **asked_by(worker_asks),
        **asked_by(flow_asks),
    }
    result: ClassVar[object] = flow_asks.ACCEPT

    @initialize(name=st.sampled_from(sorted(flows.WORKFLOWS)), given=st.sampled_from(flows.INPUTS))
    def first(self, name: str, given: object) -> None:
        self.bench.perform([flow_asks.begin(self.bench, name=name, given=given)])

    @rule(verdict=flow_asks.RESULTS)
    def come_to_a_verdict(self, verdict: object) -> None:
        """All that others do is done, and then whoever judges says something."""
        for _ in range(2):
            self.do(("default",), flow_asks.ACCEPT)
        self.do(("reviewer",), verdict)

    @rule()
    def reject_again(self) -> None:
        self.come_to_a_verdict(flow_asks.REJECT)

    @rule(retryable=st.booleans(), worked=st.booleans())
    def come_to_grief(self, retryable: bool, worked: bool) -> None:  # noqa: FBT001 - drawn by name
        """One of those who are under way fails, where the others may have been good."""
        if worked:
            self.come_to_a_verdict(flow_asks.ACCEPT)
        self.take(("default", "reviewer"))
        said = {"pick": 0, "live": True, "error": "same", "retryable": retryable, "jitter": 0.0}
        self.bench.perform([self.kinds["fail"].asked_of(self.bench, said)])
