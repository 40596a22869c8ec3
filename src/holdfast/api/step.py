"""One step, loop or approval of a workflow, as its decorator or its call described it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypedDict

from holdfast.api.options import StepOptions
from holdfast.api.signature import Signature
from holdfast.api.workflow_call import WorkflowCall
from holdfast.model.verdict import Verdict
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.graph import OnFailure
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Step, collect_needs, output_steps
from holdfast.model.workflow.template import parse_template

FILLED_PARAMETERS = ("item", "feedback", "subject", "attempt")
_NO_VERDICT = (bool, int, float, str, type(None))


class FlowOptions(TypedDict, total=False):
    """When a step runs, what it judges, and what becomes of its failure."""

    when: Reference | None
    on_failure: OnFailure
    verifies: str | None
    max_rounds: int
    approval: str
    for_each: Reference
    parallel: int


class LoopBody(Protocol):
    """The steps inside a loop, or of a whole workflow."""

    members: dict[str, StepDeclaration]

    def build_steps(self) -> tuple[tuple[Step, ...], set[str]]: ...

    def mark_unaccepted(self, names: Iterable[str], verifier: str) -> None: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class StepDeclaration:
    """`wanted` names what it needs, beside it or around it; `sources` fill its parameters.

    `unsure` are the verifiers that may give up on it: what was never accepted gives nothing.
    """

    name: str
    needed_steps: tuple[str, ...]
    flow_options: FlowOptions
    options: StepOptions = field(default_factory=StepOptions)
    signature: Signature | None = None
    sources: dict[str, Reference] = field(default_factory=dict)
    body: LoopBody | None = None
    call: WorkflowCall | None = None
    may_be_rejected_by: frozenset[str] = frozenset()

    def step(self, needs: tuple[str, ...], steps: tuple[Step, ...]) -> Step:
        return Step(
            id=self.name,
            needs=needs,
            steps=steps,
            work=self._work,
            **self.flow_options,
            **self.options,
        )

    @property
    def _work(self) -> StepWork | None:
        if self.call is not None:
            return self.call.work
        # Work, though nobody does it, is what has a step's texts rendered.
        return StepWork() if "{{" in self.flow_options.get("approval", "") else None

    @property
    def references(self) -> tuple[Reference, ...]:
        """Where its condition, its list, its question and what it gives to a workflow come from."""
        found = (self.flow_options.get("when"), self.flow_options.get("for_each"))
        asked = parse_template("question", self.flow_options.get("approval", "")).references
        given = () if self.call is None else self.call.references
        return (*(each for each in found if each is not None), *asked, *given)

    @property
    def may_be_skipped(self) -> bool:
        return (
            self.skips_on_failure
            or bool(self.may_be_rejected_by)
            or self.flow_options.get("when") is not None
        )

    @property
    def skips_on_failure(self) -> bool:
        """Whether it is skipped when it has failed for good."""
        failing = self.flow_options.get("on_failure")
        return failing is not None and failing.action == "skip"

    @property
    def output_steps(self) -> list[StepDeclaration]:
        """Of a loop, the steps of its body whose outputs are an item's output."""
        if self.body is None:
            return []
        giving = output_steps(self.body.build_steps()[0])
        return [each for each in self.body.members.values() if each.name in giving]

    def decode(self, output: Any) -> Any:  # noqa: ANN401 - what the annotations say
        """What it gave, from its JSON; a skipped step gave nothing, an approval its note."""
        if self.body is not None and isinstance(output, list):
            giving = self.output_steps
            return [_decode_item(giving, each) for each in output]
        if self.signature is None or (output is None and self.may_be_skipped):
            return output
        return self.signature.decode("return", output)

    def mistakes(self, known: dict[str, StepDeclaration]) -> Iterator[str]:
        """What is wrong with its function; of a function that cannot be read, only that."""
        signature = self.signature
        if self.call is not None:
            yield from self.call.mistakes(self.name)
        if signature is None:
            return
        yield from signature.mistakes
        if not signature.mistakes:
            yield from _find_bad_verdict(self, signature)
            yield from _find_bad_blanks(self, signature, known)


def _decode_item(giving: list[StepDeclaration], output: Any) -> Any:  # noqa: ANN401
    if len(giving) == 1:
        return giving[0].decode(output)
    if not isinstance(output, dict):
        return output
    return {each.name: each.decode(output.get(each.name)) for each in giving}


def _find_bad_verdict(member: StepDeclaration, signature: Signature) -> Iterator[str]:
    if (
        member.flow_options.get("verifies")
        and signature.hints.get("return", Verdict) in _NO_VERDICT
    ):
        reason = "a verifier gives Verdict.accept() or Verdict.reject(…)"
        yield f"{member.name}: return: {reason}; annotate it -> Verdict"


def _find_bad_blanks(
    member: StepDeclaration, signature: Signature, known: dict[str, StepDeclaration]
) -> Iterator[str]:
    """Parameters that do not take the None, or the list with one, that may come."""
    feedback = signature.filled.get("feedback")
    if feedback and feedback.default is feedback.empty and not signature.accepts("feedback", None):
        yield f"{member.name}: feedback: is None the first time; annotate it with | None"
    for name, reference in signature_sources(member):
        source = known.get(str(reference.step))
        blank = None if source is None else _find_blank_output(source, member)
        if blank is not None and not signature.accepts(name, blank[0]):
            shown = "in the list " if source is not None and blank[0] is not None else ""
            reason = f"{reference.step!r} may be skipped and then {shown}gives None"
            yield f"{member.name}: {name}: {reason}; annotate it with | None"


def signature_sources(member: StepDeclaration) -> Iterator[tuple[str, Reference]]:
    yield from member.sources.items()
    verified = member.flow_options.get("verifies")
    if verified and member.signature is not None and "subject" in member.signature.filled:
        yield "subject", Reference(("steps", verified))


def _find_blank_output(
    source: StepDeclaration, member: StepDeclaration | None = None
) -> tuple[Any] | None:
    """What a step gives when it, or the step that gives for its items, was skipped.

    Who comes before a verdict, or gives it, sees what is judged.
    """
    judged = (
        source.may_be_rejected_by
        if member is None
        else source.may_be_rejected_by - member.may_be_rejected_by - {member.name}
    )
    if replace(source, may_be_rejected_by=judged).may_be_skipped:
        return (None,)
    giving = source.output_steps
    if len(giving) == 1 and (inner := _find_blank_output(giving[0], member)):
        return ([inner[0]],)
    return None


def find_unaccepted(verifier: StepDeclaration, body: LoopBody) -> set[str]:
    """What gives nothing when a verifier gives up: what it judges, and what stands between."""
    subject = verifier.flow_options.get("verifies")
    if subject is None or not verifier.skips_on_failure:
        return set()
    needs = {step.id: step.needs for step in body.build_steps()[0]}
    before = {subject, *collect_needs(needs, verifier.name)} & needs.keys()
    return {name for name in before if name == subject or subject in collect_needs(needs, name)}
