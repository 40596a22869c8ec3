"""Run inputs: every input that the steps of a workflow take, or that a loop goes over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from holdfast.api.options import suggest_name
from holdfast.api.signature import Signature
from holdfast.api.step import StepDeclaration
from holdfast.api.workflow_call import find_misnamed_inputs
from holdfast.errors import InvalidInput
from holdfast.model.workflow.step import Concurrency
from holdfast.model.workflow.template import parse_template


class RunInputs:
    """The inputs of a workflow, with the steps that take each of them."""

    def __init__(
        self,
        workflow: str,
        members: Iterable[StepDeclaration],
        concurrency: Concurrency | None = None,
    ) -> None:
        self._workflow = workflow
        self._in_keys: dict[str, str] = {}
        self._takers: dict[str, list[Signature]] = {}
        self._required: dict[str, str] = {}
        self._referred: dict[str, list[StepDeclaration]] = {}
        self._read_key("the run", concurrency)
        for member in members:
            self._read(member)
            self._read_key(f"step {member.name!r}", member.options.get("concurrency"))

    def find_wrong_inputs(self, step: str, given: object) -> list[str]:
        """The mistakes in the names of the inputs that a calling step gives."""
        needed = [name for name in self._required if name not in self._defaults]
        return find_misnamed_inputs(step, given, self._known, needed)

    @property
    def first(self) -> str | None:
        return next(iter(self._known), None)

    def takes(self, name: str) -> bool:
        """Whether a step takes an input of that name."""
        return name in self._known

    def encode(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs as JSON, each checked against all steps that take it."""
        self._refuse_unknown(given)
        whole = {**self._defaults, **given}
        for name, taker in self._required.items():
            if name not in whole:
                raise InvalidInput(name, f"is missing; step {taker!r} takes it")
        return {name: self._encode(name, value) for name, value in whole.items()}

    def _read(self, member: StepDeclaration) -> None:
        if member.signature is not None:
            for name, parameter in member.signature.inputs.items():
                self._takers.setdefault(name, []).append(member.signature)
                if parameter.default is parameter.empty:
                    self._required.setdefault(name, member.name)
        for reference in member.references:
            if reference.parts[0] == "input" and len(reference.parts) > 1:
                self._referred.setdefault(reference.parts[1], []).append(member)
                self._required.setdefault(reference.parts[1], member.name)

    def _read_key(self, of: str, concurrency: Concurrency | None) -> None:
        """Note the inputs that a concurrency key names."""
        if concurrency is not None and concurrency.has_variables:
            for reference in parse_template("concurrency", concurrency.key).references:
                if reference.root == "input" and len(reference.parts) > 1:
                    self._in_keys.setdefault(reference.parts[1], of)

    @property
    def mistakes(self) -> list[str]:
        """The inputs that a concurrency key names and no step takes."""
        return [
            f"the concurrency key of {of}: {name!r} is no input of a step"
            f"{suggest_name(name, self._known) or self._list_known()}"
            for name, of in self._in_keys.items()
            if name not in self._known
        ]

    def _list_known(self) -> str:
        return f"; they take {', '.join(self._known) or 'none'}"

    def _refuse_unknown(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self._known:
                shown = ", ".join(self._known) or "no input at all"
                hint = suggest_name(name, self._known)
                reason = f"is no input of {self._workflow!r}, which takes {shown}{hint}"
                raise InvalidInput(name, reason)

    @cached_property
    def _known(self) -> dict[str, object]:
        return {**self._takers, **self._referred}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        """Defaults, from steps, of the inputs that a condition, a list or a key refers to."""
        return {
            name: parameter.default
            for name in {**self._referred, **self._in_keys}
            for taker in self._takers.get(name, ())
            if (parameter := taker.inputs[name]).default is not parameter.empty
        }

    def _encode(self, name: str, value: object) -> object:
        takers = self._takers.get(name, [])
        encoded = takers[0].encode(name, value) if takers else to_json(name, value)
        for taker in takers[1:]:
            taker.decode(name, encoded)
        for member in self._referred.get(name, ()):
            _check_items(name, member, encoded)
        return encoded


def to_json(name: str, value: object) -> object:
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise InvalidInput(name, f"is not JSON: {error}") from error


def _check_items(name: str, member: StepDeclaration, encoded: object) -> None:
    """Refuse items that the steps of a loop over this input would not take."""
    over = member.flow_options.get("for_each")
    if over is None or member.body is None or over.parts != ("input", name):
        return
    if not isinstance(encoded, list):
        reason = (
            f"must be a list, not {type(encoded).__name__}; the loop {member.name!r} is over it"
        )
        raise InvalidInput(name, reason)
    for each in member.body.members.values():
        if each.signature is None or "item" not in each.signature.filled:
            continue
        for place, item in enumerate(encoded):
            try:
                each.signature.decode("item", item)
            except InvalidInput as error:
                raise InvalidInput(f"{name}[{place}]", error.reason) from error
