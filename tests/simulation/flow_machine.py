"""The state machines about runs that judge, skip, ask, begin again, and go through lists."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.simulation import flow_asks, people_asks, worker_asks
from tests.simulation.flow_asks import ACCEPT, FLOWS, INPUTS, LOOPS, REJECT, RESULTS
from tests.simulation.kinds import Kind, asked_by
from tests.simulation.machine import Machine, has_rules

_OF_RUNS = ("steer", "hold", "block", "unblock", "edit", "cancel_run", "hold_run", "advance")
_KINDS = {
    **{name: asked_by(people_asks)[name] for name in _OF_RUNS},
    **asked_by(worker_asks),
    **asked_by(flow_asks),
}


class Verified(Machine):
    """What any run with verifiers may come to."""

    result: ClassVar[object] = ACCEPT

    @rule(verdict=RESULTS)
    def come_to_a_verdict(self, verdict: object) -> None:
        """All that others do is done, and then whoever judges says something."""
        for _ in range(2):
            self.do(("default",), ACCEPT)
        self.do(("reviewer",), verdict)

    @rule()
    def reject_again(self) -> None:
        self.come_to_a_verdict(REJECT)

    @rule(retryable=st.booleans(), worked=st.booleans())
    def come_to_grief(self, retryable: bool, worked: bool) -> None:  # noqa: FBT001 - drawn by name
        """One of those who are under way fails, where the others may have been good."""
        if worked:
            self.come_to_a_verdict(ACCEPT)
        self.take(("default", "reviewer"))
        said = {"pick": 0, "live": True, "error": "same", "retryable": retryable, "jitter": 0.0}
        self.bench.perform([self.kinds["fail"].asked_of(self.bench, said)])


@has_rules(begin=2, complete=2, fail=2, settle=5, retry_flow=3)
class FlowMachine(Verified):
    """Runs with verifiers, conditions, approvals, questions and ways to fail."""

    kinds: ClassVar[dict[str, Kind]] = {
        name: each for name, each in _KINDS.items() if name != "begin_loop"
    }

    @initialize(name=FLOWS, given=INPUTS)
    def first(self, name: str, given: object) -> None:
        self.bench.perform([flow_asks.begin(self.bench, name=name, given=given)])


@has_rules(complete=2, settle=3, retry_flow=3, steer=2)
class LoopMachine(Verified):
    """Runs that go through lists, item by item or side by side, inside each other too."""

    kinds: ClassVar[dict[str, Kind]] = {
        name: each for name, each in _KINDS.items() if name != "begin"
    }

    @initialize(name=LOOPS, given=INPUTS)
    def first(self, name: str, given: object) -> None:
        self.bench.perform([flow_asks.begin(self.bench, name=name, given=given)])

    @rule(verdict=RESULTS)
    def go_through(self, verdict: object) -> None:
        """Whatever is to be done for a list or two is done, and then somebody judges it."""
        for _ in range(4):
            self.do(("default", "reviewer"), ACCEPT)
        self.come_to_a_verdict(verdict)
