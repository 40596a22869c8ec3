"""Previews: the changes that a command would make, a line for each task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.app.session import with_store
from holdfast.cli.app.terminal import paint, print_json, print_line, print_note
from holdfast.cli.render.formats import format_count, format_state, one_line

if TYPE_CHECKING:
    from holdfast.service.commands.previews import Preview
    from holdfast.service.service import Service

View = dict[str, Any]


def preview_each(
    service: Service, verb: str, identifiers: list[str], *, json: bool, **options: float
) -> int:
    """Print a preview or refusal for each run or task, and return the worst exit code."""
    from holdfast.cli.app.advice import print_error
    from holdfast.service.commands.request_errors import Refused

    worst = 0
    how = "".join(f" --{name.replace('_', '-')} {value:g}" for name, value in options.items())
    previews = service.previews.preview_each(verb, identifiers, **options)
    for found, preview in zip(identifiers, previews, strict=True):
        if isinstance(preview, Refused):
            worst = max(worst, print_error(preview, json=json))
        else:
            print_preview(preview, verb, f"{found}{how}", json=json)
    return worst


def print_preview(
    preview: Preview, verb: str, identifier: str, *, json: bool, about: View | None = None
) -> None:
    if json:
        told = {"id": identifier.partition(" ")[0]} if about is None else about
        print_json(preview.view(**told))
        return
    print_line(f"would {verb} {identifier}: {_describe_counts(preview)}")
    for task in preview.tasks:
        print_line(f"  {task['id']}  {one_line(_name_task(task), 60)}  {_describe_change(task)}")
    for task in preview.new_tasks:
        print_line(f"  new  {one_line(_name_task(task), 60)}  {format_state(task['becomes'])}")
    print_note(
        paint(f"Nothing was changed. Do it: {with_store(f'holdfast {verb} {identifier}')}", "dim")
    )


def _describe_counts(preview: Preview) -> str:
    """The numbers of tasks that change directly, that change in consequence, and that are new."""
    others = f"{preview.indirect} {'other changes' if preview.indirect == 1 else 'others change'}"
    more = [others] if preview.indirect else []
    more += [f"{len(preview.new_tasks)} new"] if preview.new_tasks else []
    told = format_count(len(preview.tasks) - preview.indirect, "task")
    return ", and ".join([told, *more])


def _name_task(task: View) -> str:
    """The address of a task in its run with its title, or its title alone without a run."""
    from holdfast.service.queries.run_tree import name_task

    return name_task(task, task["address"].partition(":")[2])


def _describe_change(task: View) -> str:
    """The state of a task, and its state after the change if that differs."""
    states = dict.fromkeys((task["state"], task.get("becomes", task["state"])))
    return " → ".join(map(format_state, states))
