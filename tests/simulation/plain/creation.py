"""The plain model of new work: each key once, all of a call or nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from holdfast.model.retry import MICROSECONDS, RetryPolicy
from holdfast.model.run import NewRun
from holdfast.model.status import Hold
from holdfast.model.task import NewTask
from holdfast.model.workflow.graph import Step, Workflow
from tests.simulation.plain.concurrency import admit
from tests.simulation.plain.world import NONE, TERMINAL, Run, Task, World

Made = list[tuple[str, bool]] | str
"""The ids and whether each is new, or the name of the error."""


class Budgets(TypedDict):
    max_attempts: int
    max_lost: int
    backoff: int
    backoff_max: int


def create(world: World, wanted: Sequence[NewTask], ids: Sequence[str]) -> Made:
    """`ids` are what the store called them; the model takes those of new tasks on trust."""
    holders = {task.key: (task.id, task.body) for task in world.tasks.values() if task.key}
    made: list[tuple[str, bool]] = []
    named = ids or [f"unmade {place}" for place in range(len(wanted))]
    for new, identifier in zip(wanted, named, strict=True):
        asked = _body(new)
        own: tuple[str, object] = (identifier, asked)
        holder, body = own if new.key is None else holders.setdefault(new.key, own)
        if body != asked:
            return "KeyConflict"
        made.append((holder, holder not in world.tasks and holder not in dict(made)))
    if not all(
        _may_be(world, new) for new, (_, is_new) in zip(wanted, made, strict=True) if is_new
    ):
        return "InvalidInput"
    for new, (identifier, is_new) in zip(wanted, made, strict=True):
        if is_new:
            _add(world, new, identifier)
    return made


def _body(new: NewTask) -> tuple[object, object]:
    """The function and its arguments, which decide under a key; options do not."""
    return new.step, new.payload


def _may_be(world: World, new: NewTask) -> bool:
    """Whether what a new task needs and belongs to is there, in no run, and can still have it."""
    related = [*new.needs, *([] if new.parent is None else [new.parent])]
    if any(each not in world.tasks or world.tasks[each].run for each in related):
        return False
    return new.parent is None or world.tasks[new.parent].status not in TERMINAL


def _add(world: World, new: NewTask, identifier: str) -> None:
    assert new.scheduled_for is None or isinstance(new.scheduled_for, int)
    task = Task(
        id=identifier,
        title=new.title,
        parent=new.parent,
        agent=new.agent,
        status="queued" if new.enqueue else "idle",
        needs=set(new.needs),
        scheduled_for=new.scheduled_for,
        priority=new.priority,
        position=new.position or 0,
        tags=frozenset(new.tags),
        key=new.key,
        body=_body(new),
        **_budgets(new.retry),
    )
    if new.concurrency is not None:
        task.slot = f"task:{new.concurrency.key}"
        world.capacity[task.slot] = new.concurrency.limit
    world.tasks[identifier] = task


def start(world: World, new: NewRun, identifier: str, tasks: Sequence[str]) -> Made:
    """`identifier` and `tasks` are what the store called the run and its steps, in order."""
    body = (new.workflow.name, new.input)
    for run in world.runs.values():
        if new.key is not None and run.key == new.key:
            return [(run.id, False)] if run.body == body else "KeyConflict"
    limit = new.workflow.concurrency
    run = Run(
        id=identifier,
        workflow=new.workflow.name,
        key=new.key,
        body=body,
        input=new.input,
        slot=None if limit is None else f"run:{limit.key}",
        holds=NONE if limit is None else Hold.SLOT,
    )
    world.runs[identifier] = run
    place = _Place(run=identifier, ids=dict(zip(_names(new.workflow), tasks, strict=True)))
    _add_steps(world, new.workflow.steps, place)
    if limit is not None and run.slot is not None:
        world.capacity[run.slot] = limit.limit
        admit(world, run.slot, 1)
    return [(identifier, True)]


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where the tasks of some steps belong, and what they are called."""

    run: str
    ids: dict[str, str]
    parent: str | None = None
    item: int | None = None
    priority: int = 0


def _add_steps(world: World, steps: Sequence[Step], place: _Place) -> None:
    needs, ids = _needs(steps), place.ids
    for step in steps:
        task = Task(
            id=ids[step.id],
            title=step.approval or step.id,
            run=place.run,
            parent=place.parent,
            step=step.id,
            kind=str(step.kind),
            agent=step.agent,
            needs={ids[need] for need in needs[step.id]},
            made_from=step,
            item=None if step.for_each is not None else place.item,
            gives=_gives(step, steps, needs),
            verifies=None if step.verifies is None else ids[step.verifies],
            max_rounds=step.max_rounds,
            on_failure=step.on_failure,
            when=step.when,
            tags=frozenset(step.tags),
            priority=place.priority + step.priority,
            **_budgets(step.retry),
        )
        if step.concurrency is not None:
            task.slot = f"task:{step.concurrency.key}"
            world.capacity[task.slot] = step.concurrency.limit
        world.tasks[task.id] = task


def _gives(step: Step, steps: Sequence[Step], needs: dict[str, set[str]]) -> bool:
    """Whether what a step gives is what its item gives: nothing but verifiers comes after it."""
    if step.verifies is not None:
        return False
    verifiers = {each.id for each in steps if each.verifies is not None}

    def goes_on(name: str) -> bool:
        after = {other for other, needed in needs.items() if name in needed}
        return bool(after - verifiers) or any(goes_on(each) for each in after)

    return not goes_on(step.id)


def add_item(world: World, loop: Task, place: int, value: object) -> None:
    step = str(loop.step)
    identifier = _name(world, loop, step, place)
    world.tasks[identifier] = Task(
        id=identifier,
        title=f"{step}.{place + 1}",
        run=loop.run,
        parent=loop.id,
        step=step,
        kind="group",
        status="idle",
        item=place,
        value=value,
        position=place,
        priority=loop.priority,
    )


def add_body(world: World, loop: Task, item: Task) -> None:
    step = loop.made_from
    assert step is not None
    ids = {
        each.id: _name(world, item, each.id, None if each.for_each is not None else item.item)
        for each in step.steps
    }
    place = _Place(
        run=str(loop.run),
        ids=ids,
        parent=item.id,
        item=item.item,
        priority=loop.priority - step.priority,
    )
    _add_steps(world, step.steps, place)


def _name(world: World, parent: Task, step: str, item: int | None) -> str:
    place = (parent.id, parent.epoch, step, item)
    return world.names.get(place, f"missing: {place}")


def _needs(steps: Sequence[Step]) -> dict[str, set[str]]:
    """What each step needs: of a verified one its verifier, but for what that one builds on."""
    written = {step.id: {*step.needs, *filter(None, [step.verifies])} for step in steps}
    verifiers = {step.verifies: step.id for step in steps if step.verifies is not None}

    def builds_on(step: str, other: str) -> bool:
        return any(need == other or builds_on(need, other) for need in written[step])

    return {
        name: {
            need
            if (verifier := verifiers.get(need)) in {None, name} or builds_on(str(verifier), name)
            else str(verifier)
            for need in needs
        }
        for name, needs in written.items()
    }


def _names(workflow: Workflow) -> list[str]:
    return [step.id for step in workflow.steps]


def _budgets(retry: RetryPolicy) -> Budgets:
    return {
        "max_attempts": retry.max_attempts,
        "max_lost": retry.max_lost,
        "backoff": round(retry.backoff * MICROSECONDS),
        "backoff_max": round(retry.backoff_max * MICROSECONDS),
    }
