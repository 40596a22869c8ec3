"""Workflows: keep a definition before anything is started from it."""

from __future__ import annotations

from concurrent.futures import Future

from holdfast.engine import validation
from holdfast.engine.desk import Desk
from holdfast.engine.edge import operation
from holdfast.engine.workflow_operations import AddWorkflow
from holdfast.model.workflow.graph import Workflow


class Workflows:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @operation
    def add(self, workflow: Workflow) -> Future[bool]:
        """Keep one version of a workflow; whether it was not known before."""
        chosen = validation.instance("workflow", workflow, Workflow)
        return self._desk.submit(
            AddWorkflow(
                workflow=chosen.name,
                workflow_version=chosen.version,
                definition=chosen.definition,
                called=chosen.definitions,
            )
        )
