"""Prompt feedback: what was said about the work, at the end of a prompt that does not name it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.model.verdict import describe_feedback
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.template import render_value

_HEADING = "This was said about the work so far:"


def add_feedback(prompt: str, feedback: object) -> str:
    """The prompt, with the feedback at its end if there is any."""
    return prompt if feedback is None else prompt.rstrip() + _write_ending(feedback)


def exchange_feedback(prompt: str, said: object, instead: object) -> str:
    """The prompt with other feedback, if what was said is at its end."""
    if said is None or not prompt.endswith(ending := _write_ending(said)):
        return prompt
    return add_feedback(prompt.removesuffix(ending), instead)


def add_to_work(work: StepWork, feedback: object) -> StepWork:
    """Rendered work with the feedback at the end of its prompt, if it has one."""
    if work.prompt is None or feedback is None:
        return work
    changed: dict[str, Any] = {"prompt": add_feedback(work.prompt, feedback)}
    if (pieces := work.later.get("prompt")) is not None:
        last = add_feedback(pieces[-1], feedback)
        changed["later"] = {**work.later, "prompt": (*pieces[:-1], last)}
    return replace(work, **changed)


def _write_ending(feedback: object) -> str:
    return f"\n\n{_HEADING}\n\n{render_value(describe_feedback(feedback))}\n"
