"""Single tasks and plans: add, put in the queue, put first, take back, edit, remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from holdfast.cli.options import DryRun, Json, TaskAddress, read_json, read_moment
from holdfast.cli.previewing import say_preview
from holdfast.cli.registry import command, group
from holdfast.cli.session import opened, with_store
from holdfast.cli.steering import say_changed
from holdfast.cli.terminal import escape, note, say, say_json
from holdfast.errors import InvalidInput

task = group("task", "Make and change single tasks.")
plan = group("plan", "Split a task into children that run one after another.")

Payload = Annotated[str | None, typer.Option(help="What it is about, as JSON.")]
Agent = Annotated[str | None, typer.Option("--agent", "-a", help="The agent it is for; default.")]
Priority = Annotated[int | None, typer.Option(help="Higher ones first.")]
Tag = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag its worker must offer.")]
When = Annotated[
    str | None, typer.Option("--at", help="Not before: 10m from now, or 2030-01-31T09:00+01:00.")
]
MaxAttempts = Annotated[int | None, typer.Option(help="How many attempts may fail.")]
MaxLost = Annotated[int | None, typer.Option(help="How many attempts may vanish.")]
Timeout = Annotated[str | None, typer.Option(help="How long one attempt may take: 30m.")]
Needs = Annotated[
    list[str] | None, typer.Option("--needs", help="A task that must be done before.")
]
Title = Annotated[str, typer.Argument(metavar="TITLE", help="What is to be done.")]


@command("add", of=task, example="holdfast task add 'Tidy the shed' --agent developer --at 10m")
def add(
    title: Title,
    agent: Agent = None,
    payload: Payload = None,
    needs: Needs = None,
    parent: Annotated[str | None, typer.Option(help="The task it is a part of.")] = None,
    step: Annotated[
        str | None, typer.Option(help="The function of a program that does it.")
    ] = None,
    at: When = None,
    priority: Priority = None,
    tag: Tag = None,
    key: Annotated[str | None, typer.Option(help="The same key again is the same task.")] = None,
    max_attempts: MaxAttempts = None,
    max_lost: MaxLost = None,
    timeout: Timeout = None,
    idle: Annotated[bool, typer.Option("--idle", help="Do not put it in the queue yet.")] = False,
    json: Json = False,
) -> None:
    """Add a task to the queue."""
    from holdfast.model.task import NewTask

    with opened(begins=True) as service:
        find = service.addresses.task
        fields = _fields(agent=agent, payload=payload, at=at, priority=priority, tag=tag)
        wanted = NewTask(
            title=title,
            step=step,
            key=key,
            needs=tuple(find(each) for each in needs or ()),
            parent=None if parent is None else find(parent),
            timeout=_seconds(timeout),
            retry=_retry(max_attempts, max_lost),
            enqueue=not idle,
            **fields,
        )
        _say_added(service.commands.add_task(wanted), json=json)


@command("enqueue", of=task, example="holdfast task enqueue t_…")
def enqueue(address: TaskAddress, json: Json = False) -> None:
    """Put an idle task in the queue."""
    with opened() as service:
        found = service.addresses.task(address)
        say_changed(service, service.commands.enqueue(found), json=json)


@command("run-now", of=task, example="holdfast task run-now t_…")
def run_now(address: TaskAddress, json: Json = False) -> None:
    """Put a task first in line: order, time and a pause no longer hold it up."""
    with opened() as service:
        found = service.addresses.task(address)
        say_changed(service, service.commands.run_now(found), json=json)


@command("reset", of=task, example="holdfast task reset t_…")
def reset(address: TaskAddress, json: Json = False) -> None:
    """Take a task back to idle, as if it had never run."""
    with opened() as service:
        found = service.addresses.task(address)
        say_changed(service, service.commands.reset(found), json=json)


@command("edit", of=task, example="holdfast task edit t_… --priority 5 --title 'Tidy both sheds'")
def edit(
    address: TaskAddress,
    title: Annotated[str | None, typer.Option(help="What is to be done.")] = None,
    agent: Agent = None,
    payload: Payload = None,
    at: When = None,
    priority: Priority = None,
    position: Annotated[int | None, typer.Option(help="Its place among its like.")] = None,
    tag: Tag = None,
    max_attempts: MaxAttempts = None,
    max_lost: MaxLost = None,
    timeout: Timeout = None,
    version: Annotated[
        int | None, typer.Option(help="Only if it is still at this version.")
    ] = None,
    json: Json = False,
) -> None:
    """Change a task that is idle or queued, between two attempts too."""
    fields = _fields(agent=agent, payload=payload, at=at, priority=priority, tag=tag)
    more = {
        "title": title,
        "position": position,
        "max_attempts": max_attempts,
        "max_lost": max_lost,
        "timeout": _seconds(timeout),
    }
    changes = fields | {name: value for name, value in more.items() if value is not None}
    if not changes:
        raise InvalidInput("edit", "nothing to change was given; `holdfast task edit --help`")
    with opened() as service:
        found = service.addresses.task(address)
        say_changed(service, service.commands.edit(found, changes, version), json=json)


@command("block", of=task, example="holdfast task block t_… --needs @last:plan")
def block(address: TaskAddress, needs: Needs = None, json: Json = False) -> None:
    """Have a task that has not begun wait for others too."""
    if not needs:
        raise InvalidInput("needs", "is missing: --needs names a task that must be done before")
    with opened() as service:
        find = service.addresses.task
        found, needed = find(address), [find(each) for each in needs]
        say_changed(service, service.commands.block(found, needed), json=json)


@command("unblock", of=task, example="holdfast task unblock t_… --needs t_…")
def unblock(
    address: TaskAddress,
    needs: Annotated[
        list[str] | None,
        typer.Option("--needs", help="A task that it was linked to; else all of those."),
    ] = None,
    json: Json = False,
) -> None:
    """Have a task wait no more for others that it was linked to by hand."""
    with opened() as service:
        find = service.addresses.task
        found, needed = find(address), [find(each) for each in needs or ()]
        say_changed(service, service.commands.unblock(found, needed or None), json=json)


@command("delete", of=task, example="holdfast task delete t_…")
def delete(address: TaskAddress, json: Json = False) -> None:
    """Remove a task that nothing needs, with its history."""
    with opened() as service:
        found = service.addresses.task(address)
        told = service.commands.delete(found)
    if json:
        say_json(told)
    else:
        say(f"{found} is gone")


@command("start", of=plan, example="holdfast plan start t_…")
def start(address: TaskAddress, json: Json = False) -> None:
    """Begin to plan an idle task: it is worked on by the children added to it."""
    with opened() as service:
        found = service.addresses.task(address)
        say_changed(service, service.commands.start_planning(found), json=json)
    if not json:
        following = with_store(f"holdfast plan add {found} 'First part'")
        note(f"next:  {following}")


@command("add", of=plan, example="holdfast plan add t_… 'Write the parser' --agent developer")
def add_child(
    address: TaskAddress,
    title: Title,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="The agent it is for; else the plan's.")
    ] = None,
    payload: Payload = None,
    position: Annotated[
        int | None, typer.Option(help="Its place, lower ones first; else last.")
    ] = None,
    json: Json = False,
) -> None:
    """Add a child to a plan; it waits until the plan is finalized."""
    from holdfast.model.task import NewTask

    with opened() as service:
        parent = service.queries.task(service.addresses.task(address))
        wanted = NewTask(
            title=title,
            parent=parent["id"],
            position=position,
            enqueue=False,
            part=True,
            **({"agent": parent["agent"]} | _fields(agent=agent, payload=payload)),
        )
        _say_added(service.commands.add_task(wanted), json=json)


@command("finalize", of=plan, example="holdfast plan finalize t_… --graph t_b:t_a --graph t_c:t_a")
def finalize(
    address: TaskAddress,
    graph: Annotated[
        list[str] | None,
        typer.Option("--graph", metavar="CHILD:NEED,…", help="Who needs whom; else a chain."),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Queue the children of a plan: as a chain in their order, or by what each needs."""
    links = None if graph is None else [_link(each) for each in graph]
    with opened() as service:
        found = service.addresses.task(address)
        needs = None if links is None else _merge(links, service.addresses.task)
        if dry_run:
            preview = service.previews.one("finalize_plan", found, needs)
            how = "".join(f" --graph {each}" for each in graph or ())
            say_preview(preview, "plan finalize", f"{found}{how}", json=json)
            return
        say_changed(service, service.commands.finalize_plan(found, needs), json=json)


def _link(text: str) -> tuple[str, list[str]]:
    """A child and what it needs; of none, nothing stands behind the colon."""
    child, colon, needed = text.partition(":")
    if not colon:
        reason = (
            f"{text!r} does not say what it needs: write CHILD:NEED, as t_b:t_a or t_c:t_a,t_b, "
            f"and `{text}:` for a child that needs nothing"
        )
        raise InvalidInput("graph", reason)
    return child, [each for each in needed.split(",") if each]


def _merge(links: list[tuple[str, list[str]]], find: Callable[[str], str]) -> dict[str, list[str]]:
    """All that each child needs, wherever it was said."""
    needs: dict[str, list[str]] = {}
    for child, needed in links:
        needs.setdefault(find(child), []).extend(find(each) for each in needed)
    return needs


def _fields(
    *,
    agent: str | None = None,
    payload: str | None = None,
    at: str | None = None,
    priority: int | None = None,
    tag: list[str] | None = None,
) -> dict[str, Any]:
    """The fields of a task that were given."""
    given = {
        "agent": agent,
        "payload": None if payload is None else read_json("payload", payload),
        "scheduled_for": read_moment("scheduled_for", at),
        "priority": priority,
        "tags": tuple(tag) if tag else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _seconds(text: str | None) -> float | None:
    from holdfast.model.duration import parse_duration

    if text is None:
        return None
    return float(text) if text.isdecimal() else parse_duration("timeout", text)


def _retry(max_attempts: int | None, max_lost: int | None) -> Any:  # noqa: ANN401 - a RetryPolicy
    from holdfast.model.retry import RetryPolicy

    given = {"max_attempts": max_attempts, "max_lost": max_lost}
    return RetryPolicy(**{name: value for name, value in given.items() if value is not None})


def _say_added(made: dict[str, Any], *, json: bool) -> None:
    if json:
        say_json(made)
        return
    said = "is" if made["created"] else "was there, and is"
    say(f"{escape(made['title'])} {made['id']} {said} {made['state']}")
