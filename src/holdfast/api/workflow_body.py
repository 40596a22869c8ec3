"""Workflow body: the steps of a workflow, or of each item of a loop, in the order of their code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from holdfast.api.option_types import FlowKeywords, StepKeywords
from holdfast.api.options import (
    FUNCTION_OPTIONS,
    STEP_OPTIONS,
    check_count,
    read_function_options,
    read_on_failure,
    read_step_options,
    refuse_unknown,
)
from holdfast.api.run_inputs import to_json
from holdfast.api.signature import OutputReference, Signature
from holdfast.api.start import StartableWorkflow
from holdfast.api.step import FILLED_PARAMETERS, FlowOptions, StepDeclaration, find_unaccepted
from holdfast.api.workflow_call import WorkflowCall, check_callee
from holdfast.errors import InvalidDefinition, InvalidInput
from holdfast.model.retry import RetryPolicy
from holdfast.model.text import clean_name, clean_text
from holdfast.model.workflow.graph import Step
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.template import parse_template

_FLOW_OPTIONS = ("when", "on_failure", "verifies", "max_rounds")

P = ParamSpec("P")
T = TypeVar("T")


class WorkflowBody:
    """The steps, loops, approvals and called workflows of a workflow or a loop."""

    def __init__(self, name: str, retry: RetryPolicy, around: WorkflowBody | None = None) -> None:
        self.name = name
        self._retry = retry
        self._around = around
        self.members: dict[str, StepDeclaration] = {}
        # The steps of the whole workflow: a name means one step in all of its bodies.
        self.known: dict[str, StepDeclaration] = {} if around is None else around.known

    @overload
    def step(self, function: Callable[P, T], /) -> Callable[P, T]: ...

    @overload
    def step(
        self,
        /,
        *,
        needs: Needed | Sequence[Needed] | None = None,
        **options: Unpack[StepKeywords],
    ) -> Callable[[Callable[P, T]], Callable[P, T]]: ...

    def step(
        self,
        function: Callable[P, T] | None = None,
        /,
        *,
        needs: Needed | Sequence[Needed] | None = None,
        **options: Any,
    ) -> Callable[P, T] | Callable[[Callable[P, T]], Callable[P, T]]:
        """Add a step. Without any needs it follows the step before; `needs=[]` starts at once.

        Unless `needs` says otherwise, it waits for the approval written before it too.
        `needs` is a step, by its function or its name, or a list of them. Options: `agent`,
        `tags`, `priority`, `timeout`, `concurrency` (a key, or a key and its limit),
        `max_attempts`, `max_lost`, `backoff`, `backoff_max`; `retry_on` and `never_retry_on`, the
        errors after which it is tried again or not; `when`, without which it is skipped:
        `needs(plan, "deploy")`, "input.deploy" or "item.deploy"; `on_failure`: "fail", "skip",
        "ask", `goto(step)` or `escalate(agent)`; `verifies`, a step or loop that its Verdict lets
        pass or sends back, at most `max_rounds` times.
        """
        refuse_unknown("option", options, (*STEP_OPTIONS, *FUNCTION_OPTIONS, *_FLOW_OPTIONS))
        rest = {name: value for name, value in options.items() if name not in _FLOW_OPTIONS}
        chosen, own = read_step_options(rest, self._retry), read_function_options(rest)
        flow = self._read_flow_options(options)

        def add(decorated: Callable[P, T]) -> Callable[P, T]:
            if not hasattr(decorated, "__name__"):
                reason = f"step {decorated!r} has no name of its own; put it into a function"
                raise InvalidDefinition(self.name, [reason])
            signature = Signature(decorated, FILLED_PARAMETERS, own)
            self._check_filled(signature, flow)
            sources = {
                name: self._read_reference(name, each) for name, each in signature.needed.items()
            }
            wanted = self._resolve_needs(needs, [str(each.step) for each in sources.values()], flow)
            self._add(
                StepDeclaration(
                    name=signature.name,
                    needed_steps=wanted,
                    flow_options=flow,
                    options=chosen,
                    signature=signature,
                    sources=sources,
                )
            )
            return decorated

        return add if function is None else add(function)

    def loop(
        self,
        name: str,
        *,
        over: Any,  # noqa: ANN401 - what needs() gives, or a reference
        parallel: int = 1,
        needs: Needed | Sequence[Needed] | None = None,
        when: Any = None,  # noqa: ANN401
    ) -> Loop:
        """Begin a loop; add the steps that each item goes through with `@….step`.

        `over` is the list: `needs(plan, "stories")`, "input.stories", or in another loop
        "item.files". `parallel` items are under way at once. It gives the list of what its items
        gave. Without any needs, and over no step's list, it follows the step before.
        """
        check_count("parallel", parallel)
        listed = self._read_reference("over", over)
        if listed.parts == ("input",):
            reason = f"loop {name!r}: over: the whole input is no list; name a part of it"
            raise InvalidDefinition(self.name, [reason])
        flow = FlowOptions(for_each=listed, parallel=parallel, when=self._read_condition(when))
        # A loop over the list of a step needs that step.
        sources = [] if listed.step is None else [listed.step]
        made = Loop(_check_name(name), self._retry, self)
        wanted = self._resolve_needs(needs, sources, flow)
        self._add(StepDeclaration(name=name, needed_steps=wanted, flow_options=flow, body=made))
        return made

    def approval(
        self,
        name: str,
        question: str,
        *,
        needs: Needed | Sequence[Needed] | None = None,
        when: Any = None,  # noqa: ANN401
    ) -> str:
        """Add an approval by a person; returns its name, for the needs of other steps.

        What is written after it waits for it, unless its own `needs=` says otherwise. The question
        may name variables as in a workflow file, "Merge {{ steps.build.branch }}?", "{{ item }}";
        it needs the steps that it names too.
        `hf.approve(run.task(name))` lets the run go on, `hf.reject(run.task(name), why)` fails it.
        """
        flow = FlowOptions(
            approval=clean_text("question", question), when=self._read_condition(when)
        )
        named = [each.step for each in parse_template("question", question).references if each.step]
        wanted = tuple(dict.fromkeys((*self._resolve_needs(needs, [], flow), *named)))
        self._add(StepDeclaration(name=_check_name(name), needed_steps=wanted, flow_options=flow))
        return name

    def run(
        self,
        name: str,
        workflow: StartableWorkflow | str,
        *,
        input: Any = None,  # noqa: A002, ANN401 - what every other face of it calls that
        needs: Needed | Sequence[Needed] | None = None,
        **options: Unpack[FlowKeywords],
    ) -> str:
        """Add a step that runs another workflow; returns its name, for the needs of other steps.

        The step waits without a worker until that run has ended, and its output is that of the
        run. The `input` is JSON: `needs(step, path)` stands for the output of a step, and texts
        may name variables as in a workflow file: "{{ input.order_id }}", "{{ item }}". Options:
        `when` and `on_failure`, as of `step`.
        """
        refuse_unknown("option", options, ("when", "on_failure"))
        call = WorkflowCall(callee=check_callee(workflow), given=self._read_call_input(input))
        flow = self._read_flow_options(options)
        sources = [each.step for each in call.references if each.step is not None]
        wanted = self._resolve_needs(needs, sources, flow)
        self._add(
            StepDeclaration(
                name=_check_name(name), needed_steps=wanted, flow_options=flow, call=call
            )
        )
        return name

    def _read_call_input(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """The input of a called workflow, with templates for values that are not known yet."""
        if isinstance(value, OutputReference):
            return f"{{{{ {self._read_reference('input', value)} }}}}"
        if isinstance(value, Mapping):
            return {str(name): self._read_call_input(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._read_call_input(inner) for inner in value]
        return to_json("input", value)

    def build_steps(self) -> tuple[tuple[Step, ...], set[str]]:
        """The steps for a graph, and the steps of the bodies around this one that they need.

        A need of a step in a loop on a step outside of it becomes a need of the loop.
        """
        steps: list[Step] = []
        beyond: set[str] = set()
        for member in self.members.values():
            inner, lifted = ((), set[str]()) if member.body is None else member.body.build_steps()
            wanted = dict.fromkeys((*member.needed_steps, *sorted(lifted)))
            outside = {name for name in wanted if self._is_around(name)}
            beyond |= outside
            steps.append(member.step(tuple(each for each in wanted if each not in outside), inner))
        return tuple(steps), beyond

    def _add(self, member: StepDeclaration) -> None:
        if member.name in self.known:
            raise InvalidDefinition(self.name, [f"step {member.name!r} is defined twice"])
        self.members[member.name] = self.known[member.name] = member
        self.mark_unaccepted(find_unaccepted(member, self), member.name)
        self._forget_graph()

    def mark_unaccepted(self, names: Iterable[str], verifier: str) -> None:
        """Note that a verifier may give up on these steps, and on all steps inside them."""
        for name in names:
            judged = self.members[name]
            if judged.body is not None:
                judged.body.mark_unaccepted(judged.body.members, verifier)
            rejected_by = judged.may_be_rejected_by | {verifier}
            self.members[name] = self.known[name] = replace(judged, may_be_rejected_by=rejected_by)

    def _forget_graph(self) -> None:
        if self._around is not None:
            self._around._forget_graph()  # noqa: SLF001 - a body of the same kind

    def _read_flow_options(self, options: Mapping[str, Any]) -> FlowOptions:
        flow = FlowOptions(when=self._read_condition(options.get("when")))
        if "on_failure" in options:
            flow["on_failure"] = read_on_failure(options["on_failure"], self._name_of_step)
        if options.get("verifies") is not None:
            flow["verifies"] = self._name_of_step(options["verifies"])
        if "max_rounds" in options:
            if "verifies" not in flow:
                reason = "counts a verifier's rounds; say verifies= too, or goto(…, max_rounds=…)"
                raise InvalidInput("max_rounds", reason)
            flow["max_rounds"] = check_count("max_rounds", options["max_rounds"])
        return flow

    def _resolve_needs(
        self, needs: Needed | Sequence[Needed] | None, sources: Sequence[str], flow: FlowOptions
    ) -> tuple[str, ...]:
        wanted = [*sources, *(self._name_of_step(each) for each in _as_list(needs))]
        if needs is None:
            wanted += [] if wanted else [*self.members][-1:]
            # All steps after an approval need it, in addition to the steps whose outputs they take.
            gates = [each.name for each in self.members.values() if "approval" in each.flow_options]
            wanted += gates[-1:]
        condition = flow.get("when")
        if condition is not None and condition.step is not None:
            wanted.append(condition.step)
        return tuple(dict.fromkeys(wanted))

    def _read_condition(self, given: object) -> Reference | None:
        return None if given is None else self._read_reference("when", given)

    def _read_reference(self, field: str, given: object) -> Reference:
        """The reference for the output of a step, or for a text such as "input.stories"."""
        if isinstance(given, OutputReference):
            path = "" if given.path is None else f".{given.path}"
            return Reference.parse(field, f"steps.{self._name_of_step(given.step)}{path}")
        if isinstance(given, str):
            return Reference.parse(field, given)
        reason = f"{given!r} is no reference; write needs(step, path), or a text: input.stories"
        raise InvalidInput(field, reason)

    def _name_of_step(self, step: Any) -> str:  # noqa: ANN401 - a function, a loop, or a name
        if isinstance(step, str):
            return step
        for body in self._bodies():
            for name, member in body.members.items():
                if _is_made_by(member, step):
                    return name
        shown = getattr(step, "__name__", None) or getattr(step, "name", None) or repr(step)
        inside = next((each for each in self.known.values() if _is_made_by(each, step)), None)
        if inside is None:
            reason = f"needs {shown!r}, which is no step of this workflow"
        else:
            loop = next(each.name for each in self.known.values() if _contains(each, inside))
            reason = f"needs {shown!r}, which is in the loop {loop!r}; need the loop itself"
        raise InvalidDefinition(self.name, [reason])

    def _check_filled(self, signature: Signature, flow: FlowOptions) -> None:
        mistakes = []
        if "item" in signature.filled and self._around is None:
            mistakes.append("'item': there is an item only in a loop; put @loop.step above it")
        if "subject" in signature.filled and "verifies" not in flow:
            mistakes.append("'subject': it is what a verifier judges; say verifies=…")
        if mistakes:
            raise InvalidDefinition(signature.name, [f"parameter {each}" for each in mistakes])

    def _bodies(self) -> Iterator[WorkflowBody]:
        body: WorkflowBody | None = self
        while body is not None:
            yield body
            body = body._around  # noqa: SLF001

    def _is_around(self, name: str) -> bool:
        return name not in self.members and any(name in each.members for each in self._bodies())


class Loop(WorkflowBody):
    """Made by `workflow.loop(…)` or `loop.loop(…)`: each item of a list goes through its steps."""

    def __repr__(self) -> str:
        return f"<Loop {self.name}>"


Needed = Callable[..., Any] | Loop | str


def _as_list(needs: Needed | Sequence[Needed] | None) -> Sequence[Needed]:
    if needs is None:
        return ()
    return needs if isinstance(needs, Sequence) and not isinstance(needs, str) else [needs]


def _is_made_by(member: StepDeclaration, step: object) -> bool:
    function = None if member.signature is None else member.signature.function
    return step is not None and (function is step or member.body is step)


def _contains(member: StepDeclaration, inner: StepDeclaration) -> bool:
    return member.body is not None and member.body.members.get(inner.name) is inner


def _check_name(name: str) -> str:
    if "." in clean_name("name", name):
        raise InvalidInput("name", f"{name!r} has a dot, which parts an address: build.2.implement")
    return name
