"""Workflow versions: a definition is kept before anything is started from it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from holdfast.engine.core.context import EngineContext
from holdfast.engine.core.operation import Keys, Operation
from holdfast.engine.core.sync_async import operation
from holdfast.engine.core.unit_of_work import UnitOfWork
from holdfast.engine.input import validation
from holdfast.model.workflow.graph import Workflow


@dataclass(frozen=True, kw_only=True, slots=True)
class AddWorkflow(Operation):
    workflow: str
    workflow_version: str
    definition: str
    called: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def keys(self) -> Keys:
        return (f"workflow:{self.workflow}",)

    @property
    def size(self) -> int:
        return len(self.definition) + sum(len(each[2]) for each in self.called)


def add_workflows(work: UnitOfWork, operations: Sequence[AddWorkflow]) -> list[bool]:
    """Keep definitions, each as the current one of its name; of each whether it is new."""
    rows = {(each.workflow, each.workflow_version, each.definition) for each in operations}
    rows |= {called for each in operations for called in each.called}
    added = work.tx.write("add_workflows", rows=sorted(rows))
    new = {(row["name"], row["version"]) for row in added}
    chosen = {(each.workflow, each.workflow_version) for each in operations}
    work.tx.run("choose_workflows", rows=sorted(chosen))
    return [(each.workflow, each.workflow_version) in new for each in operations]


class Workflows:
    def __init__(self, context: EngineContext) -> None:
        self._context = context

    @operation
    def add(self, workflow: Workflow) -> Future[bool]:
        """Keep one version of a workflow; whether it is new."""
        chosen = validation.instance("workflow", workflow, Workflow)
        return self._context.submit(
            AddWorkflow(
                workflow=chosen.name,
                workflow_version=chosen.version,
                definition=chosen.definition,
                called=chosen.definitions,
            )
        )
