"""Why a person's word was not wanted: what the task waits for instead, and how to give it that."""

from __future__ import annotations

from holdfast.model.status import Hold, Kind
from holdfast.model.task import Task


def not_waiting(task: Task, *, answered: bool) -> str:
    """Why a task takes no answer, or neither approval nor rejection, as it stands now."""
    if task.terminal:
        return f"it has ended {task.status}, and waits for nobody"
    if answered:
        return f"it asks nothing now: nothing was asked, or it was answered{_describe_wait(task)}"
    if task.kind is not Kind.APPROVAL:
        return f"it is not waiting for approval{_describe_wait(task)}"
    look = f'hf.why("{task.id}") tells more'
    if task.blocked:
        return f"it cannot be settled yet: what it needs is not done; {look}"
    if task.run_holds & Hold.PAUSED:
        look = f'hf.runs.resume("{task.run_id}") has it go on'
    return f"it cannot be settled yet: its run is held: {', '.join(task.run_holds.names)}; {look}"


def _describe_wait(task: Task) -> str:
    if task.holds & Hold.QUESTION:
        return f'; it waits for an answer: hf.answer("{task.id}", …)'
    if task.holds & Hold.APPROVAL or task.kind is Kind.APPROVAL:
        return f'; it waits for approval: hf.approve("{task.id}")'
    return ""
