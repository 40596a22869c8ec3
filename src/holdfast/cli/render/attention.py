"""The needs of a run that only a person can satisfy: answers, a larger budget, resumption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.cli.app.session import with_store
from holdfast.cli.render.formats import advise_spent_run, cost_of, is_spent
from holdfast.cli.render.step_status import (
    advise_answer,
    advise_settling,
    held_runs,
    outputs_asked_of,
)
from holdfast.service.queries.run_tree import TaskNode, build_task_trees, walk_tasks

View = dict[str, Any]
PAUSED = "it is paused"


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonNeed:
    """A need and the command that satisfies it; `hint` also names a command to type before."""

    id: str
    step: str | None
    question: Any
    next: str
    hint: str


def stands_still(run: View) -> bool:
    """Whether nothing in a run is moving or will move until a person satisfies a need."""
    moving = any(task["status"] == "running" for task in walk_tasks(run["tasks"]))
    return (
        not moving
        and not any(front.is_moving for front in front_nodes(run))
        and bool(needs_of(run))
    )


def front_nodes(run: View) -> list[TaskNode]:
    return [front for node in build_task_trees(run["tasks"]) for front in node.frontier]


def nodes_asking(run: View) -> list[TaskNode]:
    """The steps that ask a person now, without approvals of a run that has not begun."""
    held = held_runs(run)
    early = {each for each, view in held.items() if {"slot", "scheduled"} & {*view["holds"]}}
    found = [front for front in front_nodes(run) if front.asks_person]
    return [
        each
        for each in found
        if each.task["kind"] != "approval" or each.task.get("run_id") not in early
    ]


def needs_of(run: View) -> list[PersonNeed]:
    spent = [_need_of_run(run["id"], cost_of(run), advise_spent_run(run))] if is_spent(run) else []
    held, found = held_runs(run), nodes_asking(run)
    asked = [_need_of_task(each, advise_settling(each.task, held)) for each in found]
    # The hint of an approval in a paused run already says to resume that run first.
    told = {each.task.get("run_id") for each in found if each.task["kind"] == "approval"}
    paused = [each for each, view in held.items() if "paused" in view["holds"]]
    top = [run["id"]] if run["id"] in paused else sorted(paused)
    resumed = [
        _need_of_run(each, PAUSED, f"holdfast resume {each}") for each in top if each not in told
    ]
    to_start = [_need_of_task(each) for each in front_nodes(run) if each.needs_start]
    return [*spent, *resumed, *asked, *to_start]


def _need_of_run(identifier: str, question: str, command: str) -> PersonNeed:
    typed = with_store(command)
    return PersonNeed(id=identifier, step=None, question=question, next=typed, hint=typed)


def _need_of_task(node: TaskNode, hint: str | None = None) -> PersonNeed:
    typed = with_store(advise_answer(node.task))
    return PersonNeed(
        id=node.task["id"],
        step=node.address,
        question=outputs_asked_of(node.task),
        next=typed,
        hint=typed if hint is None else hint,
    )
