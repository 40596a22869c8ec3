"""The commands of `task` and `plan`: single tasks, and plans with their children."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app.command_registry import command, group
from holdfast.cli.app.options import (
    DryRun,
    Json,
    NewLabels,
    TaskAddress,
    read_json,
    read_moment,
)
from holdfast.cli.app.session import open_service, with_store
from holdfast.cli.app.terminal import escape, print_json, print_line, print_note
from holdfast.cli.commands.control import print_changed
from holdfast.cli.render.preview import print_preview
from holdfast.errors import InvalidInput
from holdfast.service.commands.request_errors import rename_fields

if TYPE_CHECKING:
    from holdfast.service.service import Service

task = group("task", "Create and change single tasks.")
plan = group("plan", "Split a task into children that run as a chain or a graph.")

Payload = Annotated[str | None, typer.Option(help="The payload, as JSON.")]
Agent = Annotated[
    str | None, typer.Option("--agent", "-a", help="The agent it is for (default: default).")
]
Priority = Annotated[int | None, typer.Option(help="Higher goes first.")]
Tag = Annotated[
    list[str] | None, typer.Option("--tag", "-t", help="A tag its worker must offer; repeatable.")
]
When = Annotated[
    str | None,
    typer.Option("--at", help="When it may start: 10m from now, or 2030-01-31T09:00+01:00."),
]
MaxAttempts = Annotated[int | None, typer.Option(help="How many attempts may fail.")]
MaxLost = Annotated[
    int | None, typer.Option(help="How many attempts may be lost with their worker.")
]
Timeout = Annotated[str | None, typer.Option(help="Time limit of one attempt, e.g. 30m.")]
Needs = Annotated[
    list[str] | None, typer.Option("--needs", help="A task that must be done first; repeatable.")
]
Title = Annotated[str, typer.Argument(metavar="TITLE", help="What to do.")]
Prompt = Annotated[
    str | None,
    typer.Option(help="What its agent is asked to do; - reads it from standard input."),
]
Key = Annotated[str | None, typer.Option(help="Create only once under this key.")]
CalledWorkflow = Annotated[
    str | None,
    typer.Option("--workflow", help="A workflow, by its name or file, of which it is a run."),
]
CalledInputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=VALUE", help="With --workflow: an input of it."),
]

# Ids and keys as they are, or in double quotes where a key has colons or commas.
_WRITTEN = r'"(?:[^"\\]|\\.)*"|[^":,][^:,]*'
_NAME = re.compile(_WRITTEN)
_LINK = re.compile(rf"(?P<child>{_WRITTEN}):(?P<needed>(?:(?:{_WRITTEN})?(?:,|$))*)")


@command("add", of=task, example="holdfast task add 'Tidy the shed' --agent developer --at 10m")
def add(
    title: Title,
    agent: Agent = None,
    prompt: Prompt = None,
    payload: Payload = None,
    workflow: CalledWorkflow = None,
    given: CalledInputs = None,
    needs: Needs = None,
    parent: Annotated[str | None, typer.Option(help="The task it is part of.")] = None,
    step: Annotated[
        str | None, typer.Option(help="The function of a program that does it.")
    ] = None,
    at: When = None,
    priority: Priority = None,
    tag: Tag = None,
    label: NewLabels = None,
    key: Key = None,
    max_attempts: MaxAttempts = None,
    max_lost: MaxLost = None,
    timeout: Timeout = None,
    no_enqueue: Annotated[
        bool, typer.Option("--no-enqueue", help="Leave it idle: do not queue it yet.")
    ] = False,
    json: Json = False,
) -> None:
    """Add a task to the queue."""
    from holdfast.model.labels import parse_labels
    from holdfast.model.task import NewTask

    with open_service(begins=True) as service:
        find = service.addresses.task
        fields = _read_fields(
            agent=agent, prompt=prompt, payload=payload, at=at, priority=priority, tag=tag
        )
        wanted = NewTask(
            title=title,
            step=step,
            key=key,
            needs=_find_needs(service, needs),
            parent=None if parent is None else find(parent),
            timeout=_read_seconds(timeout),
            retry=_retry_policy(max_attempts, max_lost),
            enqueue=not no_enqueue,
            labels=parse_labels("label", label) or {},
            **fields,
            **_read_call(service, workflow, given, prompt, payload),
        )
        _print_added(service.commands.add_task(wanted), json=json)


@command("enqueue", of=task, example="holdfast task enqueue t_…")
def enqueue(address: TaskAddress, json: Json = False) -> None:
    """Queue an idle task."""
    with open_service() as service:
        found = service.addresses.task(address)
        print_changed(service, service.commands.enqueue(found), json=json)


@command("run-now", of=task, example="holdfast task run-now t_…")
def run_now(address: TaskAddress, json: Json = False) -> None:
    """Put a task first in line, past order, start time, a pause and a sleep of its function."""
    with open_service() as service:
        found = service.addresses.task(address)
        print_changed(service, service.commands.run_now(found), json=json)


@command("reset", of=task, example="holdfast task reset t_…")
def reset(address: TaskAddress, json: Json = False) -> None:
    """Set a task back to idle, as if it had never run."""
    with open_service() as service:
        found = service.addresses.task(address)
        print_changed(service, service.commands.reset(found), json=json)


@command("edit", of=task, example="holdfast task edit t_… --priority 5 --title 'Tidy both sheds'")
def edit(
    address: TaskAddress,
    title: Annotated[str | None, typer.Option(help="What to do.")] = None,
    agent: Agent = None,
    prompt: Annotated[
        str | None, typer.Option(help="A new prompt, in a new payload; - reads it from stdin.")
    ] = None,
    payload: Payload = None,
    at: When = None,
    priority: Priority = None,
    position: Annotated[
        int | None, typer.Option(help="Its place among tasks of equal priority; lower goes first.")
    ] = None,
    tag: Tag = None,
    max_attempts: MaxAttempts = None,
    max_lost: MaxLost = None,
    timeout: Timeout = None,
    version: Annotated[
        int | None, typer.Option(help="Edit only if it is still at this version.")
    ] = None,
    json: Json = False,
) -> None:
    """Edit an idle or queued task."""
    fields = _read_fields(
        agent=agent, prompt=prompt, payload=payload, at=at, priority=priority, tag=tag
    )
    more = {
        "title": title,
        "position": position,
        "max_attempts": max_attempts,
        "max_lost": max_lost,
        "timeout": _read_seconds(timeout),
    }
    changes = fields | {name: value for name, value in more.items() if value is not None}
    if not changes:
        raise InvalidInput("edit", "nothing to change was given; `holdfast task edit --help`")
    with open_service() as service:
        found = service.addresses.task(address)
        print_changed(service, service.commands.edit(found, changes, version), json=json)


@command("block", of=task, example="holdfast task block t_… --needs @last:plan")
def block(address: TaskAddress, needs: Needs = None, json: Json = False) -> None:
    """Make a task that has not started wait for others too."""
    if not needs:
        raise InvalidInput("needs", "is missing: --needs names a task that must be done before")
    with open_service() as service:
        found, needed = service.addresses.task(address), _find_needs(service, needs)
        print_changed(service, service.commands.block(found, needed), json=json)


@command("unblock", of=task, example="holdfast task unblock t_… --needs t_…")
def unblock(
    address: TaskAddress,
    needs: Annotated[
        list[str] | None,
        typer.Option(
            "--needs", help="Stop waiting for this task; repeatable (default: all added by hand)."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Stop a task waiting for others that were added by hand."""
    with open_service() as service:
        found, needed = service.addresses.task(address), _find_needs(service, needs)
        print_changed(service, service.commands.unblock(found, needed or None), json=json)


@command("delete", of=task, example="holdfast task delete t_…")
def delete(address: TaskAddress, json: Json = False) -> None:
    """Delete a task that nothing needs, with its history."""
    with open_service() as service:
        found = service.addresses.task(address)
        told = service.commands.delete(found)
    if json:
        print_json(told)
    else:
        print_line(f"{found} is deleted")


@command("start", of=plan, example="holdfast plan start t_…")
def start(address: TaskAddress, json: Json = False) -> None:
    """Start to plan an idle task; its children will do the work."""
    with open_service() as service:
        found = service.addresses.task(address)
        print_changed(service, service.commands.start_planning(found), json=json)
    if not json:
        following = with_store(f"holdfast plan add {found} 'First part'")
        print_note(f"next:  {following}")


@command("add", of=plan, example="holdfast plan add t_… 'Write the parser' --agent developer")
def add_child(
    address: TaskAddress,
    title: Title,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="The agent it is for (default: the plan's).")
    ] = None,
    prompt: Prompt = None,
    payload: Payload = None,
    workflow: CalledWorkflow = None,
    given: CalledInputs = None,
    needs: Annotated[
        list[str] | None,
        typer.Option(
            "--needs",
            help="A child that must be done first, by id or key; repeatable "
            "(default: those before it).",
        ),
    ] = None,
    key: Key = None,
    position: Annotated[
        int | None, typer.Option(help="Its place; lower goes first (default: last).")
    ] = None,
    json: Json = False,
) -> None:
    """Add a child to a plan; it starts once the plan is finalized."""
    from holdfast.model.task import NewTask

    with open_service() as service:
        parent = service.queries.task(service.addresses.task(address))
        wanted = NewTask(
            title=title,
            parent=parent["id"],
            needs=_find_needs(service, needs),
            key=key,
            position=position,
            enqueue=False,
            part=True,
            **(
                {"agent": parent["agent"]}
                | _read_fields(agent=agent, prompt=prompt, payload=payload)
                | _read_call(service, workflow, given, prompt, payload)
            ),
        )
        _print_added(service.commands.add_task(wanted), json=json)


@command("reorder", of=plan, example="holdfast plan reorder t_… login logout t_…")
def reorder(
    address: TaskAddress,
    order: Annotated[
        list[str],
        typer.Argument(metavar="CHILD…", help="All its children, first to last, by id or key."),
    ],
    json: Json = False,
) -> None:
    """Put the children of a plan in an order, before it is finalized."""
    with open_service() as service:
        found = service.addresses.task(address)
        with rename_fields(id="order", task="order", run="order"):
            wanted = [service.addresses.task_or_key(each) for each in order]
        print_changed(service, service.commands.reorder_plan(found, wanted), json=json)


@command("finalize", of=plan, example="holdfast plan finalize t_… --graph t_b:t_a --graph t_c:t_a")
def finalize(
    address: TaskAddress,
    graph: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            metavar="CHILD:NEED,…",
            help="What a child needs; repeatable (default: a chain). A key with a colon or comma "
            """goes in double quotes: '"x:2":"x:1"'.""",
        ),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Queue the children of a plan, as a chain or as a graph."""
    links = None if graph is None else [_read_link(each) for each in graph]
    with open_service() as service:
        found = service.addresses.task(address)
        needs = None if links is None else _merge_links(links, service.addresses.task_or_key)
        if dry_run:
            preview = service.previews.preview("finalize_plan", found, needs)
            how = "".join(f" --graph {shlex.quote(each)}" for each in graph or ())
            print_preview(preview, "plan finalize", f"{found}{how}", json=json)
            return
        print_changed(service, service.commands.finalize_plan(found, needs), json=json)


def _read_link(text: str) -> tuple[str, list[str]]:
    """A child of a plan and the tasks it needs; `CHILD:` is a child that needs none."""
    found = _LINK.fullmatch(text)
    if found is None:
        raise InvalidInput("graph", _describe_bad_link(text))
    needed = [each[0] for each in _NAME.finditer(found["needed"])]
    return _read_name(found["child"]), [_read_name(each) for each in needed]


def _read_name(written: str) -> str:
    return re.sub(r"\\(.)", r"\1", written[1:-1]) if written.startswith('"') else written


def _describe_bad_link(text: str) -> str:
    if ":" in text:
        quoted = shlex.quote('"x:2":"x:1"')
        return (
            f"{text!r} has several colons: put keys with colons or commas in double quotes, as in "
            f"--graph {quoted}"
        )
    return (
        f"{text!r} does not say what it needs: write CHILD:NEED, as t_b:t_a or t_c:t_a,t_b, "
        f"and `{text}:` for a child that needs nothing"
    )


def _merge_links(
    links: list[tuple[str, list[str]]], find: Callable[[str], str]
) -> dict[str, list[str]]:
    """The needs of each child, merged from all links that name the child."""
    needs: dict[str, list[str]] = {}
    for child, needed in links:
        needs.setdefault(find(child), []).extend(find(each) for each in needed)
    return needs


def _find_needs(service: Service, needs: list[str] | None) -> tuple[str, ...]:
    """The tasks that are needed, by their addresses or keys."""
    with rename_fields(id="needs", task="needs", run="needs"):
        return tuple(service.addresses.task_or_key(each) for each in needs or ())


def _read_fields(
    *,
    agent: str | None = None,
    prompt: str | None = None,
    payload: str | None = None,
    at: str | None = None,
    priority: int | None = None,
    tag: list[str] | None = None,
) -> dict[str, Any]:
    """The fields of a task that the options give."""
    given = {
        "agent": agent,
        "payload": _read_payload(prompt, payload),
        "scheduled_for": read_moment("scheduled_for", at),
        "priority": priority,
        "tags": tuple(tag) if tag else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _read_call(
    service: Service,
    workflow: str | None,
    given: list[str] | None,
    prompt: str | None,
    payload: str | None,
) -> dict[str, Any]:
    """The fields of a task that is a run of a workflow; one in a file is added to the store.

    What does not fit the workflow is refused before.
    """
    from holdfast.model.workflow.run_input import fill_input
    from holdfast.service.commands.task_fields import read_call

    read = None
    said: dict[str, Any] = {"workflow": workflow, "prompt": prompt, "payload": payload}
    if workflow is None:
        said["input"] = given
    else:
        from holdfast.cli.commands.run import WORKFLOW_FILE_SUFFIXES, request_of_workflow

        if Path(workflow).suffix in WORKFLOW_FILE_SUFFIXES:
            from holdfast.definition.workflow_file import read_workflow_file

            known = read = read_workflow_file(Path(workflow))
        else:
            known = service.commands.find_workflow(workflow)
        said |= {"workflow": known.name, "input": request_of_workflow(known, given or []).input}
    fields = read_call({name: value for name, value in said.items() if value is not None})
    if read is not None:
        fill_input(read, fields["payload"])
        service.commands.add_workflow(read)
    return fields


def _read_payload(prompt: str | None, payload: str | None) -> Any:  # noqa: ANN401 - JSON is any value
    """The payload that was typed, with the prompt in it."""
    from holdfast.service.commands.task_fields import add_prompt

    given = None if payload is None else read_json("payload", payload)
    if prompt is None:
        return given
    return add_prompt(sys.stdin.read() if prompt == "-" else prompt, given)


def _read_seconds(text: str | None) -> float | None:
    from holdfast.model.units import parse_duration

    if text is None:
        return None
    return float(text) if text.isdecimal() else parse_duration("timeout", text)


def _retry_policy(max_attempts: int | None, max_lost: int | None) -> Any:  # noqa: ANN401 - a RetryPolicy
    from holdfast.model.retry import RetryPolicy

    given = {"max_attempts": max_attempts, "max_lost": max_lost}
    return RetryPolicy(**{name: value for name, value in given.items() if value is not None})


def _print_added(made: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(made)
        return
    said = "is" if made["created"] else "already exists, and is"
    print_line(f"{escape(made['title'])} {made['id']} {said} {made['state']}")
