"""Loops: the steps of an older run in a row, where a loop becomes a step for each story."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.importing.rows import FAILED_BEFORE, Row, row_as_json, sort_key
from holdfast.model.status import Status

STEP_STATUSES = {
    "waiting": Status.QUEUED,
    "pending": Status.QUEUED,
    "running": Status.QUEUED,
    "done": Status.DONE,
    "failed": Status.FAILED,
}
STORY_STATUSES = ("pending", "running", "done", "failed")
OPEN_VERIFIER = ("pending", "running")


class Contradiction(Exception):
    """A run in a state that no pipeline could have reached."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedStep:
    """One step of the row, with its old status and its status here."""

    name: str
    was: str
    status: Status
    agent: str
    payload: Row
    result: Any = None


def order_steps(steps: Sequence[Row], stories: Sequence[Row]) -> list[ImportedStep]:
    """Steps in their order; the stories of a loop one by one, each followed by its verifier."""
    if not stories:
        return [_make_step(step, step["step_id"], step["status"]) for step in steps]
    loop = _find_loop(stories, steps)
    verifier = _find_verifier(loop, steps)
    links: list[ImportedStep] = []
    for step in steps:
        if step is loop:
            links += _expand_loop(loop, verifier, stories)
        elif step is not verifier:
            links.append(_make_step(step, step["step_id"], step["status"]))
    return links


def read_config(loop: Row) -> dict[str, Any]:
    config = json.loads(loop.get("loop_config") or "{}")
    if not isinstance(config, dict):
        raise TypeError
    return config


def describe_missing_verifier(steps: Sequence[Row]) -> str | None:
    """A remark on open loops whose verifying step is missing; None where there is none."""
    told = [
        f"{loop['step_id']} has each story verified by {_verifier_id(read_config(loop))!r}, and no "
        "step behind it is that: its stories go on unverified"
        for loop in _loops(steps)
        if loop["status"] != "done"
        and _verifies_each(read_config(loop))
        and _find_verifier(loop, steps) is None
    ]
    return "; ".join(told) or None


def _loops(steps: Sequence[Row]) -> list[Row]:
    return [step for step in steps if step.get("type") == "loop"]


def _find_loop(stories: Sequence[Row], steps: Sequence[Row]) -> Row:
    """The loop over the stories, which belong to the run: the first loop takes them all.

    The file does not say which stories belong to a second loop, so that one must be done.
    """
    loops, story = _loops(steps), stories[0]
    if not loops:
        reason = "none of its steps is a loop over stories"
        raise Contradiction(f"the story {story['id']} is {story['status']}, and {reason}")
    first, *others = loops
    for other in others:
        if other["status"] != "done":
            raise Contradiction(
                f"its second loop {other['step_id']} is {other['status']}, and whether the story "
                f"{story['id']} is of that one or of {first['step_id']} is not said"
            )
    return first


def _find_verifier(loop: Row, steps: Sequence[Row]) -> Row | None:
    """The step that verifies each story by itself, if there is one."""
    config = read_config(loop)
    if not _verifies_each(config):
        return None
    later = [step for step in steps if step["step_index"] > loop["step_index"]]
    return next((step for step in later if step["step_id"] == _verifier_id(config)), None)


def _verifies_each(config: dict[str, Any]) -> bool:
    return bool(config.get("verify_each") or config.get("verifyEach"))


def _verifier_id(config: dict[str, Any]) -> object:
    return config.get("verify_step") or config.get("verifyStep")


def _expand_loop(loop: Row, verifier: Row | None, stories: Sequence[Row]) -> Iterator[ImportedStep]:
    statuses = _story_statuses(loop, stories)
    unseen = _find_unverified(loop, verifier, stories)
    for number, (story, status) in enumerate(zip(stories, statuses, strict=True), start=1):
        link = _make_step(loop, f"{loop['step_id']}.{number}", status, story)
        yield replace(link, was=story["status"])
        if verifier is not None:
            judged = "done" if status == "done" else "waiting"
            if story is unseen:
                judged = verifier["status"]
            yield _make_step(verifier, f"{verifier['step_id']}.{number}", judged, story)


def _story_statuses(loop: Row, stories: Sequence[Row]) -> list[str]:
    """The statuses of the stories; a failed loop failed at its first story that is not done."""
    statuses = [story["status"] for story in stories]
    unfinished = [place for place, status in enumerate(statuses) if status != "done"]
    if loop["status"] == "done" and unfinished:
        story = stories[unfinished[0]]
        raise Contradiction(f"its loop is done, and the story {story['id']} is {story['status']}")
    if loop["status"] == "failed" and unfinished and "failed" not in statuses:
        statuses[unfinished[0]] = "failed"
    return statuses


def _find_unverified(loop: Row, verifier: Row | None, stories: Sequence[Row]) -> Row | None:
    """The story that was set to done before its verification: the last one done, if any.

    There is one while the verifier is open or has failed, and while the loop runs with no story
    at work.
    """
    done = [story for story in stories if story["status"] == "done"]
    if verifier is None or not done:
        return None
    at_work = any(story["status"] == "running" for story in stories)
    between = loop["status"] == "running" and not at_work
    if not between and verifier["status"] not in {*OPEN_VERIFIER, "failed"}:
        return None
    return max(done, key=lambda story: (sort_key(story.get("updated_at")), story["story_index"]))


def _make_step(step: Row, name: str, status: str, story: Row | None = None) -> ImportedStep:
    payload = (
        row_as_json(step) if story is None else {**row_as_json(step), "story": row_as_json(story)}
    )
    told = (step if story is None else story).get("output")
    return ImportedStep(
        name=name,
        was=status,
        status=STEP_STATUSES[status],
        agent=str(step.get("agent_id") or "default"),
        payload=payload,
        result=told or FAILED_BEFORE if status == "failed" else told,
    )
