"""Step declarations: a step, loop, approval or call of a workflow, as Python code declares it."""

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
    """The options of a step about its condition, its verification and its failure."""

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
    """A declared step; `needed_steps` are beside it or around it, `sources` fill its parameters.

    The verifiers in `may_be_rejected_by` may give up on the step: work that was never accepted has
    no output.
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
        # Texts are rendered only for a step with work, even where no worker does it.
        return StepWork() if "{{" in self.flow_options.get("approval", "") else None

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references in its condition, its list, its question and its input for a workflow."""
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
        """Whether the step is skipped when it has failed for good."""
        failing = self.flow_options.get("on_failure")
        return failing is not None and failing.action == "skip"

    @property
    def output_steps(self) -> list[StepDeclaration]:
        """The steps of a loop whose outputs are the output of an item."""
        if self.body is None:
            return []
        giving = output_steps(self.body.build_steps()[0])
        return [each for each in self.body.members.values() if each.name in giving]

    def decode(self, output: Any) -> Any:  # noqa: ANN401 - what the annotations say
        """The output of the step, from its JSON: None if skipped, the note of an approval."""
        if self.body is not None and isinstance(output, list):
            giving = self.output_steps
            return [_decode_item(giving, each) for each in output]
        if self.signature is None or (output is None and self.may_be_skipped):
            return output
        return self.signature.decode("return", output)

    def mistakes(self, known: dict[str, StepDeclaration]) -> Iterator[str]:
        """The mistakes in its function; where the signature has mistakes, only these."""
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
    """Mistakes of parameters that do not accept the None, or list with a None, that may come."""
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
    """The output of a step when it, or the only output step of its items, is skipped.

    None where the step always has an output. A step before a verdict, and the verifier itself, see
    the work before it is accepted.
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
    """The steps without an output when a verifier gives up: its subject, and those between."""
    subject = verifier.flow_options.get("verifies")
    if subject is None or not verifier.skips_on_failure:
        return set()
    needs = {step.id: step.needs for step in body.build_steps()[0]}
    before = {subject, *collect_needs(needs, verifier.name)} & needs.keys()
    return {name for name in before if name == subject or subject in collect_needs(needs, name)}
