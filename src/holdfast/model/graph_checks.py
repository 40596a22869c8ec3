"""Everything that can be wrong with a graph, found before it is used."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection

from holdfast.errors import InvalidInput
from holdfast.model.reference import Reference
from holdfast.model.retry import MAX_COUNT, RetryPolicy, positive_microseconds
from holdfast.model.status import Kind
from holdfast.model.step import Concurrency, OnFailure, Step, every, links, reach
from holdfast.model.text import clean_name, clean_text

MAX_STEPS = 10_000
MAX_PRIORITY = 2**30 - 1

FIELDS = (
    ("id", str, "text"),
    ("needs", tuple, "a tuple of the names of steps"),
    ("agent", str, "text"),
    ("retry", RetryPolicy, "a RetryPolicy"),
    ("tags", tuple, "a tuple of names"),
    ("priority", int, "a whole number"),
    ("concurrency", Concurrency | None, "a Concurrency"),
    ("when", Reference | None, "a Reference"),
    ("on_failure", OnFailure, "an OnFailure"),
    ("verifies", str | None, "the name of a step"),
    ("max_rounds", int, "a whole number"),
    ("approval", str | None, "text"),
    ("for_each", Reference | None, "a Reference"),
    ("parallel", int, "a whole number"),
)


def find_mistakes(steps: tuple[Step, ...], concurrency: Concurrency | None) -> list[str]:
    """Every mistake of a graph; of its fields first, because the rest builds on them."""
    mistakes = _bad_fields(steps)
    if not isinstance(concurrency, Concurrency | None):
        mistakes.append("its concurrency must be a Concurrency")
    if not mistakes:
        mistakes = [*_bad_steps(steps), *_bad_bodies(steps, ())]
    return mistakes


def _bad_fields(steps: object) -> list[str]:
    """Fields of a wrong type: nothing else can be said before they are right."""
    if not isinstance(steps, tuple) or not all(isinstance(step, Step) for step in steps):
        return ["its steps must be a tuple of Step"]
    mistakes = [
        f"step {step.id!r}: {name} must be {words}"
        for step in steps
        for name, kind, words in FIELDS
        if isinstance(getattr(step, name), bool) or not isinstance(getattr(step, name), kind)
    ]
    mistakes += [
        f"step {step.id!r} needs {need!r}, which is not the name of a step"
        for step in steps
        if isinstance(step.needs, tuple)
        for need in step.needs
        if not isinstance(need, str)
    ]
    for step in steps:
        mistakes += _bad_fields(step.steps)
    return mistakes


def _bad_steps(steps: tuple[Step, ...]) -> list[str]:
    if not steps:
        return ["has no steps"]
    found = list(every(steps))
    if len(found) > MAX_STEPS:
        return [f"has {len(found)} steps; at most {MAX_STEPS} fit one workflow"]
    mistakes = [
        f"step {name!r} is defined {count} times"
        for name, count in Counter(step.id for step in found).items()
        if count > 1
    ]
    for step in found:
        try:
            clean_name("step", step.id)
            clean_name("agent", step.agent)
            for tag in step.tags:
                clean_name("tag", tag)
            if step.timeout is not None:
                positive_microseconds("timeout", step.timeout)
            if step.approval is not None:
                clean_text("approval", step.approval)
        except InvalidInput as error:
            mistakes.append(f"step {step.id!r}: {error}")
        if not -MAX_PRIORITY <= step.priority <= MAX_PRIORITY:
            mistakes.append(f"step {step.id!r}: priority: must be within {MAX_PRIORITY} of 0")
        mistakes += [
            f"step {step.id!r}: {name}: must be a whole number from 1 to {MAX_COUNT}"
            for name, count in _counts(step)
            if not 1 <= count <= MAX_COUNT
        ]
    return mistakes


def _counts(step: Step) -> tuple[tuple[str, int], ...]:
    return (
        ("parallel", step.parallel),
        ("max_rounds", step.max_rounds),
        ("on_failure.max_rounds", step.on_failure.max_rounds),
    )


def _bad_bodies(steps: tuple[Step, ...], outer: tuple[str, ...]) -> list[str]:
    """Mistakes in how the steps of one body refer to each other, and of the bodies inside it."""
    mistakes = [*_bad_needs(steps), *_bad_names(steps)]
    if not mistakes:
        mistakes = _cycles(steps) or _bad_detours(steps)
    known = (*outer, *(step.id for step in steps))
    for step in steps:
        mistakes += _bad_references(step, known)
        if step.for_each is not None:
            if not step.steps:
                mistakes.append(f"step {step.id!r} is a loop without steps")
            mistakes += _bad_bodies(step.steps, known)
        elif step.steps:
            mistakes.append(f"step {step.id!r} has steps of its own but no for_each")
    return mistakes


def _bad_names(steps: tuple[Step, ...]) -> list[str]:
    """Steps that verify or go back to what is not beside them."""
    beside = {step.id for step in steps}
    mistakes = []
    for step in steps:
        for field, name in (("verifies", step.verifies), ("goes to", step.on_failure.step)):
            if name is not None and (name not in beside or name == step.id):
                hint = _nearest(name, beside - {step.id})
                mistakes.append(
                    f"step {step.id!r} {field} {name!r}, which is no step beside it{hint}"
                )
        if (step.on_failure.action == "goto") != (step.on_failure.step is not None):
            mistakes.append(f"step {step.id!r}: on_failure names a step exactly with goto")
        if step.kind is not Kind.WORK and step.verifies is not None:
            mistakes.append(f"step {step.id!r} verifies, so it can be no loop and no approval")
        if step.for_each is not None and step.approval is not None:
            mistakes.append(f"step {step.id!r} cannot be a loop and an approval at once")
    return mistakes or _bad_subjects(steps)


def _bad_subjects(steps: tuple[Step, ...]) -> list[str]:
    """What no verifier can send back, or two would judge without hearing of each other."""
    named = {step.id: step for step in steps}
    mistakes = []
    for name, count in Counter(step.verifies for step in steps).items():
        if name is None:
            continue
        if count > 1:
            judges = " and ".join(repr(step.id) for step in steps if step.verifies == name)
            reason = "one gives the verdict, and may need what the others found"
            mistakes.append(f"step {name!r} is verified by {judges}; {reason}")
        if named[name].approval is not None:
            mistakes.append(f"step {name!r} is an approval, which a person settles; verify no such")
        if named[name].verifies is not None:
            mistakes.append(f"step {name!r} is a verifier itself; verify what it verifies")
    return mistakes


def _bad_detours(steps: tuple[Step, ...]) -> list[str]:
    """A step can go back only to what it needs, near or far."""
    needs = links(steps)
    return [
        f"step {step.id!r} goes back to {step.on_failure.step!r}, which it does not need"
        for step in steps
        if step.on_failure.step is not None and step.on_failure.step not in reach(needs, step.id)
    ]


def _bad_references(step: Step, known: tuple[str, ...]) -> list[str]:
    return [
        f"step {step.id!r}: {field}: {reference.step!r} is no step it can see"
        + _nearest(reference.step, set(known) - {step.id})
        for field, reference in (("when", step.when), ("for_each", step.for_each))
        if reference is not None and reference.step is not None and reference.step not in known
    ]


def _bad_needs(steps: tuple[Step, ...]) -> list[str]:
    known = [step.id for step in steps]
    mistakes = []
    for step in steps:
        for need in dict.fromkeys(step.needs):
            if need == step.id:
                mistakes.append(f"step {step.id!r} needs itself")
            elif need not in known:
                hint = _nearest(need, known)
                mistakes.append(f"step {step.id!r} needs {need!r}, which is not a step{hint}")
    return mistakes


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _cycles(steps: tuple[Step, ...]) -> list[str]:
    waiting = {name: set(needs) for name, needs in links(steps).items()}
    while ready := [name for name, needs in waiting.items() if not needs]:
        for name in ready:
            del waiting[name]
        for needs in waiting.values():
            needs.difference_update(ready)
    if not waiting:
        return []
    return [f"the needs form a cycle: {' → '.join(_one_cycle(waiting))}"]


def _one_cycle(waiting: dict[str, set[str]]) -> list[str]:
    path = [min(waiting)]
    while True:
        following = min(waiting[path[-1]] & waiting.keys())
        if following in path:
            return [*path[path.index(following) :], following]
        path.append(following)
