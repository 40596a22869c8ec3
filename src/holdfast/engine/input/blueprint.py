"""Blueprints: steps of a workflow become tasks of a run, or of one item of a loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.engine.core.task_rows import (
    TASK_DEFAULTS,
    TASK_PREFIX,
    RowTemplate,
    TaskRow,
    TemplatedTasks,
)
from holdfast.ids import Ids
from holdfast.model.frozen_record import make_record
from holdfast.model.retry import RetryPolicy, positive_microseconds, to_microseconds
from holdfast.model.status import TaskKind
from holdfast.model.workflow.reference import Unresolved
from holdfast.model.workflow.step import Concurrency, Step, effective_needs, output_steps
from holdfast.model.workflow.step_template import needs_later_values, render_key, render_title
from holdfast.model.workflow.template import Variables

KEPT_BLUEPRINTS = 1_000
KEPT_ROW_TEMPLATES = 20


@dataclass(frozen=True, kw_only=True)
class TaskContainer:
    """The run, and the item of a loop, that new tasks belong to."""

    run_id: str
    priority: int
    parent_id: str | None = None
    parent_epoch: int | None = None
    item: int | None = None
    # The tag of the host that has the repository of the run, for the tasks in its workspace.
    host_tag: str | None = None
    # Makes the values that texts can name before a task is done; called only if there are texts.
    variables: Callable[[], Variables] = dict


def make_task_rows(
    steps: tuple[Step, ...], container: TaskContainer, ids: Ids
) -> tuple[TaskRow, ...]:
    return _blueprint(steps).make_task_rows(container, ids.tasks(len(steps)))


def make_run_rows(steps: tuple[Step, ...], container: TaskContainer, ids: Ids) -> Sequence[TaskRow]:
    """The tasks of a new run; without texts to render they are made only when they are inserted."""
    return _blueprint(steps).make_run_rows(container, ids.tasks(len(steps)))


class Blueprint:
    """What the tasks of the same steps have in common in every run or item."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps
        places = {step.id: number for number, step in enumerate(steps)}
        needs, giving = effective_needs(steps), output_steps(steps)
        self._needs = [tuple(places[need] for need in needs[step.id]) for step in steps]
        subjects = [step.verifies for step in steps]
        self._verified = [None if each is None else places[each] for each in subjects]
        self._values = [_values_of_step(step, gives=step.id in giving) for step in steps]
        self._placed = [_has_workspace(step) for step in steps]
        self._groups = [step.kind is TaskKind.GROUP for step in steps]
        self._has_texts_to_render = any(_has_texts_to_render(step) for step in steps)
        # By priority, because runs have few different priorities.
        self._row_templates: dict[int, RowTemplate] = {}

    def make_run_rows(self, container: TaskContainer, ids: Sequence[str]) -> Sequence[TaskRow]:
        verified = any(each is not None for each in self._verified)
        if self._has_texts_to_render or verified or container.host_tag is not None:
            return self.make_task_rows(container, ids)
        template = self._row_templates.get(container.priority)
        if template is None:
            if len(self._row_templates) >= KEPT_ROW_TEMPLATES:
                self._row_templates.clear()
            nowhere = TaskContainer(run_id="", priority=container.priority)
            tasks = self.make_task_rows(nowhere, [step.id for step in self.steps])
            template = self._row_templates[container.priority] = RowTemplate(tasks)
        return TemplatedTasks(template, ids, container.run_id)

    def make_task_rows(self, container: TaskContainer, ids: Sequence[str]) -> tuple[TaskRow, ...]:
        common = (
            self._values
            if not self._has_texts_to_render
            else self._render_values(container.variables())
        )
        if container.host_tag is not None:
            common = self._pin_to_host(common, container.host_tag)
        run_id, priority, item = container.run_id, container.priority, container.item
        parent_id, parent_epoch = container.parent_id, container.parent_epoch
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
                        "needs": tuple([ids[need] for need in needs]) if needs else (),
                        "priority": priority + values["priority"],
                        "verifies": None if verified is None else ids[verified],
                    },
                )
                for identifier, needs, values, group, verified in zip(
                    ids, self._needs, common, self._groups, self._verified, strict=True
                )
            ]
        )

    def _render_values(self, variables: Variables) -> list[dict[str, Any]]:
        return [
            values | _render_texts(step, variables) if _has_texts_to_render(step) else values
            for step, values in zip(self.steps, self._values, strict=True)
        ]

    def _pin_to_host(self, common: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
        """The values with the tag of a host, for the steps that work in its folder."""
        return [
            {**values, "tags": write_tags((*step.tags, tag))} if placed else values
            for step, values, placed in zip(self.steps, common, self._placed, strict=True)
        ]


def _has_workspace(step: Step) -> bool:
    """Whether a step works in a workspace; a loop and a call pass the host on to what they make."""
    own = step.work is not None and (step.work.in_workspace or step.calls is not None)
    return own or step.for_each is not None


_blueprints: dict[int, Blueprint] = {}


def _blueprint(steps: tuple[Step, ...]) -> Blueprint:
    """The blueprint of steps, by identity: a hash of the graph takes longer than new rows.

    The blueprint keeps its steps alive, so that the identity stays theirs.
    """
    found = _blueprints.get(id(steps))
    if found is None:
        if len(_blueprints) >= KEPT_BLUEPRINTS:
            _blueprints.clear()
        found = _blueprints[id(steps)] = Blueprint(steps)
    return found


def _has_texts_to_render(step: Step) -> bool:
    """Whether the title or the concurrency key of a step is rendered from values of its run."""
    if step.work is None:
        return step.concurrency is not None and step.concurrency.has_variables
    return bool(step.title or step.approval or step.concurrency)


def _render_texts(step: Step, variables: Variables) -> dict[str, Any]:
    """The title and key of a step as far as known; the rest is rendered before it starts."""
    told: dict[str, Any] = {}
    with suppress(Unresolved):
        if step.concurrency is not None:
            told["concurrency_key"] = None
            told["concurrency_key"] = TASK_PREFIX + render_key(step.concurrency.key, variables)
    with suppress(Unresolved):
        told["title"] = render_title(step, variables) or step.id
    return told


def _values_of_step(step: Step, *, gives: bool) -> dict[str, Any]:
    work = step.work
    own = None if step.for_each is not None else step.title
    return {
        **TASK_DEFAULTS,
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
        "on_failure": _write_action(step),
        **encode_limits(step.retry, step.timeout, step.concurrency),
    }


def _write_action(step: Step) -> str:
    """The word of the row: `goto` leaves a failure for good to the plan of the step."""
    return "goto" if step.on_failure.escalation is not None else step.on_failure.action


def encode_limits(
    retry: RetryPolicy, timeout: float | None, concurrency: Concurrency | None
) -> dict[str, Any]:
    """Retries, timeout and concurrency as columns of the store."""
    return _encode_retry(retry) | {
        "timeout": None if timeout is None else positive_microseconds("timeout", timeout),
        **encode_concurrency(concurrency),
    }


def encode_concurrency(concurrency: Concurrency | None) -> dict[str, Any]:
    return {
        "concurrency_key": None if concurrency is None else TASK_PREFIX + concurrency.key,
        "capacity": 1 if concurrency is None else concurrency.limit,
    }


@lru_cache(maxsize=100)
def _encode_retry(retry: RetryPolicy) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "max_lost": retry.max_lost,
        "backoff": to_microseconds("backoff", retry.backoff),
        "backoff_max": to_microseconds("backoff_max", retry.backoff_max),
    }


def write_tags(tags: tuple[str, ...]) -> str:
    return json.dumps(sorted(dict.fromkeys(tags)), separators=(",", ":")) if tags else "[]"
