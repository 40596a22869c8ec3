"""What a run needs a person for: their word, its budget, or to be let go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.cli.session import with_store
from holdfast.cli.spending import cost_of, how_to_go_on, is_spent
from holdfast.cli.standing import asked_of, how_to_settle, paused_runs, what_to_say
from holdfast.service.outline import Node, every_task, outline

View = dict[str, Any]
PAUSED = "it is paused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """What waits for somebody, and what to type; `told` says too what has to come before that."""

    id: str
    step: str | None
    question: Any
    next: str
    told: str


def stands_still(run: View) -> bool:
    """Whether nothing of a run goes on, or will, but for a person who is asked for it."""
    moving = any(task["status"] == "running" for task in every_task(run["tasks"]))
    return not moving and not any(front.moves for front in fronts(run)) and bool(needs_of(run))


def fronts(run: View) -> list[Node]:
    return [front for node in outline(run["tasks"]) for front in node.fronts]


def asking(run: View) -> list[Node]:
    return [front for front in fronts(run) if front.asks_person]


def needs_of(run: View) -> list[Need]:
    spent = [_of_run(run["id"], cost_of(run), how_to_go_on(run))] if is_spent(run) else []
    paused = paused_runs(run)
    asked = [_of_task(each, how_to_settle(each.task, paused)) for each in asking(run)]
    # Who settles what a paused run asks is told there to resume it first.
    top = [run["id"]] if run["id"] in paused else sorted(paused)
    resumed = [] if asked else [_of_run(each, PAUSED, f"holdfast resume {each}") for each in top]
    return [*spent, *asked, *resumed, *(_of_task(each) for each in fronts(run) if each.left_alone)]


def _of_run(identifier: str, question: str, command: str) -> Need:
    typed = with_store(command)
    return Need(id=identifier, step=None, question=question, next=typed, told=typed)


def _of_task(node: Node, told: str | None = None) -> Need:
    typed = with_store(what_to_say(node.task))
    return Need(
        id=node.task["id"],
        step=node.address,
        question=asked_of(node.task),
        next=typed,
        told=typed if told is None else told,
    )
