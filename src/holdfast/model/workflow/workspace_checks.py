"""Workspace checks: flaws of the workspace of a workflow, and of the steps that use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations, Workspace
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.landing import find_roots
from holdfast.model.workflow.step import Step, all_steps

_ADVICE = "give the workflow one: workspace: {git: .}"


def find_bad_workspaces(
    steps: tuple[Step, ...], declared: WorkflowDeclarations | None
) -> Iterator[Flaw]:
    workspace = None if declared is None else declared.workspace
    if workspace is not None:
        yield from _bad_copies(workspace)
    for step in all_steps(steps):
        if workspace is not None and step.parallel > 1:
            yield from _bad_beginnings(step)
        if step.work is None:
            continue
        if workspace is not None:
            yield from _bad_work(step, step.work)
        elif step.work.merge is not None:
            yield _flaw(step, "merge", "merges, and its workflow has no workspace", _ADVICE)
        elif step.work.access is not None:
            reason = "works in a workspace, and its workflow has none"
            yield _flaw(step, "workspace", reason, _ADVICE)


def _bad_beginnings(loop: Step) -> Iterator[Flaw]:
    """Flaws of items that begin with several steps: a conflict sends an item back to one."""
    named = {step.id: step for step in loop.steps}
    for name in find_roots(loop.steps)[1:]:
        reason = "begins beside another; in a workspace the items of this loop begin with one step"
        first = find_roots(loop.steps)[0]
        yield _flaw(named[name], "needs", reason, f"let it need {first!r}")


def _bad_copies(workspace: Workspace) -> Iterator[Flaw]:
    for number, glob in enumerate(workspace.copy):
        if leads_outside(glob):
            yield Flaw(
                message=f"workspace: copy: {glob!r} leads out of the repository",
                field=f"workspace.copy.{number}",
                advice="name files below the folder of the repository, as in copy: [.env]",
            )


def _bad_work(step: Step, work: StepWork) -> Iterator[Flaw]:
    if step.verifies is not None and work.access == "edit":
        reason = "judges, so nothing it leaves is kept"
        yield _flaw(step, "workspace", reason, "let another step edit; write workspace: read")
    if step.verifies is not None and work.merge is not None:
        yield _flaw(step, "merge", "merges, and cannot judge a step as well")
    if work.access is not None and work.cwd is not None and leads_outside(work.cwd):
        reason = f"works in a workspace, and {work.cwd!r} leads out of it"
        advice = "name a folder of the repository, or write workspace: none"
        yield _flaw(step, "cwd", reason, advice)


def leads_outside(path: str) -> bool:
    """Whether a path as it is written is absolute, or has a part `..`."""
    return PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts


def _flaw(step: Step, field: str, reason: str, advice: str = "") -> Flaw:
    return Flaw(message=f"step {step.id!r} {reason}", step=step, field=field, advice=advice)
