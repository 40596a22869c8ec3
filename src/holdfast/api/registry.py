"""Which function of this program carries out a task, and with which arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.api.hook import HookFunction
from holdfast.api.signature import Signature
from holdfast.api.workflow import WorkflowBuilder
from holdfast.engine.hooks import read_payload
from holdfast.model.hook import hook_name
from holdfast.model.task import Assignment
from holdfast.worker.context import Context
from holdfast.worker.execution import Invocation, UnknownFunction


class Registry:
    def __init__(self) -> None:
        self.tasks: dict[str, Signature] = {}
        self.workflows: dict[str, WorkflowBuilder] = {}
        self.hooks: dict[str, HookFunction] = {}

    def knows(self, workflow: str | None, step: str | None) -> bool:
        if workflow is None:
            return step in self.tasks or hook_name(step) in self.hooks
        return workflow in self.workflows and step in self.workflows[workflow].steps

    def bind(self, assignment: Assignment, context: Context) -> Invocation:
        signature = self._find(assignment)
        if (hook := hook_name(assignment.task.step)) is not None:
            event = read_payload(assignment.task.payload)
            arguments: dict[str, Any] = {self.hooks[hook].parameter: event}
        else:
            given = assignment.input if _is_step(assignment) else assignment.task.payload
            arguments = self._arguments(signature, given or {}, assignment)
        if signature.context is not None:
            arguments[signature.context] = context
        return Invocation(
            function=signature.function,
            arguments=arguments,
            encode=lambda result: signature.encode("return", result),
        )

    def _find(self, assignment: Assignment) -> Signature:
        step = assignment.task.step
        workflow = assignment.workflow if _is_step(assignment) else None
        if not self.knows(workflow, step) or step is None:
            place = f"{workflow}@{assignment.workflow_version}" if workflow else "no workflow"
            message = f"{assignment.task.id}: this program has no function for {step} of {place}"
            raise UnknownFunction(message)
        if (hook := hook_name(step)) is not None:
            return self.hooks[hook].signature
        if workflow is None:
            return self.tasks[step]
        return self.workflows[workflow].steps[step].signature

    def _arguments(
        self, signature: Signature, given: Mapping[str, Any], assignment: Assignment
    ) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for name, step in signature.needed.items():
            known = step if isinstance(step, str) else step.__name__
            if known not in assignment.needs:
                message = f"{signature.name} wants the output of {known}, which its run lacks"
                raise UnknownFunction(message)
            arguments[name] = signature.decode(name, assignment.needs[known])
        for name, parameter in signature.inputs.items():
            if name in given:
                arguments[name] = signature.decode(name, given[name])
            elif parameter.default is parameter.empty:
                message = f"{signature.name} wants the input {name!r}, which its run lacks"
                raise UnknownFunction(message)
        return arguments


def _is_step(assignment: Assignment) -> bool:
    """Whether it carries out a step of a workflow, not a call of a task function."""
    return assignment.workflow is not None and assignment.task.parent_epoch is None
