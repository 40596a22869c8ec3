"""Workers: one that runs a program's steps, and the protocol of one written as a script."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.logs import show_logs
from holdfast.cli.options import Json, read_json, read_lease, read_moment, read_value
from holdfast.cli.registry import Store, command, group
from holdfast.cli.session import chosen_store, opened, place, project, shown_url
from holdfast.cli.steering import say_answer
from holdfast.cli.tables import say_table
from holdfast.cli.terminal import escape, note, say, say_json, tell_json
from holdfast.cli.words import ago
from holdfast.errors import InvalidInput
from holdfast.model.duration import parse_duration

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.service.service import Service

CHUNK = 65_536


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What a worker lets a server have it do."""

    names: Sequence[str]
    anything: bool


workers = group("workers", "See which workers live; have one go.", alone=True)
work = group("work", "Be a worker from a script: claim, renew, complete, fail, release, log.")

Agents = Annotated[
    list[str] | None, typer.Option("--agent", "-a", help="An agent it serves; default.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A tag it offers.")]
Task = Annotated[
    str | None,
    typer.Argument(metavar="[TASK]", help="The task; $HOLDFAST_TASK.", show_default=False),
]
Token = Annotated[
    str | None, typer.Option("--token", help="The token of the attempt; $HOLDFAST_TOKEN.")
]
WorkerName = Annotated[str, typer.Argument(metavar="WORKER", help="The name of a worker.")]
Lease = Annotated[str, typer.Option(help="How long until it must be renewed.")]
Usage = Annotated[str | None, typer.Option(help='What it used up, as JSON: {"usd": 0.1}.')]


@command("worker", example="holdfast worker shop:hf --agent developer --concurrency 4")
def worker(
    app: Annotated[
        str | None, typer.Argument(metavar="[APP]", help="A program's Holdfast, as module:name.")
    ] = None,
    agent: Agents = None,
    tag: Tags = None,
    concurrency: Annotated[
        int | None, typer.Option(help="How many steps at once; the cores with APP, else 2.")
    ] = None,
    least_disk: Annotated[
        str | None, typer.Option(help="Claim nothing while less is free; 2GB.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name; service, host, number.")] = None,
    lease: Annotated[
        str | None, typer.Option(help="How long it may be silent; 30s, or as APP says.")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(help="Work for a server elsewhere: its URL.", envvar="HOLDFAST_SERVER"),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="For a server: a command, or the beginning of a URL."),
    ] = None,
    allow_any: Annotated[
        bool, typer.Option("--allow-any", help="For a server: whatever it says.")
    ] = False,
) -> None:
    """Pull and run steps until Ctrl-C; what runs then may finish, a second Ctrl-C ends at once."""
    show_logs(logging.INFO)
    said = project()
    if concurrency is None:
        concurrency = said.agents if app is None else said.functions
    options = {
        "agents": agent or None,
        "tags": tag or None,
        "concurrency": concurrency,
        "name": name,
        "service": None if app is None else re.sub(r"[^A-Za-z0-9_]+", "-", app.partition(":")[0]),
        "least_disk": said.least_disk if least_disk is None else least_disk,
    }
    if server is not None:
        from holdfast.cli.remote import work_for

        if app is not None:
            raise InvalidInput("app", "is for a worker on the store itself, and not for --server")
        chosen = {each: value for each, value in options.items() if value is not None}
        work_for(server, chosen, lease, Permission(names=allow or (), anything=allow_any))
        return
    with program_of(app, lease) as program:
        from holdfast.service.upkeep import upkeep

        note(f"store {shown_url(program.settings.url)}")
        given = {each: value for each, value in options.items() if value is not None}
        with upkeep(program.engine, said.keep, os.environ.get("HOLDFAST_BUS")):
            program.worker(**given).run()


def program_of(app: str | None, lease: str | None) -> Holdfast:
    if app is not None:
        if lease is not None:
            raise InvalidInput("lease", f"is for {app} itself to say: Holdfast(…, lease={lease!r})")
        from holdfast.cli.program import load_app

        return load_app(app)
    from holdfast.api.holdfast import Holdfast

    found = place()
    found.make()
    if lease is None:
        return Holdfast(found.url)
    return Holdfast(found.url, **read_lease(lease))


@workers.callback(invoke_without_command=True)
def list_workers(context: typer.Context, db: Store = None, json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from holdfast.service.views import read_time

    chosen_store.set(db or chosen_store.get())
    with opened() as service:
        page = service.queries.workers()
    if json:
        say_json(page)
        return
    if not page["items"]:
        note("No worker lives. Start one: holdfast worker [APP]")
        return
    rows = [
        [
            escape(each["name"]),
            escape(", ".join(each["agents"])),
            escape(", ".join(each["tags"])),
            str(each["concurrency"]),
            ago(read_time(each["started_at"])),
            _remark(each),
        ]
        for each in page["items"]
    ]
    say_table(("WORKER", "AGENTS", "TAGS", "AT ONCE", "STARTED", ""), rows)


def _remark(worker: dict[str, Any]) -> str:
    told = {"drain": "leaving", "evict": "leaving now"}.get(worker.get("told", ""), "")
    return "; ".join(filter(None, [told, escape(worker.get("pausing", ""))]))


@command("drain", of=workers, example="holdfast workers drain build-1")
def drain(name: WorkerName, json: Json = False) -> None:
    """Have a worker claim nothing more, finish what it runs, and leave."""
    _steer(name, "drain", json=json)


@command("evict", of=workers, example="holdfast workers evict build-1")
def evict(name: WorkerName, json: Json = False) -> None:
    """Have a worker give back at once what it can stop, and leave."""
    _steer(name, "evict", json=json)


def _steer(name: str, verb: str, *, json: bool) -> None:
    with opened() as service:
        told = service.commands.steer_worker(name, verb)
    say_json(told) if json else say(f"{escape(name)} is told to leave")


@command("claim", of=work, example="holdfast work claim --agent developer --lease 10m")
def claim(
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="This task, and not the first in line.")
    ] = None,
    agent: Agents = None,
    tag: Tags = None,
    number: Annotated[int, typer.Option("--max", min=1, max=1000, help="How many at most.")] = 1,
    lease: Lease = "30s",
    name: Annotated[str | None, typer.Option("--worker", help="The worker's name.")] = None,
    shell: Annotated[
        bool, typer.Option("--shell", help="Print variables for eval, of one task.")
    ] = False,
) -> int | None:
    """Lease ready tasks and print them with their tokens as JSON; exits 1 when there is none."""
    from holdfast.service.protocol import Offer

    if shell and number > 1:
        raise InvalidInput("max", "must be 1 with --shell: its variables are of one task")

    offer = Offer(
        worker=name or f"{socket.gethostname().partition('.')[0]}-work",
        agents=agent or (),
        tags=tag or (),
        lease=parse_duration("lease", lease),
    )
    with opened(begins=True) as service:
        found = None if task is None else service.addresses.task(task)
        got = service.protocol.claim(offer, most=number, task_id=found)
    if not shell:
        say_json(got)
    for each in got["assignments"] if shell else ():
        for line in _assignments(each):
            say(line)
    return 0 if got["assignments"] else 1


def _assignments(claimed: dict[str, Any]) -> Iterator[str]:
    """A claim as the variables that the other commands of the protocol read."""
    import shlex

    from holdfast.worker.surroundings import SHORT_PROMPT

    task = claimed["task"]
    payload = task.get("payload")
    prompt = payload.get("prompt") if isinstance(payload, dict) else None
    for name, value in (
        ("TASK", task["id"]),
        ("TITLE", task["title"]),
        ("ATTEMPT", str(claimed["attempt"])),
        ("TOKEN", claimed["token"]),
        ("PAYLOAD", tell_json(payload)),
        ("PROMPT", prompt if isinstance(prompt, str) else ""),
    ):
        # A longer one would keep every program from starting; what was set before must not stay.
        fits = len(value.encode(errors="replace")) <= SHORT_PROMPT
        yield f"export HOLDFAST_{name}={shlex.quote(value)}" if fits else f"unset HOLDFAST_{name}"


@command("renew", of=work, example="holdfast work renew t_… --token … --progress half")
def renew(
    task: Task = None,
    token: Token = None,
    lease: Lease = "30s",
    progress: Annotated[str | None, typer.Option(help="How far it is: text, or JSON.")] = None,
    usage: Usage = None,
    json: Json = False,
) -> None:
    """Keep a lease, and say how far it is; a refusal says to stop."""
    from holdfast.model.task import Renewal

    seconds = parse_duration("lease", lease)
    with opened() as service:
        task_id, secret = _attempt(service, task, token)
        renewal = Renewal(
            task_id=task_id,
            token=secret,
            progress=None if progress is None else read_value(progress),
            usage=_json("usage", usage),
        )
        say_answer(service.protocol.renew(renewal, seconds), json=json)


@command("complete", of=work, example="holdfast work complete t_… --token … --output '{\"n\": 3}'")
def complete(
    task: Task = None,
    token: Token = None,
    output: Annotated[str | None, typer.Option(help="The result as JSON; - reads it.")] = None,
    usage: Usage = None,
    json: Json = False,
) -> None:
    """Report the result; the same again is a success, another is refused."""
    result = _json("output", sys.stdin.read() if output == "-" else output)
    spent = _json("usage", usage)
    with opened() as service:
        attempt = _attempt(service, task, token)
        say_answer(service.protocol.complete(*attempt, result, spent), json=json)


@command("fail", of=work, example="holdfast work fail t_… --token … --error 'no disk'")
def fail(
    task: Task = None,
    token: Token = None,
    error: Annotated[str, typer.Option(help="What went wrong: text, or JSON.")] = "failed",
    final: Annotated[bool, typer.Option("--final", help="Do not try it again.")] = False,
    json: Json = False,
) -> None:
    """Report a failure; it is tried again while its budget lasts."""
    with opened() as service:
        attempt = _attempt(service, task, token)
        told = service.protocol.fail(*attempt, read_value(error), retryable=not final)
        say_answer(told, json=json)


@command("release", of=work, example="holdfast work release t_… --token … --until 10m")
def release(
    task: Task = None,
    token: Token = None,
    until: Annotated[str | None, typer.Option(help="Not before: 10m from now, or a time.")] = None,
    json: Json = False,
) -> None:
    """Give a task back; it costs no attempt."""
    with opened() as service:
        attempt = _attempt(service, task, token)
        given = read_moment("until", until)
        say_answer(service.protocol.release(*attempt, given), json=json)


@command("log", of=work, example="make 2>&1 | holdfast work log t_… --token …")
def log(
    task: Task = None,
    token: Token = None,
    text: Annotated[str | None, typer.Option(help="What to add; else it is read.")] = None,
) -> None:
    """Add to the log of an attempt, from --text or from what is piped in."""
    with opened() as service:
        task_id, secret = _attempt(service, task, token)
        for chunk in _chunks(text):
            service.protocol.log(task_id, secret, chunk)


@command("guard", example="holdfast guard && git push")
def guard(task: Task = None, token: Token = None, json: Json = False) -> None:
    """Ask before a side effect whether an attempt may still act; exits 1 when it may not."""
    with opened() as service:
        say_answer(service.protocol.guard(*_attempt(service, task, token)), json=json)


def _attempt(service: Service, task: str | None, token: str | None) -> tuple[str, str]:
    """The task and the token that were given, or those of the step this runs in."""
    named = task or os.environ.get("HOLDFAST_TASK")
    secret = token or os.environ.get("HOLDFAST_TOKEN")
    if not named:
        raise InvalidInput("task", "is missing; name it, or set HOLDFAST_TASK")
    if not secret:
        raise InvalidInput("token", "is missing; `holdfast work claim` gave it, or HOLDFAST_TOKEN")
    return service.addresses.task(named), secret


def _chunks(text: str | None) -> Iterable[bytes]:
    if text is not None:
        return [text.encode() + b"\n"]
    # As it comes: a pipe may be long open.
    return iter(lambda: os.read(sys.stdin.fileno(), CHUNK), b"")


def _json(field: str, text: str | None) -> Any:  # noqa: ANN401 - JSON is any value
    return None if text is None else read_json(field, text)
