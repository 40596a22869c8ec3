"""What a run of a workflow file is started with: its input checked and filled, its key told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.model.graph import Workflow
from holdfast.model.reference import Reference, Unresolved
from holdfast.model.rendering import references, render_key
from holdfast.model.shape import check_input
from holdfast.model.step import every


def fill_input(workflow: Workflow, given: object) -> Any:  # noqa: ANN401 - JSON is any value
    """The input with its defaults; refused by the field that does not fit, or is not there."""
    declared = workflow.declared
    if declared is None:
        return given
    if declared.input is not None:
        filled = check_input(declared.input, given)
    elif given is None or isinstance(given, dict):
        filled = given or {}
    else:
        raise InvalidInput("input", f"must be an object, not {type(given).__name__}")
    for step, reference in _used(workflow):
        try:
            reference.resolve({"input": filled})
        except Unresolved as error:
            raise InvalidInput(str(reference), f"step {step!r} uses it, and {error}") from None
    return filled


def _used(workflow: Workflow) -> Iterator[tuple[str, Reference]]:
    for step in every(workflow.steps):
        for reference in references(step):
            if reference.root == "input":
                yield step.id, reference


def tell_key(workflow: Workflow, given: object) -> str | None:
    """The concurrency key of a run."""
    limit = workflow.concurrency
    if limit is None or workflow.declared is None:
        return None if limit is None else limit.key
    try:
        return render_key(limit.key, {"input": given})
    except Unresolved as error:
        raise InvalidInput("input", f"the concurrency key uses it, and {error}") from None
