"""The state machines about runs that judge, skip, ask, begin again, and go through lists."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.simulation import flow_requests, user_requests, worker_requests
from tests.simulation.flow_requests import ACCEPT, FLOWS, INPUTS, LOOPS, NOTES, REJECT, RESULTS
from tests.simulation.request_kinds import Kind, asked_by
from tests.simulation.state_machine import Machine, has_rules

_OF_RUNS = ("steer", "hold", "block", "unblock", "edit", "cancel_run", "hold_run", "advance")


def _kinds_but(left_out: str) -> dict[str, Kind]:
    """What may be asked of such runs; their results are told otherwise than those of others."""
    people = {name: asked_by(user_requests)[name] for name in _OF_RUNS}
    found = people | asked_by(worker_requests) | asked_by(flow_requests)
    del found[left_out]
    return found


class Verified(Machine):
    """What any run with verifiers may come to; a subclass says of which workflows."""

    result: ClassVar[object] = ACCEPT
    workflows: ClassVar[st.SearchStrategy[str]]

    @initialize(data=st.data(), given=INPUTS)
    def first(self, data: st.DataObject, given: object) -> None:
        name = data.draw(self.workflows)
        self.bench.perform([flow_requests.begin(self.bench, name=name, given=given)])

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

    workflows: ClassVar[st.SearchStrategy[str]] = FLOWS
    kinds: ClassVar[dict[str, Kind]] = _kinds_but("begin_loop")

    @rule(note=NOTES)
    def reject_as_a_person(self, note: object) -> None:
        """All that others do is done, and then a person wants it otherwise."""
        self.bench.perform([flow_requests.begin(self.bench, name="sent_back", given=None)])
        self.do(("default",), ACCEPT)
        said = {"pick": -1, "what": "reject", "note": note}
        self.bench.perform([self.kinds["settle"].asked_of(self.bench, said)])


@has_rules(complete=2, settle=3, retry_flow=3, steer=2)
class LoopMachine(Verified):
    """Runs that go through lists, item by item or side by side, inside each other too."""

    workflows: ClassVar[st.SearchStrategy[str]] = LOOPS
    kinds: ClassVar[dict[str, Kind]] = _kinds_but("begin")

    @rule(verdict=RESULTS)
    def go_through(self, verdict: object) -> None:
        """Whatever is to be done for a list or two is done, and then somebody judges it."""
        for _ in range(4):
            self.do(("default", "reviewer"), ACCEPT)
        self.come_to_a_verdict(verdict)
