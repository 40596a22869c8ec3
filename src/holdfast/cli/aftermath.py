"""What a command changed beside what it named, what it left on hold, and what nobody waits for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from holdfast.cli.session import with_store
from holdfast.cli.terminal import escape, note, paint, say
from holdfast.cli.words import count, one_line

if TYPE_CHECKING:
    from holdfast.service.service import Service

View = dict[str, Any]
SHOWN = 5


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


def note_still_held(run: View) -> None:
    """Say which tasks of a run that was resumed stay on hold by themselves, and what to type."""
    from holdfast.cli.standing import tell_holds
    from holdfast.service.outline import every_task, step_names

    held = [task for task in every_task(run["tasks"]) if _is_held(task)]
    if not held:
        return
    names = step_names(run["tasks"])
    stay = "1 of its tasks stays" if len(held) == 1 else f"{len(held)} of its tasks stay"
    lines = [f"{stay} on hold:"]
    for task in held[:SHOWN]:
        name = one_line(names[task["id"]], 60)
        lines.append(f"  {name}  {tell_holds(task)}   {with_store(_how_to_let_go(task))}")
    if len(held) > SHOWN:
        more = f"holdfast why {run['id']}"
        lines.append(f"  and {len(held) - SHOWN} more: {with_store(more)}")
    for line in lines:
        note(paint(line, "dim"))


def _is_held(task: View) -> bool:
    return bool(task["holds"]) and "finished_at" not in task and not task.get("superseded")


def _how_to_let_go(task: View) -> str:
    from holdfast.cli.standing import what_to_say

    if "paused" in task["holds"]:
        return f"holdfast resume {task['id']}"
    asks = {"approval", "question"} & {*task["holds"]}
    return what_to_say(task) if asks else f"holdfast why {task['id']}"


def note_unheard(target: str, name: str, awaited: Sequence[View], more: Sequence[str]) -> None:
    """Say that nothing waits for a signal as it was typed, and what is waited for.

    It may be early, and is kept; or it is misspelt, or meant for a run that this one has called.
    """
    kept = f"Nothing of {target} waits for {escape(name)} now; it is kept until something does."
    note(paint(kept, "dim"))
    if not awaited:
        return
    shown = [
        escape(each["name"]) + ("" if each["target"] == target else f" of {each['target']}")
        for each in awaited[:SHOWN]
    ]
    rest = [f"{len(awaited) - SHOWN} more"] if len(awaited) > SHOWN else []
    note(paint(f"Waited for: {', '.join([*shown, *rest])}", "dim"))
    for each in _nearest(name, awaited):
        meant = shlex.join(["holdfast", "signal", each["target"], each["name"], *more])
        note(paint(f"Did you mean: {with_store(escape(meant))}", "dim"))


def _nearest(name: str, awaited: Sequence[View]) -> list[View]:
    close = get_close_matches(name, [each["name"] for each in awaited], n=1)
    return [each for each in awaited if each["name"] in close][:1]
