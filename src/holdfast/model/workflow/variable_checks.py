"""Variable checks: the variables in the texts of a graph, against the values known by then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from holdfast.errors import InvalidInput
from holdfast.model import json_schema
from holdfast.model.json_schema import Schema
from holdfast.model.workflow.declarations import RECORDED, WorkflowDeclarations
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, Step, Upstream, all_steps
from holdfast.model.workflow.step_template import find_texts, find_workspace_texts
from holdfast.model.workflow.template import (
    MAX_VARIABLES,
    ROOTS,
    RUN_FIELDS,
    InvalidVariable,
    parse_template,
    scan_template,
)

_EARLY = ("input", "run", "item")
_KNOWN = (*_EARLY, "steps")
_ALL = (*_KNOWN, "subject", "feedback", "attempt")
# The variables that a text may name, by the beginning of its field.
ALLOWED = {
    "run.concurrency.key": ("input",),
    "run.labels": ("input",),
    "concurrency.key": _EARLY,
    "items.title": _EARLY,
    "title": _KNOWN,
    "approval": _KNOWN,
    "prompt": (*_ALL, "env"),
    "command": (*_ALL, "env", "prompt"),
    "env": (*_ALL, "env", "secret"),
    "cwd": (*_ALL, "env"),
    "http.url": (*_ALL, "env"),
    "http.headers": (*_ALL, "env", "secret"),
    "http.body": _ALL,
    "input": _ALL,
    "merge.into": _ALL,
    "run.workspace.setup": ("input", "run", "env"),
    "run.workspace": ("input", "run"),
}
_REFERRED = ("input", "steps", "item")
_SHAPED = ("input", "steps", "item", "subject")
_WITHOUT_PARTS = ("feedback", "attempt", "prompt")
MOST_NAMED = 10
# A loop gives the outputs of its items, in their order.
_LIST: Schema = {"type": "array"}


def find_bad_texts(
    steps: tuple[Step, ...], concurrency: Concurrency | None, declared: WorkflowDeclarations | None
) -> list[Flaw]:
    """Flaws in the texts of a graph, and in the lists and conditions of a workflow file."""
    flaws: list[Flaw] = []
    view = _View(declared=declared)
    if concurrency is not None and (declared is not None or concurrency.has_variables):
        flaws += view.check_text("run.concurrency.key", concurrency.key)
    if declared is not None and declared.workspace is not None:
        for text_field, text in find_workspace_texts(declared.workspace):
            flaws += view.check_text(f"run.{text_field}", text)
    for name, text in ({} if declared is None else declared.labels).items():
        flaws += view.check_text(f"run.labels.{name}", text)
    return [*flaws, *_bad_bodies(steps, view)]


def _bad_bodies(steps: tuple[Step, ...], around: _View) -> Iterator[Flaw]:
    if around.declared is None and not any(map(find_texts, all_steps(steps))):
        return
    upstream = Upstream(steps)
    named = {step.id: step for step in steps}
    around = replace(around, known={**around.known, **named})
    for step in steps:
        found = find_texts(step)
        asked = _condition_and_list(step) if around.declared is not None else ()
        if not found and not asked and not step.steps:
            continue
        view = replace(around, step=step, before=(*around.before, (upstream, step.id)))
        body = view if step.for_each is None else view.inside(step.for_each)
        for text_field, text in found:
            # The title of a loop is that of each of its items.
            yield from (body if text_field == "items.title" else view).check_text(text_field, text)
        for text_field, reference in asked:
            # A step that is not there at all is a flaw of the graph already.
            if reference.step is None or reference.step in view.known:
                yield from view.check_reference(text_field, reference)
        yield from _bad_bodies(step.steps, body)


def _condition_and_list(step: Step) -> tuple[tuple[str, Reference], ...]:
    asked = (("when", step.when), ("for_each", step.for_each))
    return tuple((field, reference) for field, reference in asked if reference is not None)


@dataclass(frozen=True, kw_only=True)
class _View:
    """The values that a text can name: declared inputs, steps done before its step, the item."""

    declared: WorkflowDeclarations | None
    step: Step | None = None
    # Every step of the bodies around the text.
    known: dict[str, Step] = field(default_factory=dict)
    # The order of each of these bodies, and the step of it that holds the text.
    before: tuple[tuple[Upstream, str], ...] = ()
    in_loop: bool = False
    item: Schema | None = None

    def inside(self, for_each: Reference) -> _View:
        try:
            listed = self._declared_schema(for_each)
        except KeyError:
            listed = None
        item = None if listed is None else listed.get("items")
        return replace(self, in_loop=True, item=item)

    def check_text(self, field: str, text: str) -> Iterator[Flaw]:
        try:
            template = parse_template(field, text)
        except InvalidInput as error:
            yield from self._check_each_variable(field, text) or [self._flaw(field, error.reason)]
            return
        for reference in template.references:
            yield from self.check_reference(field, reference)

    def _check_each_variable(self, field: str, text: str) -> list[Flaw]:
        """Flaws of each variable of a text by itself, and of text in braces that is none."""
        flaws: list[Flaw] = []
        for part in islice(scan_template(text), 2 * MAX_VARIABLES):
            if isinstance(part, InvalidVariable):
                root = part.written.partition(".")[0]
                known = ROOTS if root.isidentifier() and root not in ROOTS else ()
                flaw = self._flaw(field, part.reason)
                flaws.append(replace(flaw, named=part.written, guess=root, known=known))
            elif isinstance(part, Reference):
                flaws += self.check_reference(field, part)
        return flaws

    def check_reference(self, field: str, reference: Reference) -> Iterator[Flaw]:
        allowed = _allowed(field)
        if reference.root not in allowed:
            yield self._flaw(field, _out_of_place(reference, allowed), reference)
        elif (unseen := self._find_unseen(field, reference)) is not None:
            yield unseen
        elif reference.root in _SHAPED:
            yield from self._check_path(field, reference)
        else:
            yield from self._check_fixed(field, reference, reference.root)

    def _find_unseen(self, field: str, reference: Reference) -> Flaw | None:
        own = None if self.step is None else self.step.id
        match reference.root:
            case "steps" if reference.step not in self.known:
                flaw = self._flaw(field, f"{reference.step!r} is no step it can see", reference)
                return replace(flaw, guess=reference.step, known=self.known)
            case "steps" if not self._is_done(str(reference.step)):
                advice = "" if own == reference.step else f"add it to the needs of {own!r}"
                message = f"step {reference.step!r} is not done before this one"
                return self._flaw(field, message, reference, advice)
            case "item" if not self.in_loop:
                return self._flaw(field, f"{reference} stands in no loop", reference)
            case "subject" if self.step is None or self.step.verifies is None:
                advice = "say with `verifies:` which step it judges"
                return self._flaw(field, "subject is what a step verifies", reference, advice)
        return None

    def _check_path(self, field: str, reference: Reference) -> Iterator[Flaw]:
        if self._is_recorded(reference):
            return
        try:
            found = self._declared_schema(reference)
        except KeyError as error:
            part, known = error.args
            yield self._unknown(field, reference, part, known)
            return
        if field == "for_each" and found is not None and found.get("type", "array") != "array":
            yield self._flaw(field, f"{reference} is no list by its declaration", reference)

    def _is_recorded(self, reference: Reference) -> bool:
        """Whether Holdfast itself gives the value, whatever the outputs of the step declare."""
        match reference.parts:
            case ("steps", name, part) if part in RECORDED:
                work = self.known[name].work if name in self.known else None
                return work is not None and work.in_workspace
            case ("subject", part) if part == "branch" or part in RECORDED:
                return self.declared is not None and self.declared.workspace is not None
        return False

    def _declared_schema(self, reference: Reference) -> Schema | None:
        """The declared schema of a variable; raises `KeyError` where it leads to nothing."""
        parts = reference.parts
        match reference.root:
            case "input" if self.declared is not None:
                return json_schema.find_subschema(self.declared.input, parts[1:])
            case "steps":
                return json_schema.find_subschema(self._outputs_of(parts[1]), parts[2:])
            case "subject" if self.step is not None:
                return json_schema.find_subschema(
                    self._outputs_of(str(self.step.verifies)), parts[1:]
                )
            case "item":
                return json_schema.find_subschema(self.item, parts[1:])
        return None

    def _outputs_of(self, name: str) -> Schema | None:
        step = self.known.get(name)
        if step is not None and step.for_each is not None:
            return _LIST
        return None if step is None or step.work is None else step.work.outputs

    def _is_done(self, name: str) -> bool:
        return any(upstream.precedes(name, step) for upstream, step in self.before)

    def _check_fixed(self, field: str, reference: Reference, root: str) -> Iterator[Flaw]:
        rest = reference.parts[1:]
        if root in _WITHOUT_PARTS and rest:
            yield self._flaw(field, f"{root} has no parts; write {{{{ {root} }}}}", reference)
        elif root not in _WITHOUT_PARTS and len(rest) != 1:
            yield self._flaw(field, f"write {{{{ {root}.NAME }}}}, not {reference}", reference)
        elif root == "run" and rest[0] not in RUN_FIELDS:
            yield self._unknown(field, reference, rest[0], RUN_FIELDS)
        elif field == "run.workspace.branch" and rest == ("branch",):
            yield self._flaw(field, "the branch cannot be named after itself", reference)
        elif root == "env" and (self.declared is None or rest[0] not in self.declared.env):
            advice = f"allow it with `env: [{rest[0]}]` at the top of the file"
            yield self._flaw(field, f"{reference} is not allowed", reference, advice)

    def _unknown(self, field: str, reference: Reference, part: str, known: tuple[str, ...]) -> Flaw:
        there = ", ".join(known[:MOST_NAMED]) or self._describe_list(reference)
        reason = f"{reference}: there is no {part!r}; there is {there}"
        return replace(self._flaw(field, reason, reference), guess=part, known=known)

    def _describe_list(self, reference: Reference) -> str:
        """What the output of a loop holds; nothing is in that of another step."""
        named = reference.step if self.step is None or reference.step else self.step.verifies
        step = self.known.get(str(named))
        listed = step is not None and step.for_each is not None
        return "a list with a place for each item, from 0" if listed else "nothing"

    def _flaw(
        self, field: str, reason: str, reference: Reference | None = None, advice: str = ""
    ) -> Flaw:
        where = "" if self.step is None else f"step {self.step.id!r}: "
        return Flaw(
            message=f"{where}{field}: {reason}",
            step=self.step,
            field=field,
            named=None if reference is None else str(reference),
            advice=advice,
        )


def _allowed(field: str) -> tuple[str, ...]:
    for start, roots in ALLOWED.items():
        if field == start or field.startswith(f"{start}."):
            return roots
    return _REFERRED


def _out_of_place(reference: Reference, allowed: tuple[str, ...]) -> str:
    if reference.root == "secret":
        return "a secret goes into `env:` or `headers:`, by {{ secret.NAME }}, and nowhere else"
    return f"{reference.root} is not known there; one of {', '.join(allowed)} is"
