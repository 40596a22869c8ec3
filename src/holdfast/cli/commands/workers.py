"""The commands `worker` and `workers`: a worker process, and the control of live workers."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from holdfast.cli.app.command_registry import Store, command, group
from holdfast.cli.app.log_output import LogJson, print_announcement, show_logs
from holdfast.cli.app.options import Grace, HearCommands, Json, Tags, read_lease
from holdfast.cli.app.session import (
    chosen_server,
    chosen_store,
    format_url,
    keep_up_store,
    locate_store,
    open_holdfast,
    open_service,
    with_store,
    worker_settings,
)
from holdfast.cli.app.terminal import escape, print_json, print_line, print_note, print_table
from holdfast.cli.render.formats import format_ago
from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.api.option_types import WorkerKeywords
    from holdfast.settings import ProjectSettings

SLOTS_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class AllowOptions:
    """The commands, URLs, variables and folders that a worker allows a server to use."""

    names: Sequence[str]
    variables: Sequence[str]
    folders: Sequence[str]
    anything: bool


workers = group("workers", "List live workers; drain or evict one.", alone=True)
WorkerName = Annotated[str, typer.Argument(metavar="WORKER", help="The name of a worker.")]


@command("worker", example="holdfast worker shop:hf --agent developer --concurrency 4")
def worker(
    app: Annotated[
        str | None,
        typer.Argument(metavar="APP", help="A program's Holdfast object, as module:name."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            "-a",
            help="An agent to serve, or '*' for every one; repeatable (default: default, and those "
            "of holdfast.yaml).",
        ),
    ] = None,
    tag: Tags = None,
    concurrency: Annotated[
        int | None,
        typer.Option(help="Steps at once (default: 32 with APP, else 2)."),
    ] = None,
    least_disk: Annotated[
        str | None, typer.Option(help="Claim nothing with less free disk (default: 2GB).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Its name (default: from service, host and a number).")
    ] = None,
    grace: Grace = None,
    lease: Annotated[
        str | None, typer.Option(help="How long a lease lasts unless renewed (default: 30s).")
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(help="Work for the server at this URL (default: $HOLDFAST_SERVER)."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            help="With --server: a command, the start of a URL, or a preset with its most access "
            "(claude=edit), it may run; repeatable.",
        ),
    ] = None,
    allow_env: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-env",
            metavar="NAME",
            help="With --server: a variable that workflows may read, and set for commands; "
            "repeatable.",
        ),
    ] = None,
    allow_cwd: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-cwd",
            metavar="FOLDER",
            help="With --server: a folder in which, or below which, the cwd of commands may be; "
            "repeatable.",
        ),
    ] = None,
    allow_any: Annotated[
        bool,
        typer.Option(
            "--allow-any",
            help="With --server: run whatever the server sends, with every variable.",
        ),
    ] = False,
    hear: HearCommands = False,
    log_json: LogJson = False,
) -> None:
    """Claim and run steps until Ctrl-C. Running steps then finish; a second Ctrl-C stops them."""
    show_logs(logging.INFO, json=log_json)
    settings = worker_settings()
    if concurrency is None:
        concurrency = settings.agents if app is None else settings.functions
    options = {
        "agents": agent or choose_agents(settings),
        "tags": tag or None,
        "concurrency": concurrency,
        "name": name,
        "service": None if app is None else re.sub(r"[^A-Za-z0-9_]+", "-", app.partition(":")[0]),
        "least_disk": settings.least_disk if least_disk is None else least_disk,
        "grace": settings.grace if grace is None else grace,
    }
    server = chosen_server() if server is None else server
    if server is not None:
        from holdfast.cli.commands.remote_worker import work_for_server

        if app is not None:
            raise InvalidInput("app", "is for a worker on the store itself, and not for --server")
        if hear:
            raise InvalidInput("hear", "is for a worker on the store itself, and not for --server")
        chosen = {each: value for each, value in options.items() if value is not None}
        told = AllowOptions(
            names=allow or (),
            variables=allow_env or (),
            folders=allow_cwd or (),
            anything=allow_any,
        )
        work_for_server(server, chosen, lease, told, settings.commands)
        return
    with open_program(app, lease) as program:
        print_announcement(f"store {format_url(program.settings.url)}")
        given = {
            **{each: value for each, value in options.items() if value is not None},
            "commands": settings.commands,
        }
        with keep_up_store(program, settings.keep, hear=hear):
            program.worker(**cast("WorkerKeywords", given)).run()


def choose_agents(settings: ProjectSettings) -> list[str]:
    """The agents of a worker that is told none: the default one, and those of the project."""
    from holdfast.service.queries.command_lines import DEFAULT_AGENT

    return list(dict.fromkeys([DEFAULT_AGENT, *settings.commands]))


def open_program(app: str | None, lease: str | None) -> Holdfast:
    if app is not None:
        if lease is not None:
            raise InvalidInput("lease", f"is for {app} itself to say: Holdfast(…, lease={lease!r})")
        from holdfast.cli.app.program import load_app

        return load_app(app)
    found = locate_store()
    found.make_folder()
    return open_holdfast(found.url, None if lease is None else read_lease(lease))


@workers.callback(invoke_without_command=True)
def list_workers(context: typer.Context, db: Store = None, json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from holdfast.cli.render.slots import draw_slots
    from holdfast.service.queries.views import read_time

    chosen_store.set(db or chosen_store.get())
    with open_service() as service:
        page = service.queries.workers()
    if json:
        print_json(page)
        return
    if not page["items"]:
        print_note(f"No live workers. Start one: {with_store('holdfast worker [APP]')}")
        return
    rows = [
        [
            escape(each["name"]),
            escape(", ".join(each["agents"])),
            escape(", ".join(each["tags"])),
            f"{each['used']} of {each['concurrency']}",
            format_ago(read_time(each["started_at"])),
            _describe_state(each),
        ]
        for each in page["items"]
    ]
    print_table(("WORKER", "AGENTS", "TAGS", "SLOTS USED", "STARTED", ""), rows)
    for each in page["items"]:
        for line in draw_slots(each, SLOTS_SHOWN):
            print_line(line)


def _describe_state(worker: dict[str, Any]) -> str:
    told = {"drain": "leaving", "evict": "leaving now"}.get(worker.get("told", ""), "")
    return "; ".join(filter(None, [told, escape(worker.get("pausing", ""))]))


@command("drain", of=workers, example="holdfast workers drain build-1")
def drain(name: WorkerName, json: Json = False) -> None:
    """Let a worker finish what it runs, claim nothing new, and leave."""
    _tell_worker(name, "drain", json=json)


@command("evict", of=workers, example="holdfast workers evict build-1")
def evict(name: WorkerName, json: Json = False) -> None:
    """Make a worker give back at once what it can stop, and leave."""
    _tell_worker(name, "evict", json=json)


def _tell_worker(name: str, verb: str, *, json: bool) -> None:
    with open_service() as service:
        told = service.commands.control_worker(name, verb)
    print_json(told) if json else print_line(f"{escape(name)} is told to leave")
