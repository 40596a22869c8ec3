"""Templates: texts with variables `{{ path }}`, and no conditions, loops or calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from holdfast.errors import InvalidInput
from holdfast.model.workflow.reference import Reference, Unresolved
from holdfast.settings import MEBIBYTE

# Only the worker knows these values: the variables stay in a rendered text until it fills them in.
WORKER_ROOTS = ("env", "secret", "prompt")
ROOTS = ("input", "run", "steps", "item", "subject", "feedback", "attempt", *WORKER_ROOTS)
RUN_FIELDS = ("id", "workflow", "key", "branch")
MAX_VARIABLES = 100
# The most characters of all texts of a step together: others wait while they are rendered.
MAX_RENDERED = MEBIBYTE

_VARIABLE = re.compile(
    r"""\{\{\s*(?:(?P<path>[^{}'"\s]+)|'(?P<single>[^']*)'|"(?P<double>[^"]*)")\s*\}\}"""
)
_SHOWN = 30


class SkippedOutput:
    """The output of a skipped step: each reference into it gives null."""

    def __repr__(self) -> str:
        return "SKIPPED"


SKIPPED: Final = SkippedOutput()
Variables = Mapping[str, Any]


@dataclass(slots=True)
class TextLength:
    """The characters of some texts together, and the most that they may have."""

    most: int = MAX_RENDERED
    taken: int = 0

    def add(self, text: str) -> str:
        self.taken += len(text)
        if self.taken > self.most:
            raise Unresolved(f"its texts would be longer than {self.most} characters together")
        return text


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A rendered text; it has `segments` where the worker still has values to fill in.

    Every second segment is then the path of such a value. Rendered values themselves are never
    searched for variables.
    """

    text: str
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class InvalidVariable:
    """Text between braces that is no variable, and the reason."""

    written: str
    reason: str


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and the references between them, in their order."""

    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    def value(self, variables: Variables, length: TextLength | None = None) -> Any:  # noqa: ANN401 - JSON is any value
        """The value: a template of exactly one variable keeps the type, any other gives text."""
        length = length or TextLength()
        if len(self.parts) == 1 and isinstance(self.parts[0], Reference):
            found = resolve_reference(self.parts[0], variables)
            length.add(render_value(found))
            return found
        return self.text(variables, length=length).text

    def text(
        self,
        variables: Variables,
        inside: Callable[[str], str] = str,
        length: TextLength | None = None,
    ) -> RenderedText:
        """The text; `inside` changes each value that is not at the very beginning."""
        length = length or TextLength()
        segments: list[list[str]] = [[]]
        shown: list[str] = []
        for number, part in enumerate(self.parts):
            if isinstance(part, Reference) and part.root in WORKER_ROOTS:
                segments += [[str(part)], []]
                shown.append(f"{{{{ {part} }}}}")
            else:
                told = (
                    part
                    if isinstance(part, str)
                    else render_value(resolve_reference(part, variables))
                )
                told = inside(told) if number and isinstance(part, Reference) else told
                segments[-1].append(length.add(told))
                shown.append(told)
        return RenderedText(
            "".join(shown), tuple(map("".join, segments)) if len(segments) > 1 else ()
        )


def parse_template(field: str, text: str) -> Template:
    """The template of a text; refuses a text with an invalid variable."""
    try:
        return _parse_cached(text)
    except InvalidInput as error:
        raise InvalidInput(field, error.reason) from None


@lru_cache(maxsize=2_000)
def _parse_cached(text: str) -> Template:
    parts: list[str | Reference] = []
    literal = ""
    for part in scan_template(text):
        if isinstance(part, InvalidVariable):
            raise InvalidInput("text", part.reason)
        if isinstance(part, str):
            literal += part
            continue
        parts += [literal, part] if literal else [part]
        literal = ""
        if len(parts) > 2 * MAX_VARIABLES:
            raise InvalidInput("text", f"has more than {MAX_VARIABLES} variables")
    return Template((*parts, literal) if literal or not parts else tuple(parts))


def scan_template(text: str) -> Iterator[str | Reference | InvalidVariable]:
    """The parts of a text in order; the scan goes on after an invalid variable."""
    end = 0
    while (start := text.find("{{", end)) >= 0:
        yield text[end:start]
        found = _VARIABLE.match(text, start)
        close = text.find("}}", start)
        yield _no_variable(text, start, close) if found is None else _variable(found)
        if found is None and close < 0:
            return
        end = close + len("}}") if found is None else found.end()
    yield text[end:]


def _variable(found: re.Match[str]) -> str | Reference | InvalidVariable:
    if found["path"] is None:
        return str(found["double"] if found["single"] is None else found["single"])
    try:
        return Reference.parse("text", found["path"], roots=ROOTS)
    except InvalidInput as error:
        return InvalidVariable(written=found["path"], reason=error.reason)


def _no_variable(text: str, start: int, close: int) -> InvalidVariable:
    short = 0 <= close - start <= _SHOWN
    end = close + len("}}") if short else start + _SHOWN
    written = text[start:end].partition("\n")[0]
    shown = written if short else f"{written}…"
    advice = "write {{ input.name }}, or {{ '{{' }} for the braces themselves"
    return InvalidVariable(written=written, reason=f"{shown!r} is no variable; {advice}")


def resolve_reference(reference: Reference, variables: Variables) -> Any:  # noqa: ANN401 - JSON is any value
    """The value of a variable; null for the output of a skipped step.

    What Holdfast itself knows of a subject is kept beside it, because a subject may be a list.
    """
    if reference.root not in variables:
        raise Unresolved(f"there is no {reference.root} here")
    if reference.step is not None and variables["steps"].get(reference.step) is SKIPPED:
        return None
    if variables[reference.root] is SKIPPED:
        return None
    if reference.root == "subject" and (known := str(reference)) in variables:
        return variables[known]
    return reference.resolve(variables)


def render_value(value: object) -> str:
    """A value as part of a text: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
