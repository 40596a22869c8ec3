"""Texts with variables in them: `{{ path }}`, and nothing that decides, repeats or calls."""

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

# What the worker alone knows: it stays in a rendered text until the worker fills it in.
WORKER_ROOTS = ("env", "secret", "prompt")
ROOTS = ("input", "run", "steps", "item", "subject", "feedback", "attempt", *WORKER_ROOTS)
RUN_FIELDS = ("id", "workflow", "key", "branch")
MAX_VARIABLES = 100
# Of all texts of a step together: they are made while others wait.
MAX_RENDERED = MEBIBYTE

_VARIABLE = re.compile(
    r"""\{\{\s*(?:(?P<path>[^{}'"\s]+)|'(?P<single>[^']*)'|"(?P<double>[^"]*)")\s*\}\}"""
)
_SHOWN = 30


class SkippedOutput:
    """What stands for the output of a step that was skipped: whatever is asked of it is null."""

    def __repr__(self) -> str:
        return "SKIPPED"


SKIPPED: Final = SkippedOutput()
Variables = Mapping[str, Any]


@dataclass(slots=True)
class TextLength:
    """How many characters there may be together, and how many there are."""

    most: int = MAX_RENDERED
    taken: int = 0

    def add(self, text: str) -> str:
        self.taken += len(text)
        if self.taken > self.most:
            raise Unresolved(f"its texts would be longer than {self.most} characters together")
        return text


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A rendered text; `segments` are there where the worker still has something to fill in.

    Every second one of them is then the path of what belongs there, and no value was ever looked
    at for variables.
    """

    text: str
    segments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class InvalidVariable:
    """What is no variable, and stands where one is wanted."""

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
        """What it stands for: exactly one variable keeps its type, anything else is text."""
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
        """The text; `inside` changes each value that does not stand at its very beginning."""
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
    """The template that a text is; what it says wrongly is refused."""
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
    """What a text is made of, in its order, also behind what is wrong in it."""
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
    """The value of a variable; of a step that was skipped, null."""
    if reference.root not in variables:
        raise Unresolved(f"there is no {reference.root} here")
    if reference.step is not None and variables["steps"].get(reference.step) is SKIPPED:
        return None
    if variables[reference.root] is SKIPPED:
        return None
    return reference.resolve(variables)


def render_value(value: object) -> str:
    """A value as part of a text: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
