"""Run input: the input of a run with its defaults, checked, and the concurrency key of the run."""

from __future__ import annotations

from collections.abc import Callable
from os.path import normpath
from pathlib import PurePath
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.json_schema import check_input, map_paths
from holdfast.model.workflow.declarations import WorkflowDeclarations
from holdfast.model.workflow.graph import Concurrency, Workflow
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step_template import render_key, render_workspace, try_rendering
from holdfast.model.workflow.template import Template, Variables, parse_template


def fill_input(workflow: Workflow, given: object) -> Any:  # noqa: ANN401 - JSON is any value
    """The input with its defaults; a field that does not fit or is missing is refused."""
    declared = workflow.declared
    filled = given if declared is None else _fill_declared(declared, given)
    for step, reference in workflow.named_inputs:
        try:
            reference.resolve({"input": filled})
        except Unresolved as error:
            raise InvalidInput(str(reference), f"step {step!r} uses it, and {error}") from None
    return filled


def check_texts(workflow: Workflow, make_variables: Callable[[], Variables]) -> None:
    """Refuse an input from which the texts of the workspace or of a step cannot be rendered."""
    try:
        told = {**make_variables(), "feedback": "", "attempt": 0}
        if workflow.workspace is not None:
            render_workspace(workflow.workspace, told)
    except Unresolved as error:
        raise InvalidInput("input", f"the workspace uses it, and {error}") from None
    for step in workflow.steps_known_at_start:
        try:
            try_rendering(step, told)
        except Unresolved as error:
            raise InvalidInput("input", f"step {step.id!r} uses it, and {error}") from None


def _fill_declared(declared: WorkflowDeclarations, given: object) -> Any:  # noqa: ANN401 - JSON is any value
    if declared.input is not None:
        return check_input(declared.input, given)
    if given is None or isinstance(given, dict):
        return given or {}
    raise InvalidInput("input", f"must be an object, not {type(given).__name__}")


def make_paths_absolute(workflow: Workflow, given: object, folder: str) -> Any:  # noqa: ANN401 - JSON
    """The input with its defaults, and its paths made absolute from a folder."""
    filled = fill_input(workflow, given)
    declared = workflow.declared
    if declared is None or declared.input is None:
        return filled
    return map_paths(declared.input, filled, lambda path: normpath(PurePath(folder, path)))


def render_run_labels(workflow: Workflow, given: object) -> dict[str, Any]:
    """The labels that a workflow gives to a run with this input; None for what is not given."""
    declared = {} if workflow.declared is None else workflow.declared.labels
    return {
        name: _render_label(parse_template(f"labels.{name}", text), given)
        for name, text in declared.items()
    }


def _render_label(template: Template, given: object) -> Any:  # noqa: ANN401 - JSON is any value
    try:
        return template.value({"input": given})
    except Unresolved:
        return None


def render_run_key(workflow: Workflow, limit: Concurrency | None, given: object) -> str | None:
    """The concurrency key of a run with this input, or None where it has no limit."""
    if limit is None or (workflow.declared is None and not limit.has_variables):
        return None if limit is None else limit.key
    try:
        return render_key(limit.key, {"input": given})
    except Unresolved as error:
        raise InvalidInput("input", f"the concurrency key uses it, and {error}") from None
