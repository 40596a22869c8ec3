"""Variables that a graph's texts name, against what will be known when they are rendered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from holdfast.errors import InvalidInput
from holdfast.model import json_schema
from holdfast.model.json_schema import Schema
from holdfast.model.workflow.declarations import Declared
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, Step, Upstream, every
from holdfast.model.workflow.step_template import texts
from holdfast.model.workflow.template import MAX_VARIABLES, ROOTS, RUN_FIELDS, Wrong, parse, scan

_EARLY = ("input", "run", "item")
_KNOWN = (*_EARLY, "steps")
_ALL = (*_KNOWN, "subject", "feedback", "attempt")
# Which variables a text may name, by the beginning of its place.
ALLOWED = {
    "run.concurrency.key": ("input",),
    "concurrency.key": _EARLY,
    "items.title": _EARLY,
    "title": _KNOWN,
    "approval": _KNOWN,
    "prompt": (*_ALL, "env"),
    "command": (*_ALL, "env", "prompt"),
    "env": (*_ALL, "env", "secret"),
    "http.url": (*_ALL, "env"),
    "http.headers": (*_ALL, "env", "secret"),
    "http.body": _ALL,
    "input": _ALL,
}
_REFERRED = ("input", "steps", "item")
_SHAPED = ("input", "steps", "item", "subject")
_WHOLE = ("feedback", "attempt", "prompt")
MOST_NAMED = 10


def bad_texts(
    steps: tuple[Step, ...], concurrency: Concurrency | None, declared: Declared | None
) -> list[Flaw]:
    """What is wrong with the texts of a graph, and with the lists and conditions of a file."""
    flaws: list[Flaw] = []
    view = _View(declared=declared)
    if declared is not None and concurrency is not None:
        flaws += view.look("run.concurrency.key", concurrency.key)
    return [*flaws, *_bad_bodies(steps, view)]


def _bad_bodies(steps: tuple[Step, ...], around: _View) -> Iterator[Flaw]:
    if around.declared is None and not any(map(texts, every(steps))):
        return
    upstream = Upstream(steps)
    named = {step.id: step for step in steps}
    around = replace(around, known={**around.known, **named})
    for step in steps:
        found = texts(step)
        asked = _asked(step) if around.declared is not None else ()
        if not found and not asked and not step.steps:
            continue
        view = replace(around, step=step, before=(*around.before, (upstream, step.id)))
        body = view if step.for_each is None else view.inside(step.for_each)
        for place, text in found:
            # The title of a loop is that of each of its items.
            yield from (body if place == "items.title" else view).look(place, text)
        for place, reference in asked:
            # A step that is not there at all is a flaw of the graph already.
            if reference.step is None or reference.step in view.known:
                yield from view.check(place, reference)
        yield from _bad_bodies(step.steps, body)


def _asked(step: Step) -> tuple[tuple[str, Reference], ...]:
    asked = (("when", step.when), ("for_each", step.for_each))
    return tuple((place, reference) for place, reference in asked if reference is not None)


@dataclass(frozen=True, kw_only=True)
class _View:
    """What a text can see: what the workflow declares, the steps done before it, its item."""

    declared: Declared | None
    step: Step | None = None
    # Every step of the bodies around, and, for each of these, where in it this stands.
    known: dict[str, Step] = field(default_factory=dict)
    before: tuple[tuple[Upstream, str], ...] = ()
    in_loop: bool = False
    item: Schema | None = None

    def inside(self, for_each: Reference) -> _View:
        try:
            listed = self._schema(for_each)
        except KeyError:
            listed = None
        item = None if listed is None else listed.get("items")
        return replace(self, in_loop=True, item=item)

    def look(self, place: str, text: str) -> Iterator[Flaw]:
        try:
            template = parse(place, text)
        except InvalidInput as error:
            yield from self._each(place, text) or [self._flaw(place, error.reason)]
            return
        for reference in template.references:
            yield from self.check(place, reference)

    def _each(self, place: str, text: str) -> list[Flaw]:
        """What is wrong with each variable of a text by itself, and with what is none."""
        flaws: list[Flaw] = []
        for part in islice(scan(text), 2 * MAX_VARIABLES):
            if isinstance(part, Wrong):
                root = part.written.partition(".")[0]
                known = ROOTS if root.isidentifier() and root not in ROOTS else ()
                flaw = self._flaw(place, part.reason)
                flaws.append(replace(flaw, named=part.written, guess=root, known=known))
            elif isinstance(part, Reference):
                flaws += self.check(place, part)
        return flaws

    def check(self, place: str, reference: Reference) -> Iterator[Flaw]:
        allowed = _allowed(place)
        if reference.root not in allowed:
            yield self._flaw(place, _out_of_place(reference, allowed), reference)
        elif (unseen := self._unseen(place, reference)) is not None:
            yield unseen
        elif reference.root in _SHAPED:
            yield from self._path(place, reference)
        else:
            yield from self._fixed(place, reference, reference.root)

    def _unseen(self, place: str, reference: Reference) -> Flaw | None:
        own = None if self.step is None else self.step.id
        match reference.root:
            case "steps" if reference.step not in self.known:
                flaw = self._flaw(place, f"{reference.step!r} is no step it can see", reference)
                return replace(flaw, guess=reference.step, known=self.known)
            case "steps" if not self._is_done(str(reference.step)):
                advice = "" if own == reference.step else f"add it to the needs of {own!r}"
                message = f"step {reference.step!r} is not done before this one"
                return self._flaw(place, message, reference, advice)
            case "item" if not self.in_loop:
                return self._flaw(place, f"{reference} stands in no loop", reference)
            case "subject" if self.step is None or self.step.verifies is None:
                advice = "say with `verifies:` which step it judges"
                return self._flaw(place, "subject is what a step verifies", reference, advice)
        return None

    def _path(self, place: str, reference: Reference) -> Iterator[Flaw]:
        try:
            found = self._schema(reference)
        except KeyError as error:
            part, known = error.args
            yield self._unknown(place, reference, part, known)
            return
        if place == "for_each" and found is not None and found.get("type", "array") != "array":
            yield self._flaw(place, f"{reference} is no list by its declaration", reference)

    def _schema(self, reference: Reference) -> Schema | None:
        """What is declared of a variable; raises `KeyError` where it leads to nothing."""
        parts = reference.parts
        match reference.root:
            case "input" if self.declared is not None:
                return json_schema.enter(self.declared.input, parts[1:])
            case "steps":
                return json_schema.enter(self._outputs(parts[1]), parts[2:])
            case "subject" if self.step is not None:
                return json_schema.enter(self._outputs(str(self.step.verifies)), parts[1:])
            case "item":
                return json_schema.enter(self.item, parts[1:])
        return None

    def _outputs(self, name: str) -> Schema | None:
        work = self.known[name].work if name in self.known else None
        return None if work is None else work.outputs

    def _is_done(self, name: str) -> bool:
        return any(upstream.precedes(name, step) for upstream, step in self.before)

    def _fixed(self, place: str, reference: Reference, root: str) -> Iterator[Flaw]:
        rest = reference.parts[1:]
        if root in _WHOLE and rest:
            yield self._flaw(place, f"{root} has no parts; write {{{{ {root} }}}}", reference)
        elif root not in _WHOLE and len(rest) != 1:
            yield self._flaw(place, f"write {{{{ {root}.NAME }}}}, not {reference}", reference)
        elif root == "run" and rest[0] not in RUN_FIELDS:
            yield self._unknown(place, reference, rest[0], RUN_FIELDS)
        elif root == "env" and (self.declared is None or rest[0] not in self.declared.env):
            advice = f"allow it with `env: [{rest[0]}]` at the top of the file"
            yield self._flaw(place, f"{reference} is not allowed", reference, advice)

    def _unknown(self, place: str, reference: Reference, part: str, known: tuple[str, ...]) -> Flaw:
        there = ", ".join(known[:MOST_NAMED]) or "nothing"
        reason = f"{reference}: there is no {part!r}; there is {there}"
        return replace(self._flaw(place, reason, reference), guess=part, known=known)

    def _flaw(
        self, place: str, reason: str, reference: Reference | None = None, advice: str = ""
    ) -> Flaw:
        where = "" if self.step is None else f"step {self.step.id!r}: "
        return Flaw(
            message=f"{where}{place}: {reason}",
            step=self.step,
            field=place,
            named=None if reference is None else str(reference),
            advice=advice,
        )


def _allowed(place: str) -> tuple[str, ...]:
    for start, roots in ALLOWED.items():
        if place == start or place.startswith(f"{start}."):
            return roots
    return _REFERRED


def _out_of_place(reference: Reference, allowed: tuple[str, ...]) -> str:
    if reference.root == "secret":
        return "a secret goes into `env:` or `headers:`, by {{ secret.NAME }}, and nowhere else"
    return f"{reference.root} is not known there; one of {', '.join(allowed)} is"
