"""Side effects: changes of a command to other runs and tasks than it named, and what stays open."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import escape, paint, print_line, print_note
from holdfast.cli.render.formats import describe_error_line, format_count, one_line
from holdfast.service.queries.run_tree import name_steps, name_task, walk_tasks

if TYPE_CHECKING:
    from holdfast.service.service import Service

View = dict[str, Any]
SHOWN = 5


def read_tasks_above(service: Service, identifier: str) -> list[View]:
    """The runs and plans above a run or task, the nearest first, as they are before a change.

    Above a task of a run are its run and the callers of that run; above a run are its callers;
    above a part of a plan is the topmost plan.
    """
    if identifier.startswith("r_"):
        return _callers_of(service, service.queries.run(identifier, brief=True))
    task = service.queries.task(identifier)
    if "run_id" in task:
        run = service.queries.run(task["run_id"], brief=True)
        return [run, *_callers_of(service, run)]
    top = task
    while "parent_id" in top:
        top = service.queries.task(top["parent_id"])
    return [] if top is task else [_read_view(service, top["id"])]


def _callers_of(service: Service, run: View) -> list[View]:
    found = [run]
    while "run_id" in found[-1].get("caller", {}):
        found.append(service.queries.run(found[-1]["caller"]["run_id"], brief=True))
    return found[1:]


def _read_view(service: Service, identifier: str) -> View:
    """A run with its tasks, or a plan with all tasks below it."""
    if identifier.startswith("r_"):
        return service.queries.run(identifier, brief=True)
    return {**service.queries.task(identifier), "tasks": service.queries.tasks_below(identifier)}


def print_reopened(service: Service, before: Sequence[View], identifier: str) -> None:
    """Print the runs and plans above that go on with a re-opened run or task."""
    told = {identifier}
    if identifier.startswith("r_"):
        told |= {task["id"] for task in walk_tasks(_read_view(service, identifier)["tasks"])}
    for stood in before:
        now = _read_view(service, stood["id"])
        others = _reopened(stood, now) - told
        if not _had_stopped(stood) and not others:
            continue
        held = f"comes back too (held: {', '.join(now['holds'])})" if now["holds"] else ""
        more = f", with {format_count(len(others), 'other task')} re-opened" if others else ""
        print_line(f"{_name_unit(now)} {now['id']} {held or 'goes on too'}{more}")
        told |= others


def print_failures_above(service: Service, before: Sequence[View], identifier: str) -> None:
    """Print the runs and plans that fail because of a cancelled part, and how to re-open it."""
    told = False
    for stood in before:
        now = _read_view(service, stood["id"])
        if not _has_failure(now) or (_has_failure(stood) and now["status"] == stood["status"]):
            continue
        ended = now["status"] == "failed"
        more = "has failed" if ended else "begins nothing more, and will fail"
        print_line(f"{_name_unit(now)} {now['id']} {more} because of it")
        told = True
    if told:
        print_note(f"next:  {with_store('holdfast retry ' + identifier)}")


def _name_unit(now: View) -> str:
    return one_line(now["workflow"] if "workflow" in now else name_task(now), 60)


def _had_stopped(stood: View) -> bool:
    """Whether a run or plan had ended, or started nothing new because a part of it had failed."""
    return "finished_at" in stood or _has_failure(stood)


def _has_failure(stood: View) -> bool:
    """Whether a part of a run or plan has failed, so that the whole has failed or will fail."""
    if "finished_at" in stood:
        return bool(stood["status"] == "failed")
    if "workflow" in stood:
        return "failing" in stood["holds"]
    ended = {each["status"] for each in stood["tasks"] if not each.get("superseded")}
    return stood["planning_phase"] == "finalized" and bool(ended & {"failed", "cancelled"})


def _reopened(before: View, now: View) -> set[str]:
    """The tasks of a run, and of runs it called, that began again; groups are not counted."""
    known = {task["id"]: task["generation"] for task in walk_tasks(before["tasks"])}
    return {
        task["id"]
        for task in walk_tasks(now["tasks"])
        if task["kind"] != "group" and not task.get("superseded")
        if task["generation"] > known.get(task["id"], task["generation"])
    }


def note_failed_again(now: View) -> None:
    """Note that a re-opened run or task has failed again, and the command that explains it."""
    error = f": {describe_error_line(now['error'])}" if now.get("error") is not None else ""
    print_note(f"It failed again at once{error}")
    print_note(f"next:  {with_store('holdfast why ' + now['id'])}")


def note_still_held(run: View) -> None:
    """Note the tasks of a resumed run that have holds of their own, and the commands for them."""
    from holdfast.cli.render.step_status import describe_holds

    held = [task for task in walk_tasks(run["tasks"]) if _is_held(task)]
    if not held:
        return
    names = name_steps(run["tasks"])
    stay = "1 of its tasks stays" if len(held) == 1 else f"{len(held)} of its tasks stay"
    lines = [f"{stay} on hold:"]
    for task in held[:SHOWN]:
        name = one_line(names[task["id"]], 60)
        lines.append(f"  {name}  {describe_holds(task)}   {with_store(_advise_held_task(task))}")
    if len(held) > SHOWN:
        more = f"holdfast why {run['id']}"
        lines.append(f"  and {len(held) - SHOWN} more: {with_store(more)}")
    for line in lines:
        print_note(paint(line, "dim"))


def _is_held(task: View) -> bool:
    return bool(task["holds"]) and "finished_at" not in task and not task.get("superseded")


def _advise_held_task(task: View) -> str:
    from holdfast.cli.render.step_status import advise_answer

    if "paused" in task["holds"]:
        return f"holdfast resume {task['id']}"
    asks = {"approval", "question"} & {*task["holds"]}
    return advise_answer(task) if asks else f"holdfast why {task['id']}"


def note_unheard(target: str, name: str, awaited: Sequence[View], more: Sequence[str]) -> None:
    """Note that nothing waits for a signal of this name, and which signals are awaited.

    The signal is kept. It may be early or misspelt, or meant for a run that this run called.
    """
    kept = f"Nothing of {target} waits for {escape(name)} now; it is kept until something does."
    print_note(paint(kept, "dim"))
    if not awaited:
        return
    shown = [
        escape(each["name"]) + ("" if each["target"] == target else f" of {each['target']}")
        for each in awaited[:SHOWN]
    ]
    rest = [f"{len(awaited) - SHOWN} more"] if len(awaited) > SHOWN else []
    print_note(paint(f"Waited for: {', '.join([*shown, *rest])}", "dim"))
    for each in _nearest(name, awaited):
        meant = shlex.join(["holdfast", "signal", each["target"], each["name"], *more])
        print_note(paint(f"Did you mean: {with_store(escape(meant))}", "dim"))


def _nearest(name: str, awaited: Sequence[View]) -> list[View]:
    close = get_close_matches(name, [each["name"] for each in awaited], n=1)
    return [each for each in awaited if each["name"] in close][:1]
