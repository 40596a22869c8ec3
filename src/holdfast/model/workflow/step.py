"""Steps: a step of a workflow as it is defined, and the order that the needs of steps give."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from holdfast.errors import InvalidInput
from holdfast.model.retry import MAX_COUNT, RetryPolicy
from holdfast.model.status import TaskKind
from holdfast.model.text import clean_key
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.reference import Reference

FailureAction = Literal["fail", "skip", "ask", "goto", "escalate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Concurrency:
    """At most `limit` holders of one key at once."""

    key: str
    limit: int = 1

    def __post_init__(self) -> None:
        clean_key("concurrency.key", self.key)
        limit: object = self.limit
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_COUNT:
            raise InvalidInput("concurrency.limit", f"must be a whole number from 1 to {MAX_COUNT}")

    @property
    def has_variables(self) -> bool:
        """Whether the key is a text with variables, and not yet a key."""
        return "{{" in self.key


@dataclass(frozen=True, kw_only=True, slots=True)
class Escalation:
    """The agent that a failed step is handed to, and the action after that agent failed too.

    In a workflow file the other agent has a work, limits and tags of its own. Where these are None,
    those of the step stay.
    """

    agent: str
    then: FailureAction = "fail"
    work: StepWork | None = None
    retry: RetryPolicy | None = None
    timeout: float | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OnFailure:
    """The action after a step failed for good.

    `goto` begins again at the named step, `escalate` hands the step to another agent, once.
    """

    action: FailureAction = "fail"
    step: str | None = None
    max_rounds: int = 1
    escalation: Escalation | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A step of a workflow: work, an approval, a call of a workflow, or a loop with its steps."""

    id: str
    needs: tuple[str, ...] = ()
    agent: str = "default"
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    priority: int = 0
    concurrency: Concurrency | None = None
    when: Reference | None = None
    on_failure: OnFailure = field(default_factory=OnFailure)
    verifies: str | None = None
    max_rounds: int = 3
    approval: str | None = None
    for_each: Reference | None = None
    parallel: int = 1
    steps: tuple[Step, ...] = ()
    # The work of a step of a workflow file; the texts of such a step are templates.
    work: StepWork | None = None
    title: str | None = None

    @property
    def calls(self) -> str | None:
        """The workflow that the step calls, if it calls one."""
        return None if self.work is None else self.work.workflow

    @property
    def lands(self) -> bool:
        """Whether the step merges the line of its item into the line around the loop."""
        return self.work is not None and self.work.landing

    @property
    def handed_over(self) -> Step | None:
        """The step as the agent does it to whom it is handed after a failure, if there is one."""
        other = self.on_failure.escalation
        if other is None:
            return None
        return replace(
            self,
            agent=other.agent,
            work=self.work if other.work is None else other.work,
            retry=self.retry if other.retry is None else other.retry,
            timeout=self.timeout if other.timeout is None else other.timeout,
            tags=self.tags if other.tags is None else other.tags,
            on_failure=OnFailure(action=other.then),
        )

    @property
    def kind(self) -> TaskKind:
        if self.for_each is not None or self.calls is not None:
            return TaskKind.GROUP
        return TaskKind.WORK if self.approval is None else TaskKind.APPROVAL


def all_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps, and all steps inside their bodies."""
    for step in steps:
        yield step
        yield from all_steps(step.steps)


def find_lines(steps: tuple[Step, ...], line: str | None = None) -> dict[str, str | None]:
    """The line of each step: the nearest loop around it whose items run in parallel, if any."""
    found: dict[str, str | None] = {}
    for step in steps:
        found[step.id] = line
        found |= find_lines(step.steps, step.id if step.parallel > 1 else line)
    return found


def effective_needs(steps: tuple[Step, ...]) -> dict[str, tuple[str, ...]]:
    """The needs of each step of one body, where a need on a verified step is one on its verifier.

    The verifier itself, and the steps that the verifier needs, still need the verified step.
    """
    needs = {step.id: _own_needs(step) for step in steps}
    judges: dict[str, list[str]] = {}
    for step in steps:
        if step.verifies is not None:
            judges.setdefault(step.verifies, []).append(step.id)
    upstream = {judge: collect_needs(needs, judge) for each in judges.values() for judge in each}
    return {
        name: tuple(
            dict.fromkeys(
                chosen
                for need in own
                for chosen in (
                    _verifiers_to_wait_for(name, judges.get(need, []), upstream) or [need]
                )
            )
        )
        for name, own in needs.items()
    }


def _verifiers_to_wait_for(
    name: str, judges: list[str], upstream: dict[str, set[str]]
) -> list[str]:
    """The verifiers that a step waits for: not itself, and none that waits for the step."""
    return [judge for judge in judges if judge != name and name not in upstream[judge]]


def collect_needs(needs: dict[str, tuple[str, ...]], name: str) -> set[str]:
    """All steps that a step needs, directly or through others."""
    found: set[str] = set()
    waiting = list(needs[name])
    while waiting:
        need = waiting.pop()
        if need not in found:
            found.add(need)
            waiting += needs.get(need, ())
    return found


def output_steps(steps: tuple[Step, ...]) -> frozenset[str]:
    """The steps whose outputs are the output of their body: those that no other step needs.

    Verifiers and landings do not count; a need on a verifier counts as a need on the steps that
    it needs.
    """
    linked = effective_needs(steps)
    judges = {step.id for step in steps if step.verifies is not None or step.lands}
    needed: set[str] = set()
    waiting = [need for name, needs in linked.items() if name not in judges for need in needs]
    while waiting:
        need = waiting.pop()
        if need not in needed:
            needed.add(need)
            waiting += linked[need] if need in judges else ()
    return frozenset(linked.keys() - judges - needed)


def _own_needs(step: Step) -> tuple[str, ...]:
    if step.verifies is None or step.verifies in step.needs:
        return step.needs
    return (*step.needs, step.verifies)


class Upstream:
    """The steps before each step of a body, as a bit mask; a step in a circle has all bits set."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.needs = {name: set(needs) for name, needs in effective_needs(steps).items()}
        self._bits = {name: 1 << place for place, name in enumerate(self.needs)}
        self._before: dict[str, int] = {}
        following: dict[str, list[str]] = {}
        for name, needs in self.needs.items():
            for need in needs:
                following.setdefault(need, []).append(name)
        unmet = {name: len(needs) for name, needs in self.needs.items()}
        ready = deque(name for name, count in unmet.items() if not count)
        while ready:
            done = ready.popleft()
            self._before[done] = self._mask(done)
            for name in following.get(done, ()):
                unmet[name] -= 1
                if not unmet[name]:
                    ready.append(name)

    def _mask(self, name: str) -> int:
        mask = 0
        for need in self.needs[name]:
            mask |= self._before[need] | self._bits[need]
        return mask

    @property
    def steps_in_cycles(self) -> dict[str, set[str]]:
        """The steps that have no order, each with those of them that it needs."""
        left = self.needs.keys() - self._before.keys()
        return {name: self.needs[name] & left for name in self.needs if name in left}

    def precedes(self, name: str, step: str) -> bool:
        """Whether a step of this body is done before another one begins."""
        return bool(self._before.get(step, -1) & self._bits.get(name, 0))
