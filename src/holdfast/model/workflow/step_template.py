"""The texts of a step, and the same with every variable in them replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from holdfast.errors import InvalidInput
from holdfast.model.text import MAX_TEXT, clean_key, digest
from holdfast.model.workflow.declarations import HttpCall, Work
from holdfast.model.workflow.reference import Reference, Unresolved
from holdfast.model.workflow.step import Step
from holdfast.model.workflow.template import MAX_RENDERED, Room, Scope, Template, parse

_LONGEST_WAY_OUT = len("%2e%2e")
# Far more than the arguments of a command can be.
MAX_FINISHED = 4 * MAX_RENDERED
_UNCERTAIN = frozenset({"steps", "item", "subject"})


def texts(step: Step) -> list[tuple[str, str]]:
    """Every text of a step that may hold variables, with its place."""
    found: list[tuple[str, str]] = []
    if step.title is not None:
        found.append(("title" if step.for_each is None else "items.title", step.title))
    if step.work is None:
        return found
    if step.approval is not None:
        found.append(("approval", step.approval))
    if step.concurrency is not None:
        found.append(("concurrency.key", step.concurrency.key))

    def note(place: str, text: str) -> str:
        found.append((place, text))
        return text

    _change_texts(step.work, note, note)
    return found


def references(step: Step) -> list[Reference]:
    """Every variable that the texts of a step name."""
    return [each for place, text in texts(step) for each in parse(place, text).references]


def is_uncertain(step: Step) -> bool:
    """Whether its texts name what is known, or turns out to be missing, only when it may start."""
    return step.work is not None and any(each.root in _UNCERTAIN for each in references(step))


def wanted_steps(step: Step) -> frozenset[str]:
    """The steps whose outputs its texts are made from."""
    found = references(step)
    named = {each.step for each in found if each.step is not None}
    if step.verifies is not None and any(each.root == "subject" for each in found):
        named.add(step.verifies)
    return frozenset(named)


def wanted_secrets(steps: Iterable[Step]) -> frozenset[str]:
    """The names of the secrets that the texts of some steps ask for."""
    found = [each for step in steps for each in references(step)]
    return frozenset(".".join(each.parts[1:]) for each in found if each.root == "secret")


def render_work(work: Work, scope: Scope) -> Work:
    """The work as a worker gets it; raises `Unresolved` where a variable leads to nothing."""
    later: dict[str, tuple[str, ...]] = {}
    room = Room()

    def text(place: str, written: str) -> str:
        template = parse(place, written)
        is_url = place == "http.url"
        rendered = template.text(scope, partial(quote, safe="") if is_url else str, room)
        if is_url:
            _check_url(template, rendered.text, scope)
        if rendered.segments:
            later[place] = rendered.segments
        return rendered.text

    def value(place: str, written: str) -> Any:  # noqa: ANN401 - JSON is any value
        return parse(place, written).value(scope, room)

    return replace(_change_texts(work, text, value), later=later)


def _check_url(template: Template, rendered: str, scope: Scope) -> None:
    """A value inside of a URL is one part of its path, and never a way out of it."""
    if _ways_out(rendered) > _ways_out(template.text(scope, lambda _: "value").text):
        raise Unresolved("a value in http.url is . or .., which leads elsewhere")


def _ways_out(url: str) -> int:
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    return sum(
        len(part) <= _LONGEST_WAY_OUT and unquote(part) in {".", ".."} for part in path.split("/")
    )


def try_texts(step: Step, scope: Scope) -> None:
    """Raise `Unresolved` when the work or the concurrency key of a step cannot be told."""
    if step.work is not None:
        render_work(step.work, scope)
    if step.concurrency is not None:
        render_key(step.concurrency.key, scope)


def finish_work(work: Work, look_up: Callable[[str, str], str]) -> Work:
    """What is left to the worker, filled in: `look_up("env", "HOME")`, `look_up("prompt", "")`.

    Only what the workflow itself wrote is replaced: a value that looks like a variable stays text.
    Raises `Unresolved` where all of it together would be too long: a prompt may stand in it often.
    """
    room = Room(most=MAX_FINISHED)

    def text(place: str, rendered: str) -> str:
        segments = work.later.get(place, (rendered,))
        return "".join(
            room.take(look_up(*_split(each)) if number % 2 else each)
            for number, each in enumerate(segments)
        )

    return replace(_change_texts(work, text, lambda _, value: value), later={})


def _split(path: str) -> tuple[str, str]:
    root, _, name = path.partition(".")
    return root, name


def _change_texts(
    work: Work, text: Callable[[str, str], str], inner: Callable[[str, str], Any]
) -> Work:
    """The work with each text changed; `inner` are those inside of JSON, and may become values."""
    http = work.http
    return replace(
        work,
        prompt=None if work.prompt is None else text("prompt", work.prompt),
        command=None
        if work.command is None
        else tuple([text(f"command.{n}", each) for n, each in enumerate(work.command)]),
        env={name: text(f"env.{name}", value) for name, value in work.env.items()},
        http=None
        if http is None
        else HttpCall(
            url=text("http.url", http.url),
            method=http.method,
            headers={n: text(f"http.headers.{n}", each) for n, each in http.headers.items()},
            body=_change_inner("http.body", http.body, inner),
        ),
        input=_change_inner("input", work.input, inner),
    )


def _change_inner(place: str, value: Any, change: Callable[[str, str], Any]) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return change(place, value)
    if isinstance(value, dict):
        return {name: _change_inner(place, each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_change_inner(place, each, change) for each in value]
    return value


def render_title(step: Step, scope: Scope) -> str | None:
    """What people read of a task, where the step says it; raises `Unresolved`."""
    said = step.approval if step.title is None else step.title
    if said is None or (step.title is None and step.work is None):
        return said
    return parse("title", said).text(scope).text[:MAX_TEXT]


def render_key(text: str, scope: Scope) -> str:
    """A concurrency key; one that is too long or holds control characters goes by its digest."""
    rendered = parse("concurrency.key", text).text(scope).text
    try:
        return clean_key("concurrency.key", rendered)
    except InvalidInput:
        return digest(rendered)
