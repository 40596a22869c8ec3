"""Function registry: the functions of a program, and the arguments they are called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from holdfast.api.hook import HookFunction
from holdfast.api.signature import Signature
from holdfast.api.step import StepDeclaration
from holdfast.api.workflow import WorkflowBuilder
from holdfast.engine.surroundings.hooks import read_payload
from holdfast.errors import HoldfastError, InvalidInput
from holdfast.model.hook import hook_name
from holdfast.model.task import Assignment
from holdfast.model.verdict import describe_feedback
from holdfast.model.workflow.reference import Reference, Unresolved
from holdfast.settings import AgentCommands
from holdfast.worker.attempt.context import AttemptContext
from holdfast.worker.attempt.durable import feedback_before
from holdfast.worker.attempt.execution import Invocation, UnfitArguments, UnknownFunction
from holdfast.worker.attempt.function_options import FunctionCall, FunctionOptions
from holdfast.worker.files.state_directory import StateDirectory
from holdfast.worker.steps.executors import Executors

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine
    from holdfast.worker.attempt_server.attempt_requests import CallForwarder
    from holdfast.worker.files.state_directory import StateDirectory


class NoVerdict(HoldfastError):
    """A verifier returned something other than a verdict: its attempt fails and is tried again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionBinding:
    """The way to call a function: how its arguments are gathered and its result is encoded."""

    function: Callable[..., object]
    context: str | None
    gather: Callable[[Assignment], dict[str, Any]]
    encode: Callable[[object], object]
    asynchronous: bool
    options: FunctionOptions
    describe_call: Callable[[Mapping[str, Any]], FunctionCall]


class FunctionRegistry:
    """The task functions, workflows and hooks of one `Holdfast`."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._bindings: dict[tuple[str | None, str | None], FunctionBinding] = {}
        self.tasks: dict[str, Signature] = {}
        self.workflows: dict[str, WorkflowBuilder] = {}
        self.hooks: dict[str, HookFunction] = {}

    def has_function(self, workflow: str | None, step: str | None) -> bool:
        return self._signature(workflow, step) is not None

    def find_function(self, workflow: str | None, step: str | None) -> Callable[..., object] | None:
        """The function of a step of a workflow, or of a task without a run."""
        found = self._signature(workflow, step)
        return None if found is None else found.function

    def list_equipped(self, _: Sequence[str]) -> tuple[str, ...]:
        return ()

    def equip(self, assignment: Assignment) -> Assignment:
        return assignment

    def decode(self, name: str | None, output: Any) -> Any:  # noqa: ANN401 - what it returns
        """The result of a task function, from its JSON; the JSON for a function unknown here."""
        known = self.tasks.get(str(name))
        return output if known is None else known.decode("return", output)

    def bind(self, assignment: Assignment, context: AttemptContext) -> Invocation:
        workflow = assignment.workflow if assignment.is_step else None
        call = self._find_binding(workflow, assignment)
        arguments = call.gather(assignment)
        isolated = call.describe_call(arguments) if call.options.isolated else None
        if call.context is not None:
            arguments[call.context] = context
        return Invocation(
            call.function, arguments, call.encode, call.asynchronous, call.options, isolated
        )

    def _find_binding(self, workflow: str | None, assignment: Assignment) -> FunctionBinding:
        found = self._bindings.get((workflow, assignment.step))
        if found is None:
            signature = self._signature(workflow, assignment.step)
            if signature is None:
                missing = _describe_missing(workflow, assignment)
                until = "it is held until a worker of a program starts that can run it"
                raise UnknownFunction(f"{missing}; {until}")
            found = self._bindings[workflow, assignment.step] = self._prepare(
                workflow, assignment.step, signature
            )
        return found

    def _prepare(
        self, workflow: str | None, step: str | None, signature: Signature
    ) -> FunctionBinding:
        """The binding that all calls of one function share."""
        encode: partial[object] = partial(signature.encode, "return")
        gather: Callable[[Assignment], dict[str, Any]]
        if (hook := hook_name(step)) is not None:
            gather = partial(_hook_arguments, self.hooks[hook].parameter)
        elif workflow is None:
            gather = partial(self._task_arguments, signature)
        else:
            member = self.workflows[workflow].known[signature.name]
            gather = partial(self._step_arguments, member, signature)
            if "verifies" in member.flow_options:
                encode = partial(encode_verdict, signature)
        return FunctionBinding(
            function=signature.function,
            context=signature.context,
            gather=gather,
            encode=encode,
            asynchronous=signature.asynchronous,
            options=signature.options,
            describe_call=partial(_describe_call, signature, verdict=encode.func is encode_verdict),
        )

    def _task_arguments(self, signature: Signature, assignment: Assignment) -> dict[str, Any]:
        stored = assignment.payload or {}
        arguments = _decode_inputs(signature, stored) if signature.inputs else {}
        # A dropped argument may be what tells how much, or for whom: no call goes on without it.
        # An imported task has a whole row, of which its function takes the columns that it names.
        if (
            isinstance(stored, Mapping)
            and (left_over := stored.keys() - arguments.keys())
            and not self._engine().imports.is_imported(assignment.task_id)
        ):
            raise _make_left_over(signature.name, sorted(left_over))
        return arguments

    def _step_arguments(
        self, member: StepDeclaration, signature: Signature, assignment: Assignment
    ) -> dict[str, Any]:
        arguments = _decode_inputs(signature, assignment.input or {}) if signature.inputs else {}
        if member.sources:
            arguments |= self._needed_arguments(member, signature, assignment)
        if signature.filled:
            arguments |= self._filled_arguments(member, signature, assignment)
        return arguments

    def _signature(self, workflow: str | None, step: str | None) -> Signature | None:
        if (hook := hook_name(step)) is not None:
            known = self.hooks.get(hook)
            return None if known is None else known.signature
        if workflow is None:
            return self.tasks.get(str(step))
        builder = self.workflows.get(workflow)
        member = None if builder is None else builder.known.get(str(step))
        return None if member is None else member.signature

    def _needed_arguments(
        self, member: StepDeclaration, signature: Signature, assignment: Assignment
    ) -> dict[str, Any]:
        outputs = assignment.needs
        if assignment.item_number is not None and any(
            str(each.step) not in outputs for each in member.sources.values()
        ):
            outputs = outputs | self._engine().work.needed_around(assignment.task_id)
        return {
            name: signature.decode(
                name, _find_part(name, reference, _find_output(member, name, reference, outputs))
            )
            for name, reference in member.sources.items()
        }

    def _filled_arguments(
        self, member: StepDeclaration, signature: Signature, assignment: Assignment
    ) -> dict[str, Any]:
        feedback = assignment.feedback
        # Only a task with an earlier attempt can have asked a question.
        if "feedback" in signature.filled and assignment.attempt > 1:
            feedback = feedback_before(self._engine().work.effects(assignment.task_id), feedback)
        values = _filled_values(member, assignment, feedback)
        arguments: dict[str, Any] = {}
        for name, parameter in signature.filled.items():
            if name not in values:
                raise _make_unfit(member.name, name, f"its {name}")
            # Without feedback the default of the function stands.
            if name != "feedback" or feedback is not None or parameter.default is parameter.empty:
                arguments[name] = signature.decode(name, values[name])
        return arguments


def _describe_call(
    signature: Signature, arguments: Mapping[str, Any], *, verdict: bool
) -> FunctionCall:
    """A call of a function for a process of its own."""
    return FunctionCall(
        module=signature.function.__module__,
        name=signature.function.__qualname__,
        arguments={name: signature.encode(name, value) for name, value in arguments.items()},
        verdict=verdict,
    )


def encode_verdict(signature: Signature, result: object) -> object:
    """The JSON form of the verdict that a verifier has returned."""
    try:
        return signature.encode("return", result)
    except InvalidInput as error:
        advice = "give Verdict.accept() or Verdict.reject(feedback)"
        raise NoVerdict(f"{signature.name} gave no verdict: {error.reason}; {advice}") from error


def _hook_arguments(parameter: str, assignment: Assignment) -> dict[str, Any]:
    return {parameter: read_payload(assignment.payload)}


def _decode_inputs(signature: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for name, parameter in signature.inputs.items():
        if name in given:
            arguments[name] = signature.decode(name, given[name])
        elif parameter.default is parameter.empty:
            stored = f" (stored are {', '.join(given)})" if given else ""
            raise _make_unfit(signature.name, name, "an argument", stored)
    return arguments


def _describe_missing(workflow: str | None, assignment: Assignment) -> str:
    of = f" of {workflow}@{str(assignment.workflow_version)[:8]}" if workflow else ""
    return f"this program has no function {assignment.step!r}{of}"


def _make_unfit(function: str, parameter: str, wanted: str, stored: str = "") -> UnfitArguments:
    lacking = f"the parameter {parameter!r} of {function!r} takes {wanted} that is not stored"
    ways = "give it a default, or run the program that the task was made for"
    return UnfitArguments(f"{lacking}{stored}: {ways}")


def _make_left_over(function: str, stored: Sequence[str]) -> UnfitArguments:
    named = ", ".join(map(repr, stored))
    lacking = f"{function!r} has no parameter for the stored argument {named}"
    ways = "give it that parameter, or run the program that the task was made for"
    if len(stored) > 1:
        lacking = f"{function!r} has no parameters for the stored arguments {named}"
        ways = ways.replace("that parameter", "those parameters")
    return UnfitArguments(f"{lacking}: {ways}")


def _find_output(
    member: StepDeclaration, parameter: str, reference: Reference, outputs: Mapping[str, Any]
) -> object:
    name = str(reference.step)
    if name not in outputs:
        raise _make_unfit(member.name, parameter, f"the output of {name!r}")
    return outputs[name]


def _find_part(name: str, reference: Reference, output: object) -> object:
    """The part of an output that a path leads to; None for a skipped step."""
    if output is None or reference.is_whole_output:
        return output
    try:
        return reference.resolve({"steps": {str(reference.step): output}})
    except Unresolved as error:
        raise InvalidInput(name, str(error)) from error


def _filled_values(
    member: StepDeclaration, assignment: Assignment, feedback: object
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "attempt": assignment.attempt,
        "feedback": describe_feedback(feedback),
    }
    if assignment.item_number is not None:
        values["item"] = assignment.item
    if (verified := member.flow_options.get("verifies")) in assignment.needs:
        values["subject"] = assignment.needs[verified]
    return values


def make_executors(
    engine: Engine, functions: FunctionRegistry, commands: AgentCommands = MappingProxyType({})
) -> Executors:
    """The executors of a worker on a store; its commands reach the store through the worker."""

    def carrier(state: StateDirectory) -> CallForwarder:
        # Imported here: most programs have no commands.
        from holdfast.service.protocol.attempt_calls import AttemptCalls  # noqa: PLC0415

        return AttemptCalls(engine, state)

    return Executors(engine, functions, carrier, commands=commands)
