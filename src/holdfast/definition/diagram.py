"""Diagram: the graph of a workflow as lines of plain text, with joins, loops and verifiers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from holdfast.model.workflow.declarations import Merge
from holdfast.model.workflow.graph import Workflow
from holdfast.model.workflow.step import Step, all_steps

LONGEST = 60


def draw_workflow(workflow: Workflow) -> list[str]:
    """The name, and a line for each step; a step out of the order of lines says its needs."""
    width = max(len(step.id) for step in all_steps(workflow.steps))
    limit = workflow.concurrency
    shown = "" if limit is None else f"  at most {limit.limit} of {limit.key}"
    return [f"{workflow.name}{shown}", *_draw_body(workflow.steps, "", width)]


def _draw_body(steps: tuple[Step, ...], indent: str, width: int) -> Iterator[str]:
    before: str | None = None
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        told = " · ".join(each for each in _describe_step(step, before) if each)
        yield f"{indent}{'└─' if last else '├─'} {step.id:<{width}}  {told}".rstrip()
        yield from _draw_body(step.steps, f"{indent}{'   ' if last else '│  '}", width)
        before = step.id


def _describe_step(step: Step, before: str | None) -> Iterator[str]:
    yield _describe_work(step)
    if step.verifies is not None:
        yield f"verifies {step.verifies}, {_describe_rounds(step.max_rounds)}"
    if step.needs != (() if before is None else (before,)):
        yield f"after {', '.join(step.needs)}" if step.needs else "at once"
    if step.when is not None:
        yield f"only when {step.when}"
    failure = step.on_failure
    if failure.action == "goto":
        yield f"on failure back to {failure.step}, {_describe_rounds(failure.max_rounds)}"
    elif failure.escalation is not None:
        other = failure.escalation
        then = "" if other.then == "fail" else f", then {other.then}"
        yield f"on failure to {other.agent}{then}"
    elif failure.action != "fail":
        yield f"on failure {failure.action}"


def _describe_work(step: Step) -> str:
    if step.for_each is not None:
        at_once = "one at a time" if step.parallel == 1 else f"{step.parallel} at once"
        return f"for each of {step.for_each}, {at_once}"
    if step.approval is not None:
        return f"approval: {_shorten(step.approval)}"
    work = step.work
    if step.lands:
        return "merges the commits of its item, in the order of the items"
    if work is None or step.agent != "default":
        return step.agent
    if work.merge is not None:
        told = _describe_merge(work.merge)
    elif work.http is not None:
        told = f"{work.http.method} {work.http.url}"
    elif work.workflow is not None:
        told = f"workflow {work.workflow}"
    else:
        told = shlex.join(work.command or ())
    return _shorten(told)


def _describe_merge(merge: Merge) -> str:
    if merge.strategy == "leave":
        return "leaves the branch"
    how = "" if merge.strategy == "merge" else f", {merge.strategy}"
    return f"merge into {merge.into}{how}"


def _describe_rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    plain = "".join(each if each.isprintable() else " " for each in line)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"
