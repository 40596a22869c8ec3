"""A workflow's graph as lines of plain text: order, joins, loops, verifiers, ways back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.step import Step, all_steps

LONGEST = 60


def draw(workflow: Workflow) -> list[str]:
    """One line for each step below the name; what is not in the order of the lines says so."""
    width = max(len(step.id) for step in all_steps(workflow.steps))
    limit = workflow.concurrency
    shown = "" if limit is None else f"  at most {limit.limit} of {limit.key}"
    return [f"{workflow.name}{shown}", *_body(workflow.steps, "", width)]


def _body(steps: tuple[Step, ...], indent: str, width: int) -> Iterator[str]:
    before: str | None = None
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        told = " · ".join(each for each in _told(step, before) if each)
        yield f"{indent}{'└─' if last else '├─'} {step.id:<{width}}  {told}".rstrip()
        yield from _body(step.steps, f"{indent}{'   ' if last else '│  '}", width)
        before = step.id


def _told(step: Step, before: str | None) -> Iterator[str]:
    yield _does(step)
    if step.verifies is not None:
        yield f"verifies {step.verifies}, {_rounds(step.max_rounds)}"
    if step.needs != (() if before is None else (before,)):
        yield f"after {', '.join(step.needs)}" if step.needs else "at once"
    if step.when is not None:
        yield f"only when {step.when}"
    failure = step.on_failure
    if failure.action == "goto":
        yield f"on failure back to {failure.step}, {_rounds(failure.max_rounds)}"
    elif failure.action != "fail":
        yield f"on failure {failure.action}"


def _does(step: Step) -> str:
    if step.for_each is not None:
        at_once = "one at a time" if step.parallel == 1 else f"{step.parallel} at once"
        return f"for each of {step.for_each}, {at_once}"
    if step.approval is not None:
        return f"approval: {_short(step.approval)}"
    work = step.work
    if work is None or step.agent != "default":
        return step.agent
    if work.http is not None:
        return _short(f"{work.http.method} {work.http.url}")
    if work.workflow is not None:
        return f"workflow {work.workflow}"
    return _short(shlex.join(work.command or ()))


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _short(text: str) -> str:
    line = " ".join(text.split())
    plain = "".join(each if each.isprintable() else " " for each in line)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"
