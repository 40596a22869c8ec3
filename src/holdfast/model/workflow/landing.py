"""Landings: the hidden last step of an item with a line of its own, which merges that line."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.step import OnFailure, Step, all_steps
from holdfast.settings import AGENT_TIMEOUT

# No step of a file has such a name, because names there have no colon.
SUFFIX = ":land"
TITLE = "merges the commits of its item"
MAX_ROUNDS = 3


def add_landing(loop: Step) -> Step:
    """The loop with a landing as the last step of its items, where they have lines of their own.

    A conflict sends the item back to its first step, with the conflict as feedback.
    """
    edits = any(
        step.work is not None and step.work.access == "edit" for step in all_steps(loop.steps)
    )
    roots = find_roots(loop.steps)
    if loop.parallel == 1 or not edits or len(roots) != 1:
        return loop
    needed = {need for step in loop.steps for need in (*step.needs, step.verifies)}
    landing = Step(
        id=f"{loop.id}{SUFFIX}",
        title=TITLE,
        needs=tuple(step.id for step in loop.steps if step.id not in needed),
        on_failure=OnFailure(action="goto", step=roots[0], max_rounds=MAX_ROUNDS),
        timeout=AGENT_TIMEOUT,
        work=StepWork(landing=True),
    )
    return replace(loop, steps=(*loop.steps, landing))


def find_roots(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """The steps of a body that need no other one."""
    return tuple(step.id for step in steps if not step.needs and step.verifies is None)
