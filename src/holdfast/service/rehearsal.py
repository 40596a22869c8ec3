"""A rehearsal: a workflow file carried out by stubs that give what each step declares."""

from __future__ import annotations

from typing import Any

from holdfast.engine.engine import Engine
from holdfast.model.status import Kind
from holdfast.model.task import Assignment
from holdfast.model.verdict import ACCEPT
from holdfast.model.workflow.graph import Step, Workflow
from holdfast.model.workflow.step import every
from holdfast.service.queries import Queries
from holdfast.service.refused import accepted
from holdfast.service.samples import sample

STUB = "rehearsal"


class Rehearsal:
    """Plays every agent and every person of a run until nothing of it can move."""

    def __init__(self, engine: Engine, queries: Queries, workflow: Workflow) -> None:
        self._engine = engine
        self._queries = queries
        self._steps = {
            (flow.name, step.id): step for flow in workflow.family for step in every(flow.steps)
        }
        work = [step for step in self._steps.values() if step.kind is Kind.WORK]
        self._agents = sorted({step.agent for step in work})
        self._tags = sorted({tag for step in work for tag in step.tags})

    def play(self) -> None:
        while self._work() or self._approve():
            pass

    def _work(self) -> bool:
        claimed = (
            self._engine.work.claim(STUB, agents=self._agents, tags=self._tags)
            if self._agents
            else []
        )
        for each in claimed:
            output = give(self._steps[str(each.workflow), str(each.step)], each)
            accepted(each.task.id, self._engine.work.complete(each.task.id, each.token, output))
        return bool(claimed)

    def _approve(self) -> bool:
        asked = self._queries.for_people()
        for task in asked:
            accepted(task["id"], self._engine.tasks.approve(task["id"], actor=STUB))
        return bool(asked)


def give(step: Step, assignment: Assignment) -> Any:  # noqa: ANN401 - JSON is any value
    """What a stub gives for a step: of a verifier a yes, of others what they declare."""
    declared = None if assignment.work is None else assignment.work.outputs
    given = None if declared is None else sample(declared)
    if step.verifies is None:
        return given
    return (given if isinstance(given, dict) else {}) | {"verdict": ACCEPT}
