"""One step of a workflow, as it is written down.

Which steps of a body come before which, for all of them at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from holdfast.errors import InvalidInput
from holdfast.model.retry import MAX_COUNT, RetryPolicy
from holdfast.model.status import TaskKind
from holdfast.model.text import clean_key
from holdfast.model.workflow.declarations import StepWork
from holdfast.model.workflow.reference import Reference

FailureAction = Literal["fail", "skip", "ask", "goto"]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class OnFailure:
    """What becomes of a step that has failed for good; `goto` names the step to begin again at."""

    action: FailureAction = "fail"
    step: str | None = None
    max_rounds: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
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
    # Of a workflow file: what its worker is to do. Its texts are templates then.
    work: StepWork | None = None
    title: str | None = None

    @property
    def calls(self) -> str | None:
        """The workflow whose run stands for it."""
        return None if self.work is None else self.work.workflow

    @property
    def kind(self) -> TaskKind:
        if self.for_each is not None or self.calls is not None:
            return TaskKind.GROUP
        return TaskKind.WORK if self.approval is None else TaskKind.APPROVAL


def all_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps and all those in their bodies."""
    for step in steps:
        yield step
        yield from all_steps(step.steps)


def effective_needs(steps: tuple[Step, ...]) -> dict[str, tuple[str, ...]]:
    """What each step of one body needs: of a verified step, whoever verifies it.

    The verifier itself, and the steps it builds on, need the verified step as it is.
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
    """The verifiers that a step has to wait for: not itself, and none that waits for it."""
    return [judge for judge in judges if judge != name and name not in upstream[judge]]


def collect_needs(needs: dict[str, tuple[str, ...]], name: str) -> set[str]:
    """Everything that a step needs, near or far."""
    found: set[str] = set()
    waiting = list(needs[name])
    while waiting:
        need = waiting.pop()
        if need not in found:
            found.add(need)
            waiting += needs.get(need, ())
    return found


def output_steps(steps: tuple[Step, ...]) -> frozenset[str]:
    """The steps of a body whose outputs are its output: the last ones, verifiers aside.

    Whoever needs a verifier needs what that one needs.
    """
    linked = effective_needs(steps)
    judges = {step.id for step in steps if step.verifies is not None}
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
    """A bit for each step that another needs, near or far; of steps in a circle, all."""

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
        """The steps that cannot be put in an order, and which of each other they need."""
        left = self.needs.keys() - self._before.keys()
        return {name: self.needs[name] & left for name in self.needs if name in left}

    def precedes(self, name: str, step: str) -> bool:
        """Whether a step of this body is done before another one begins."""
        return bool(self._before.get(step, -1) & self._bits.get(name, 0))
