"""What a command changed beside the task that it named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.terminal import escape, say
from holdfast.cli.words import count

if TYPE_CHECKING:
    from holdfast.service.service import Service

View = dict[str, Any]


def run_around(service: Service, task_id: str) -> View | None:
    """The run of a task, as it stands before the task is taken up again."""
    run_id = service.queries.task(task_id).get("run_id")
    return None if run_id is None else service.queries.run(run_id, brief=True)


def say_came_back(service: Service, before: View, task_id: str) -> None:
    """Say that its run goes on with a task that was taken up again, and how many others do."""
    now = service.queries.run(before["id"], brief=True)
    others = _reopened(before, now) - {task_id}
    stood = before["status"] != "running" or "failing" in before["holds"]
    if not stood and not others:
        return
    goes_on = f"comes back too, held: {', '.join(now['holds'])}" if now["holds"] else "goes on too"
    more = f", with {count(len(others), 'other task')} re-opened" if others else ""
    say(f"{escape(now['workflow'])} {now['id']} {goes_on}{more}")


def _reopened(before: View, now: View) -> set[str]:
    """What began again of a run, and of what it has called; a group only with what is in it."""
    from holdfast.service.outline import every_task

    known = {task["id"]: task["generation"] for task in every_task(before["tasks"])}
    return {
        task["id"]
        for task in every_task(now["tasks"])
        if task["kind"] != "group" and not task.get("superseded")
        if task["generation"] > known.get(task["id"], task["generation"])
    }
