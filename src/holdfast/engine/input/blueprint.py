"""The tasks that stand for the steps of a run, or for the steps of one item of a loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.engine.core.task_rows import PLAIN, TASK_PREFIX, Drawn, Stencil, TaskRow
from holdfast.ids import Ids
from holdfast.model.frozen_record import make_record
from holdfast.model.retry import RetryPolicy, positive_microseconds, to_microseconds
from holdfast.model.status import TaskKind
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step import Concurrency, Step, effective_needs, output_steps
from holdfast.model.workflow.step_template import needs_later_values, render_key, render_title
from holdfast.model.workflow.template import Variables

KEPT = 1_000
KEPT_STENCILS = 20


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where new tasks belong: a run, and the item of a loop they are the body of."""

    run_id: str
    priority: int
    parent_id: str | None = None
    parent_epoch: int | None = None
    item: int | None = None
    # What texts can name before any of these tasks is done; asked where there are such texts.
    scope: Callable[[], Variables] = dict


def draw(steps: tuple[Step, ...], place: Place, ids: Ids) -> tuple[TaskRow, ...]:
    return _blueprint(steps).draw(place, ids.tasks(len(steps)))


def draw_run(steps: tuple[Step, ...], place: Place, ids: Ids) -> Sequence[TaskRow]:
    """The tasks of a new run, drawn when they are inserted where nothing of them is told by it."""
    return _blueprint(steps).draw_run(place, ids.tasks(len(steps)))


class Blueprint:
    """What the tasks of one body have in common, whatever run or item they are made for."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps
        places = {step.id: number for number, step in enumerate(steps)}
        needs, giving = effective_needs(steps), output_steps(steps)
        self._needs = [tuple(places[need] for need in needs[step.id]) for step in steps]
        subjects = [step.verifies for step in steps]
        self._verified = [None if each is None else places[each] for each in subjects]
        self._values = [_common(step, gives=step.id in giving) for step in steps]
        self._groups = [step.kind is TaskKind.GROUP for step in steps]
        self._told = any(_is_told(step) for step in steps)
        # By the priorities of runs, which are few.
        self._stencils: dict[int, Stencil] = {}

    def draw_run(self, place: Place, known: Sequence[str]) -> Sequence[TaskRow]:
        if self._told or any(each is not None for each in self._verified):
            return self.draw(place, known)
        stencil = self._stencils.get(place.priority)
        if stencil is None:
            if len(self._stencils) >= KEPT_STENCILS:
                self._stencils.clear()
            nowhere = Place(run_id="", priority=place.priority)
            tasks = self.draw(nowhere, [step.id for step in self.steps])
            stencil = self._stencils[place.priority] = Stencil(tasks)
        return Drawn(stencil, known, place.run_id)

    def draw(self, place: Place, known: Sequence[str]) -> tuple[TaskRow, ...]:
        common = self._values if not self._told else self._tell(place.scope())
        run_id, priority, item = place.run_id, place.priority, place.item
        parent_id, parent_epoch = place.parent_id, place.parent_epoch
        return tuple(
            [
                make_record(
                    TaskRow,
                    {
                        **values,
                        "id": identifier,
                        "run_id": run_id,
                        "parent_id": parent_id,
                        "parent_epoch": parent_epoch,
                        "item": None if group else item,
                        "needs": tuple([known[need] for need in needs]) if needs else (),
                        "priority": priority + values["priority"],
                        "verifies": None if verified is None else known[verified],
                    },
                )
                for identifier, needs, values, group, verified in zip(
                    known, self._needs, common, self._groups, self._verified, strict=True
                )
            ]
        )

    def _tell(self, scope: Variables) -> list[dict[str, Any]]:
        return [
            values | _tell(step, scope) if _is_told(step) else values
            for step, values in zip(self.steps, self._values, strict=True)
        ]


_kept: dict[int, Blueprint] = {}


def _blueprint(steps: tuple[Step, ...]) -> Blueprint:
    """By identity, for to hash a graph takes longer than to draw it; it keeps the steps alive."""
    found = _kept.get(id(steps))
    if found is None:
        if len(_kept) >= KEPT:
            _kept.clear()
        found = _kept[id(steps)] = Blueprint(steps)
    return found


def _is_told(step: Step) -> bool:
    """Whether what people read of it, or what it is counted by, is made from its run."""
    if step.work is None:
        return False
    return bool(step.title or step.approval or step.concurrency)


def _tell(step: Step, scope: Variables) -> dict[str, Any]:
    """Its title and key as far as they are known; what is not is looked at before it starts."""
    told: dict[str, Any] = {}
    with suppress(Unresolved):
        if step.concurrency is not None:
            told["concurrency_key"] = None
            told["concurrency_key"] = TASK_PREFIX + render_key(step.concurrency.key, scope)
    with suppress(Unresolved):
        told["title"] = render_title(step, scope) or step.id
    return told


def _common(step: Step, *, gives: bool) -> dict[str, Any]:
    work = step.work
    own = None if step.for_each is not None else step.title
    return {
        **PLAIN,
        "kind": step.kind,
        "step": step.id,
        "title": own or step.approval or step.id,
        "agent": step.agent,
        "status": "queued",
        "priority": step.priority,
        "tags": write_tags(step.tags),
        "conditional": step.when is not None or needs_later_values(step),
        "declares": work is not None and work.outputs is not None,
        "external": step.kind == "work" and work is not None and work.external,
        "gives": gives,
        "calls": step.calls,
        "max_rounds": step.max_rounds,
        "on_failure": step.on_failure.action,
        **limits(step.retry, step.timeout, step.concurrency),
    }


def limits(
    retry: RetryPolicy, timeout: float | None, concurrency: Concurrency | None
) -> dict[str, Any]:
    """Budgets, time and concurrency in the terms of the store."""
    return _budgets(retry) | {
        "timeout": None if timeout is None else positive_microseconds("timeout", timeout),
        "concurrency_key": None if concurrency is None else TASK_PREFIX + concurrency.key,
        "capacity": 1 if concurrency is None else concurrency.limit,
    }


@lru_cache(maxsize=100)
def _budgets(retry: RetryPolicy) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "max_lost": retry.max_lost,
        "backoff": to_microseconds("backoff", retry.backoff),
        "backoff_max": to_microseconds("backoff_max", retry.backoff_max),
    }


def write_tags(tags: tuple[str, ...]) -> str:
    return json.dumps(sorted(dict.fromkeys(tags)), separators=(",", ":")) if tags else "[]"
