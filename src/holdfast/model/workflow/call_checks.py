"""Call checks: the inputs that steps give to the workflows they call, against their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.model import json_schema
from holdfast.model.json_schema import Schema
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.step import Step, all_steps

_VARIABLE = "{{"


def find_bad_calls(steps: tuple[Step, ...], schemas: Mapping[str, Schema | None]) -> Iterator[Flaw]:
    """Flaws that are known before a run; `schemas` are the inputs of the known workflows."""
    for step in all_steps(steps):
        schema = schemas.get(step.calls or "")
        if step.work is not None and schema is not None:
            yield from _bad_input(step, step.work.input, schema)


def _bad_input(step: Step, given: Any, schema: Schema) -> Iterator[Flaw]:  # noqa: ANN401 - JSON
    fields = {} if given is None else given
    if _is_variable(fields):
        return
    if not isinstance(fields, dict):
        yield _flaw(step, "input", f"must be a mapping, as {step.calls} is started with")
        return
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in fields and "default" not in known.get(name, {}):
            yield _flaw(step, "input", f"{step.calls} wants {name!r}, which is not given")
    for name, value in fields.items():
        if name in known:
            yield from _bad_value(step, name, value, known[name])
        elif schema.get("additionalProperties") is False:
            reason = f"{step.calls} takes no {name!r}"
            yield Flaw(
                message=f"step {step.id!r}: input: {reason}",
                step=step,
                field="input",
                named=name,
                known=tuple(known),
            )


def _bad_value(step: Step, name: str, value: Any, schema: Schema) -> Iterator[Flaw]:  # noqa: ANN401
    """Flaws of a literal value; a value with variables is checked when the called run starts."""
    if not _has_variables(value):
        for reason in json_schema.find_misfits(schema, value, f"input.{name}"):
            yield Flaw(message=f"step {step.id!r}: {reason}", step=step, field=f"input.{name}")


def _flaw(step: Step, field: str, reason: str) -> Flaw:
    return Flaw(message=f"step {step.id!r}: {field}: {reason}", step=step, field=field)


def _is_variable(value: object) -> bool:
    return isinstance(value, str) and value.strip().startswith(_VARIABLE)


def _has_variables(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_variables, value.values()))
    if isinstance(value, list):
        return any(map(_has_variables, value))
    return isinstance(value, str) and _VARIABLE in value
