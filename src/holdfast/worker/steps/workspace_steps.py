"""Workspace steps: the way of commands and merges into the workspaces of this worker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.task import Assignment
from holdfast.model.workflow.declarations import StepWork
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.execution import StepFailed
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.steps.orphans import end_orphans
from holdfast.worker.steps.permission import PermittedWork
from holdfast.worker.steps.step_resources import StepResources, give_back_on_store_error
from holdfast.worker.workspaces.attempt_workspace import (
    AttemptLine,
    AttemptWorkspace,
    WorkspacePorts,
    find_line,
    open_workspace,
)
from holdfast.worker.workspaces.merge_step import MergeStep
from holdfast.worker.workspaces.upkeep import tend_workspaces, tend_workspaces_if_due

log = logging.getLogger("holdfast.worker")


def make_workspace_ports(resources: StepResources) -> WorkspacePorts:
    return WorkspacePorts(
        store=resources.store,
        state=resources.state,
        is_stopped=partial(is_stopped, resources.state),
    )


def begin_workspaces(resources: StepResources) -> None:
    """Finish, when a worker starts, what killed ones left, and remove what is kept no longer."""
    try:
        tend_workspaces(make_workspace_ports(resources))
    except (HoldfastError, OSError) as error:
        log.warning("the workspaces of this machine are not tended: %s", error)


def is_stopped(state: StateDirectory, task: str, attempt: int) -> bool:
    """Whether no process of an attempt is left; those of vanished workers are ended first."""
    with suppress(InvalidInput):
        record = state.processes / f"{task}.{attempt}.json"
        if record.path.exists():
            end_orphans(state.processes)
        return not record.path.exists()
    return False


def _find_line(
    resources: StepResources,
    assignment: Assignment,
    context: AttemptContext,
    permitted: PermittedWork,
) -> AttemptLine:
    if permitted.workspace is None:
        raise StepFailed("its workflow has no workspace", retryable=False)
    ports = make_workspace_ports(resources)
    with give_back_on_store_error():
        return find_line(ports, assignment, context, permitted.workspace)


@contextmanager
def open_step_workspace(
    resources: StepResources, assignment: Assignment, context: AttemptContext, work: StepWork
) -> Iterator[AttemptWorkspace | None]:
    """The workspace of a command, None for one that needs none."""
    permitted = resources.permit(work)
    if work.access is None or permitted.workspace is None:
        yield None
        return
    tend_workspaces_if_due(make_workspace_ports(resources))
    line = _find_line(resources, assignment, context, permitted)
    with open_workspace(line, permitted.workspace, work.access) as workspace:
        yield workspace


class MergingStep:
    """One attempt of a step that merges a line of commits."""

    def __init__(
        self,
        resources: StepResources,
        assignment: Assignment,
        context: AttemptContext,
        work: StepWork,
    ) -> None:
        self._resources = resources
        self._assignment = assignment
        self._context = context
        self._work = work

    def run(self) -> dict[str, Any]:
        permitted = self._resources.permit(self._work)
        line = _find_line(self._resources, self._assignment, self._context, permitted)
        return MergeStep(line, permitted.merge, landing=self._work.landing).run()
