"""Step templates: the texts of a step, and the same texts with every variable replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from holdfast.errors import InvalidInput
from holdfast.model.text import MAX_TEXT, clean_key, digest
from holdfast.model.workflow.declarations import HttpCall, StepWork, Workspace
from holdfast.model.workflow.reference import Reference, Unresolved
from holdfast.model.workflow.step import Step
from holdfast.model.workflow.template import (
    MAX_RENDERED,
    Template,
    TextLength,
    Variables,
    parse_template,
)

_LONGEST_DOT_SEGMENT = len("%2e%2e")
# Far more than the operating system allows for the arguments of a command.
MAX_FINISHED = 4 * MAX_RENDERED
_LATER_ROOTS = frozenset({"steps", "item", "subject"})


def find_texts(step: Step) -> list[tuple[str, str]]:
    """Every text of a step that may hold variables, each with its field."""
    found: list[tuple[str, str]] = []
    if step.title is not None:
        found.append(("title" if step.for_each is None else "items.title", step.title))
    limit = step.concurrency
    if limit is not None and (limit.has_variables or step.work is not None):
        found.append(("concurrency.key", limit.key))
    if step.work is None:
        return found
    if step.approval is not None:
        found.append(("approval", step.approval))

    def note(field: str, text: str) -> str:
        found.append((field, text))
        return text

    _change_texts(step.work, note, note)
    if step.handed_over is not None and step.handed_over.work is not None:
        _change_texts(step.handed_over.work, note, note)
    return list(dict.fromkeys(found))


def find_workspace_texts(workspace: Workspace) -> list[tuple[str, str]]:
    """Every text of a workspace that may hold variables, each with its field."""
    found: list[tuple[str, str]] = []

    def note(field: str, text: str) -> str:
        found.append((field, text))
        return text

    _change_workspace(workspace, note)
    return found


def find_references(step: Step) -> list[Reference]:
    """The references of all variables in the texts of a step."""
    return [
        each for field, text in find_texts(step) for each in parse_template(field, text).references
    ]


def names_feedback(work: StepWork) -> bool:
    """Whether a text of some work names the feedback, so that its prompt need not end with it."""
    named: list[Reference] = []

    def note(field: str, text: str) -> str:
        named.extend(parse_template(field, text).references)
        return text

    _change_texts(work, note, note)
    return any(each.root == "feedback" for each in named)


def needs_later_values(step: Step) -> bool:
    """Whether texts of the step name values that are not known before the step may start."""
    return any(each.root in _LATER_ROOTS for each in find_references(step))


def steps_in_texts(step: Step) -> frozenset[str]:
    """The steps whose outputs the texts of a step name."""
    found = find_references(step)
    named = {each.step for each in found if each.step is not None}
    if step.verifies is not None and any(each.root == "subject" for each in found):
        named.add(step.verifies)
    return frozenset(named)


def secrets_in_texts(steps: Iterable[Step]) -> frozenset[str]:
    """The names of the secrets in the texts of some steps."""
    found = [each for step in steps for each in find_references(step)]
    return frozenset(".".join(each.parts[1:]) for each in found if each.root == "secret")


def render_work(work: StepWork, variables: Variables) -> StepWork:
    """The work for a worker, rendered; raises `Unresolved` where a variable leads to nothing."""
    later: dict[str, tuple[str, ...]] = {}
    length = TextLength()

    def text(field: str, written: str) -> str:
        template = parse_template(field, written)
        is_url = field == "http.url"
        rendered = template.text(variables, partial(quote, safe="") if is_url else str, length)
        if is_url:
            _check_url(template, rendered.text, variables)
        if rendered.segments:
            later[field] = rendered.segments
        return rendered.text

    def value(field: str, written: str) -> Any:  # noqa: ANN401 - JSON is any value
        return parse_template(field, written).value(variables, length)

    return replace(_change_texts(work, text, value), later=later)


def render_workspace(workspace: Workspace, variables: Variables) -> Workspace:
    """The workspace, rendered; raises `Unresolved` where a variable leads to nothing."""
    rendered = render_work(StepWork(workspace=workspace), variables).workspace
    return workspace if rendered is None else rendered


def _check_url(template: Template, rendered: str, variables: Variables) -> None:
    """Refuse a value that adds a part `.` or `..` to the path of a URL."""
    if _count_dot_segments(rendered) > _count_dot_segments(
        template.text(variables, lambda _: "value").text
    ):
        raise Unresolved("a value in http.url is . or .., which leads elsewhere")


def _count_dot_segments(url: str) -> int:
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    return sum(
        len(part) <= _LONGEST_DOT_SEGMENT and unquote(part) in {".", ".."}
        for part in path.split("/")
    )


def try_rendering(step: Step, variables: Variables) -> None:
    """Raise `Unresolved` when the work or the concurrency key of a step cannot be rendered."""
    if step.work is not None:
        render_work(step.work, variables)
    if step.handed_over is not None:
        try_rendering(step.handed_over, variables)
    if step.concurrency is not None:
        render_key(step.concurrency.key, variables)


def finish_work(work: StepWork, look_up: Callable[[str, str], str]) -> StepWork:
    """The work with the worker's own values: `look_up("env", "HOME")`, `look_up("prompt", "")`.

    Only variables that the workflow itself wrote are replaced: a value that looks like a variable
    stays text. Raises `Unresolved` where the texts together would be too long, because a long
    prompt may stand in them many times.
    """
    length = TextLength(most=MAX_FINISHED)

    def text(field: str, rendered: str) -> str:
        segments = work.later.get(field, (rendered,))
        return "".join(
            length.add(look_up(*_split(each)) if number % 2 else each)
            for number, each in enumerate(segments)
        )

    return replace(_change_texts(work, text, lambda _, value: value), later={})


def _split(path: str) -> tuple[str, str]:
    root, _, name = path.partition(".")
    return root, name


def _change_texts(
    work: StepWork, text: Callable[[str, str], str], inner: Callable[[str, str], Any]
) -> StepWork:
    """The work with each text changed; `inner` changes texts inside JSON, and may give values."""
    http = work.http
    return replace(
        work,
        prompt=None if work.prompt is None else text("prompt", work.prompt),
        command=None
        if work.command is None
        else tuple([text(f"command.{n}", each) for n, each in enumerate(work.command)]),
        env={name: text(f"env.{name}", value) for name, value in work.env.items()},
        cwd=None if work.cwd is None else text("cwd", work.cwd),
        http=None
        if http is None
        else HttpCall(
            url=text("http.url", http.url),
            method=http.method,
            headers={n: text(f"http.headers.{n}", each) for n, each in http.headers.items()},
            body=_change_inner("http.body", http.body, inner),
        ),
        input=_change_inner("input", work.input, inner),
        merge=work.merge
        if work.merge is None or work.merge.into is None
        else replace(work.merge, into=text("merge.into", work.merge.into)),
        workspace=None if work.workspace is None else _change_workspace(work.workspace, text),
    )


def _change_workspace(workspace: Workspace, text: Callable[[str, str], str]) -> Workspace:
    """The workspace with each text changed."""
    start, branch = workspace.start, workspace.branch
    return replace(
        workspace,
        git=text("workspace.git", workspace.git),
        start=None if start is None else text("workspace.from", start),
        branch=None if branch is None else text("workspace.branch", branch),
        setup=tuple([text(f"workspace.setup.{n}", each) for n, each in enumerate(workspace.setup)]),
    )


def _change_inner(field: str, value: Any, change: Callable[[str, str], Any]) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return change(field, value)
    if isinstance(value, dict):
        return {name: _change_inner(field, each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_change_inner(field, each, change) for each in value]
    return value


def render_title(step: Step, variables: Variables) -> str | None:
    """The title of a task, where its step has one; raises `Unresolved`."""
    said = step.approval if step.title is None else step.title
    if said is None or (step.title is None and step.work is None):
        return said
    return parse_template("title", said).text(variables).text[:MAX_TEXT]


def render_key(text: str, variables: Variables) -> str:
    """A concurrency key; the digest stands for a key that is too long or has control characters."""
    rendered = parse_template("concurrency.key", text).text(variables).text
    try:
        return clean_key("concurrency.key", rendered)
    except InvalidInput:
        return digest(rendered)
