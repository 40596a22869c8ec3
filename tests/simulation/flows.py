"""Workflows with verifiers, conditions, approvals and ways to fail, for the simulation."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model.workflow.graph import OnFailure, Step, Workflow
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import all_steps
from tests.simulation.new_work_requests import ONCE, ONE_AT_A_TIME, SHORT
from tests.simulation.workflow_requests import ASK, SKIP, STORIES, loop

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


SIDES = (Step(id="left", retry=ONCE), Step(id="right", retry=SHORT, priority=1))
AGAIN = OnFailure(action="goto", step="build", max_rounds=1)
FAIL = OnFailure()
FLOWS: dict[str, tuple[Step, ...]] = {
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
    "sent_back": (
        Step(id="make", retry=ONCE),
        Step(id="side", retry=SHORT),
        Step(id="gate", approval="Go on?", needs=("make",), on_failure=BACK),
        Step(id="last", needs=("gate", "side"), retry=ONCE),
    ),
}
LOOPS = {
    "items": (
        loop("build", "input.list", *verified(FAIL, FAIL), parallel=2),
        Step(id="last", needs=("build",), retry=ONCE),
    ),
    "asked": (loop("build", "input.list", *verified(SKIP, ASK)[:-1], retry=ONCE),),
    "planned": (
        Step(id="plan", retry=ONCE),
        loop("build", "steps.plan.list", *SIDES, needs=("plan",), parallel=2),
        Step(id="check", verifies="build", agent="reviewer", max_rounds=2, retry=ONCE),
        Step(id="make", needs=("build",), retry=ONCE),
        Step(id="test", needs=("make",), retry=ONCE, on_failure=AGAIN),
    ),
    "nested": (
        replace(STORIES["nested"][0], when=Reference.parse("when", "input.wanted")),
        Step(id="last", needs=("build",)),
    ),
}
WORKFLOWS = {name: Workflow.define(name, steps) for name, steps in (FLOWS | LOOPS).items()}
STEPS = sorted({step.id for flow in WORKFLOWS.values() for step in all_steps(flow.steps)})
PLACES = ["build.1.make", "build.1.check", "build.1.left", "build.2", "build.2.make"]
INPUTS = (
    {"wanted": True, "list": ["x", "y", "z"], "nested": [["x", "y"], []]},
    {"wanted": 0, "list": [], "nested": []},
    {"list": ["x"], "nested": [["x"]]},
    {"wanted": 1, "list": ["x"], "nested": [["x"], ["y", "z"], ["x"]]},
)
