"""Graph checks: the flaws of a graph, all of them found before the graph is used."""

from __future__ import annotations

from collections import Counter

from holdfast.errors import InvalidInput
from holdfast.model.retry import MAX_COUNT, RetryPolicy, positive_microseconds
from holdfast.model.status import TaskKind
from holdfast.model.text import clean_name, clean_text
from holdfast.model.workflow.declarations import StepWork, WorkflowDeclarations
from holdfast.model.workflow.flaw import Flaw
from holdfast.model.workflow.reference import Reference
from holdfast.model.workflow.step import Concurrency, OnFailure, Step, Upstream, all_steps
from holdfast.model.workflow.variable_checks import find_bad_texts
from holdfast.model.workflow.workspace_checks import find_bad_workspaces

MAX_STEPS = 10_000
MAX_PRIORITY = 2**30 - 1
LONGEST_CYCLE = 20

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
    ("work", StepWork | None, "a StepWork"),
    ("title", str | None, "text"),
)


def find_flaws(
    steps: tuple[Step, ...],
    concurrency: Concurrency | None,
    declared: WorkflowDeclarations | None = None,
) -> list[Flaw]:
    """Every flaw of a graph; where fields have wrong types, only these flaws."""
    flaws = _bad_fields(steps)
    if not isinstance(concurrency, Concurrency | None):
        flaws.append(Flaw(message="its concurrency must be a Concurrency"))
    if not flaws:
        flaws = [*_bad_steps(steps), *_bad_bodies(steps, ()), *_bad_escalations(steps)]
        flaws += find_bad_texts(steps, concurrency, declared)
        flaws += find_bad_workspaces(steps, declared)
    return flaws


def _bad_fields(steps: object) -> list[Flaw]:
    """Flaws of fields with a wrong type, without which no other check can run."""
    if not isinstance(steps, tuple) or not all(isinstance(step, Step) for step in steps):
        return [Flaw(message="its steps must be a tuple of Step")]
    flaws = [
        _flaw(step, name, f": {name} must be {words}")
        for step in steps
        for name, kind, words in FIELDS
        if isinstance(getattr(step, name), bool) or not isinstance(getattr(step, name), kind)
    ]
    flaws += [
        _flaw(step, "needs", f" needs {need!r}, which is not the name of a step")
        for step in steps
        if isinstance(step.needs, tuple)
        for need in step.needs
        if not isinstance(need, str)
    ]
    for step in steps:
        flaws += _bad_fields(step.steps)
    return flaws


def _flaw(step: Step, field: str, message: str, named: str | None = None) -> Flaw:
    return Flaw(message=f"step {step.id!r}{message}", step=step, field=field, named=named)


def _bad_steps(steps: tuple[Step, ...]) -> list[Flaw]:
    if not steps:
        return [Flaw(message="has no steps")]
    found = list(all_steps(steps))
    if len(found) > MAX_STEPS:
        message = f"has {len(found)} steps; at most {MAX_STEPS} fit one workflow"
        return [Flaw(message=message)]
    last = {step.id: step for step in found}
    flaws = [
        _flaw(last[name], "id", f" is defined {count} times")
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
            flaws.append(_flaw(step, error.field, f": {error}"))
        if not -MAX_PRIORITY <= step.priority <= MAX_PRIORITY:
            flaws.append(_flaw(step, "priority", f": priority: must be within {MAX_PRIORITY} of 0"))
        flaws += [
            _flaw(step, name, f": {name}: must be a whole number from 1 to {MAX_COUNT}")
            for name, count in _counts(step)
            if not 1 <= count <= MAX_COUNT
        ]
    return flaws


def _counts(step: Step) -> tuple[tuple[str, int], ...]:
    return (
        ("parallel", step.parallel),
        ("max_rounds", step.max_rounds),
        ("on_failure.max_rounds", step.on_failure.max_rounds),
    )


def _bad_bodies(steps: tuple[Step, ...], outer: tuple[str, ...]) -> list[Flaw]:
    """Flaws in how the steps of one body refer to each other, and of the bodies inside it."""
    names = [step.id for step in steps]
    flaws = [*_bad_needs(steps), *_bad_names(steps)]
    # Where two steps have one name, a need on that name is ambiguous.
    if len({*names}) == len(names):
        flaws += [*_cycles(steps), *_bad_detours(steps)]
    known = frozenset((*outer, *names))
    for step in steps:
        flaws += _bad_references(step, known)
        if step.for_each is not None:
            if not step.steps:
                flaws.append(_flaw(step, "steps", " is a loop without steps"))
            flaws += _bad_bodies(step.steps, tuple(known))
        elif step.steps:
            flaws.append(_flaw(step, "steps", " has steps of its own but no for_each"))
    return flaws


def _bad_names(steps: tuple[Step, ...]) -> list[Flaw]:
    """Flaws of steps that verify, or go back to, a step that is not in their body."""
    beside = {step.id for step in steps}
    flaws = []
    for step in steps:
        named = (
            ("verifies", "verifies", step.verifies),
            ("on_failure", "goes to", step.on_failure.step),
        )
        for field, words, name in named:
            if name is not None and (name not in beside or name == step.id):
                message = f"step {step.id!r} {words} {name!r}, which is no step beside it"
                flaws.append(
                    Flaw(message=message, step=step, field=field, named=name, known=beside)
                )
        if (step.on_failure.action == "goto") != (step.on_failure.step is not None):
            flaws.append(_flaw(step, "on_failure", ": on_failure names a step exactly with goto"))
        if step.kind is not TaskKind.WORK and step.verifies is not None:
            reason = " verifies, so it can be no loop, no approval and no other workflow"
            flaws.append(_flaw(step, "verifies", reason))
        if step.approval is not None and step.on_failure.action not in {"fail", "goto"}:
            reason = ": on_failure: a rejected approval fails, or goes back: {goto: STEP}"
            flaws.append(_flaw(step, "on_failure", reason))
        if step.for_each is not None and step.approval is not None:
            flaws.append(_flaw(step, "approval", " cannot be a loop and an approval at once"))
    return flaws or _bad_subjects(steps)


def _bad_subjects(steps: tuple[Step, ...]) -> list[Flaw]:
    """Flaws of verified steps: approvals, verifiers, and steps with more than one verifier."""
    named = {step.id: step for step in steps}
    flaws = []
    for name, count in Counter(step.verifies for step in steps).items():
        if name is None:
            continue
        subject = named[name]
        if count > 1:
            judges = " and ".join(repr(step.id) for step in steps if step.verifies == name)
            reason = "one gives the verdict, and may need what the others found"
            flaws.append(_flaw(subject, "id", f" is verified by {judges}; {reason}"))
        if subject.approval is not None:
            reason = " is an approval, which a person settles; verify no such"
            flaws.append(_flaw(subject, "approval", reason))
        if subject.verifies is not None:
            reason = " is a verifier itself; verify what it verifies"
            flaws.append(_flaw(subject, "verifies", reason))
    return flaws


def _bad_escalations(steps: tuple[Step, ...]) -> list[Flaw]:
    """Flaws of steps that are handed to another agent after a failure."""
    flaws = []
    for step in all_steps(steps):
        other = step.on_failure.escalation
        if (step.on_failure.action == "escalate") != (other is not None):
            reason = ": on_failure names an agent exactly with escalate"
            flaws.append(_flaw(step, "on_failure", reason))
        if other is None:
            continue
        if other.agent == step.agent:
            reason = f" escalates to {other.agent!r}, which is its own agent; name another"
            flaws.append(_flaw(step, "on_failure", reason))
        if step.kind is not TaskKind.WORK or step.verifies is not None:
            reason = " escalates, and no agent works on it whose work another could do"
            verifier = " escalates, and is a verifier; say it of the step that it verifies"
            flaws.append(_flaw(step, "on_failure", verifier if step.verifies else reason))
        if other.then not in {"fail", "skip", "ask"}:
            reason = f" escalates, and then cannot {other.then!r}: fail, skip or ask can follow"
            flaws.append(_flaw(step, "on_failure", reason))
        try:
            clean_name("agent", other.agent)
        except InvalidInput as error:
            flaws.append(_flaw(step, "on_failure", f": {error}"))
    return flaws


def _bad_detours(steps: tuple[Step, ...]) -> list[Flaw]:
    """Flaws of steps that go back to a step that they do not need, directly or through others."""
    upstream = Upstream(steps)
    return [
        _flaw(step, "on_failure", f" goes back to {target!r}, which it does not need", target)
        for step in steps
        if (target := step.on_failure.step) in upstream.needs
        and target != step.id
        and not upstream.precedes(target, step.id)
    ]


def _bad_references(step: Step, known: frozenset[str]) -> list[Flaw]:
    return [
        Flaw(
            message=f"step {step.id!r}: {field}: {reference.step!r} is no step it can see",
            step=step,
            field=field,
            named=reference.step,
            known=known,
        )
        for field, reference in (("when", step.when), ("for_each", step.for_each))
        if reference is not None and reference.step is not None and reference.step not in known
    ]


def _bad_needs(steps: tuple[Step, ...]) -> list[Flaw]:
    known = Counter(step.id for step in steps)
    flaws = []
    for step in steps:
        for need in dict.fromkeys(step.needs):
            if need == step.id and known[need] == 1:
                flaws.append(_flaw(step, "needs", " needs itself", need))
            elif need not in known:
                message = f"step {step.id!r} needs {need!r}, which is not a step"
                flaws.append(
                    Flaw(message=message, step=step, field="needs", named=need, known=known)
                )
    return flaws


def _cycles(steps: tuple[Step, ...]) -> list[Flaw]:
    """Flaws of circular needs, each step in one circle at most; `_bad_needs` finds self-needs."""
    circling = Upstream(steps).steps_in_cycles
    waiting = {name: needs - {name} for name, needs in circling.items()}
    named = {step.id: step for step in steps}
    flaws = []
    while cycle := _one_cycle(waiting):
        shown = (
            cycle if len(cycle) <= LONGEST_CYCLE else [*cycle[: LONGEST_CYCLE - 1], "…", cycle[-1]]
        )
        message = f"the needs form a cycle: {' → '.join(shown)}"
        flaws.append(Flaw(message=message, step=named[cycle[0]], field="needs"))
        for name in cycle[1:]:
            del waiting[name]
    return flaws


def _one_cycle(waiting: dict[str, set[str]]) -> list[str]:
    """The first circle; steps that lead to no circle are removed from `waiting` on the way."""
    path: list[str] = []
    met: dict[str, int] = {}
    while waiting:
        here = path[-1] if path else next(iter(waiting))
        if not path:
            path, met = [here], {here: 0}
        following = min(waiting[here] & waiting.keys(), default=None)
        if following is None:
            del waiting[path.pop()], met[here]
        elif following in met:
            return [*path[met[following] :], following]
        else:
            met[following] = len(path)
            path.append(following)
    return []
