"""Which function of this program carries out a task, and with which arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.api.hook import HookFunction
from holdfast.api.member import Member
from holdfast.api.signature import Signature
from holdfast.api.workflow import WorkflowBuilder
from holdfast.engine.hooks import read_payload
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.feedback import in_words
from holdfast.model.hook import hook_name
from holdfast.model.reference import Reference, Unresolved
from holdfast.model.task import Assignment
from holdfast.worker.context import Context
from holdfast.worker.durable import feedback_before
from holdfast.worker.execution import Invocation, UnknownFunction

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


class NoVerdict(HoldfastError):
    """A verifier gave something else than a verdict: its attempt has failed, and is tried again."""


class Registry:
    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self.tasks: dict[str, Signature] = {}
        self.workflows: dict[str, WorkflowBuilder] = {}
        self.hooks: dict[str, HookFunction] = {}

    def knows(self, workflow: str | None, step: str | None) -> bool:
        return self._signature(workflow, step) is not None

    def bind(self, assignment: Assignment, context: Context) -> Invocation:
        workflow = assignment.workflow if _is_step(assignment) else None
        signature = self._signature(workflow, assignment.task.step)
        if signature is None:
            raise UnknownFunction(_missing(workflow, assignment))
        arguments = self._arguments(workflow, signature, assignment)
        if signature.context is not None:
            arguments[signature.context] = context
        return Invocation(
            function=signature.function,
            arguments=arguments,
            encode=self._encoder(workflow, signature),
        )

    def _encoder(self, workflow: str | None, signature: Signature) -> Callable[[object], object]:
        if workflow is None or "verifies" not in self._member(workflow, signature).course:
            return lambda result: signature.encode("return", result)
        return lambda result: _encode_verdict(signature, result)

    def _member(self, workflow: str, signature: Signature) -> Member:
        return self.workflows[workflow].known[signature.name]

    def _arguments(
        self, workflow: str | None, signature: Signature, assignment: Assignment
    ) -> dict[str, Any]:
        if (hook := hook_name(assignment.task.step)) is not None:
            return {self.hooks[hook].parameter: read_payload(assignment.task.payload)}
        if workflow is None:
            return self._given(signature, assignment.task.payload or {})
        member = self._member(workflow, signature)
        return (
            self._given(signature, assignment.input or {})
            | self._needed(member, signature, assignment)
            | self._filled(member, signature, assignment)
        )

    def _signature(self, workflow: str | None, step: str | None) -> Signature | None:
        if (hook := hook_name(step)) is not None:
            known = self.hooks.get(hook)
            return None if known is None else known.signature
        if workflow is None:
            return self.tasks.get(str(step))
        builder = self.workflows.get(workflow)
        member = None if builder is None else builder.known.get(str(step))
        return None if member is None else member.signature

    def _given(self, signature: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for name, parameter in signature.inputs.items():
            if name in given:
                arguments[name] = signature.decode(name, given[name])
            elif parameter.default is parameter.empty:
                message = f"{signature.name} wants the input {name!r}, which its run lacks"
                raise UnknownFunction(message)
        return arguments

    def _needed(
        self, member: Member, signature: Signature, assignment: Assignment
    ) -> dict[str, Any]:
        if not member.sources:
            return {}
        outputs = assignment.needs
        wanted = {str(each.step) for each in member.sources.values()}
        if assignment.task.item is not None and not wanted <= outputs.keys():
            outputs = outputs | self._engine().work.needed_around(assignment.task.id)
        return {
            name: signature.decode(
                name, _part(name, reference, _output(member, reference, outputs))
            )
            for name, reference in member.sources.items()
        }

    def _filled(
        self, member: Member, signature: Signature, assignment: Assignment
    ) -> dict[str, Any]:
        if not signature.filled:
            return {}
        feedback = assignment.feedback
        if "feedback" in signature.filled and assignment.task.feedback is not None:
            feedback = feedback_before(self._engine().work.effects(assignment.task.id), feedback)
        values = _values(member, assignment, feedback)
        arguments: dict[str, Any] = {}
        for name, parameter in signature.filled.items():
            if name not in values:
                raise UnknownFunction(f"{member.name} wants its {name}, which its run lacks")
            # Nothing was said yet: what the function itself says of that stands.
            if name != "feedback" or feedback is not None or parameter.default is parameter.empty:
                arguments[name] = signature.decode(name, values[name])
        return arguments


def _encode_verdict(signature: Signature, result: object) -> object:
    try:
        return signature.encode("return", result)
    except InvalidInput as error:
        advice = "give Verdict.accept() or Verdict.reject(feedback)"
        raise NoVerdict(f"{signature.name} gave no verdict: {error.reason}; {advice}") from error


def _is_step(assignment: Assignment) -> bool:
    """Whether it carries out a step of a workflow, not a call of a task function."""
    task = assignment.task
    return assignment.workflow is not None and (task.parent_epoch is None or task.item is not None)


def _missing(workflow: str | None, assignment: Assignment) -> str:
    place = f"{workflow}@{assignment.workflow_version}" if workflow else "no workflow"
    task = assignment.task
    return f"{task.id}: this program has no function for {task.step} of {place}"


def _output(member: Member, reference: Reference, outputs: Mapping[str, Any]) -> object:
    name = str(reference.step)
    if name not in outputs:
        message = f"{member.name} wants the output of {name}, which its run lacks"
        raise UnknownFunction(message)
    return outputs[name]


def _part(name: str, reference: Reference, output: object) -> object:
    """The part of an output that a path leads to; of a step that was skipped, nothing."""
    if output is None:
        return None
    try:
        return reference.resolve({"steps": {str(reference.step): output}})
    except Unresolved as error:
        raise InvalidInput(name, str(error)) from error


def _values(member: Member, assignment: Assignment, feedback: object) -> dict[str, Any]:
    values: dict[str, Any] = {"attempt": assignment.attempt, "feedback": in_words(feedback)}
    if assignment.task.item is not None:
        values["item"] = assignment.item
    if (verified := member.course.get("verifies")) in assignment.needs:
        values["subject"] = assignment.needs[verified]
    return values
