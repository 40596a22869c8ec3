"""Workflows with verifiers, conditions, approvals and ways to fail, for the simulation."""

from __future__ import annotations

from holdfast.model.graph import OnFailure, Step, Workflow
from holdfast.model.reference import Reference
from tests.simulation.new_work import ONCE, ONE_AT_A_TIME, SHORT

ASK, SKIP = OnFailure(action="ask"), OnFailure(action="skip")
BACK = OnFailure(action="goto", step="make", max_rounds=2)


def verified(subject: OnFailure, verifier: OnFailure) -> tuple[Step, ...]:
    """Work, something between, its verifier, and what needs the work."""
    return (
        Step(id="make", retry=ONCE, on_failure=subject, concurrency=ONE_AT_A_TIME),
        Step(id="lint", needs=("make",), retry=SHORT),
        Step(
            id="check",
            needs=("lint",),
            verifies="make",
            max_rounds=2,
            agent="reviewer",
            retry=ONCE,
            on_failure=verifier,
        ),
        Step(id="pack", needs=("make",), retry=ONCE),
    )


FAIL = OnFailure()
FLOWS = {
    "verified": verified(FAIL, FAIL),
    "asking": verified(ASK, ASK),
    "skipping": verified(SKIP, SKIP),
    "returning": (
        *verified(FAIL, FAIL),
        Step(id="test", needs=("make",), retry=ONCE, on_failure=BACK),
    ),
    "gated": (
        Step(id="plan", retry=ONCE, on_failure=SKIP),
        Step(id="left", needs=("plan",), when=Reference.parse("when", "steps.plan"), retry=SHORT),
        Step(id="right", when=Reference.parse("when", "input.wanted"), on_failure=ASK, retry=ONCE),
        Step(id="gate", approval="Go on?", needs=("left", "right")),
        Step(id="last", needs=("gate",)),
    ),
}
WORKFLOWS = {name: Workflow.define(name, steps) for name, steps in FLOWS.items()}
STEPS = sorted({step.id for steps in FLOWS.values() for step in steps})
INPUTS = ({"wanted": True}, {"wanted": 0})
