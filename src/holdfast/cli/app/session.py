"""The session of one command: its store, server, bus and actor, and the service on its store."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from holdfast.errors import HoldfastError, InvalidInput

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.api.option_types import StoreSettings
    from holdfast.service.project.project import StoreLocation
    from holdfast.service.queries.command_lines import CommandWords
    from holdfast.service.service import Service
    from holdfast.settings import KeepTimes, ProjectSettings

chosen_store: ContextVar[str | None] = ContextVar("chosen_store", default=None)
called_command: ContextVar[str | None] = ContextVar("called_command", default=None)
typed_arguments: ContextVar[tuple[str, ...]] = ContextVar("typed_arguments", default=())
INSTALL_SERVER = "type pip install '.[server]' in a clone of Holdfast"
DB_VARIABLE = '"$HOLDFAST_DB"'


def locate_store() -> StoreLocation:
    from holdfast.service.project.project import find_store_location

    return find_store_location(db=chosen_store.get(), environment=os.environ, here=Path.cwd())


def chosen_server() -> str | None:
    """The server that the environment names, unless the command names a store."""
    return None if chosen_store.get() else os.environ.get("HOLDFAST_SERVER") or None


def is_inside_attempt() -> bool:
    """Whether the environment has the address and the token of a running attempt."""
    return bool(chosen_server() and os.environ.get("HOLDFAST_ATTEMPT_TOKEN"))


def project_settings() -> ProjectSettings:
    """The settings of the project that the current folder belongs to."""
    from holdfast.service.project.project import find_project

    return find_project(Path.cwd(), os.environ)


def worker_settings() -> ProjectSettings:
    """The settings of the project for a worker, with the commands of agents that it runs."""
    from holdfast.service.project.project import find_worker_settings

    return find_worker_settings(Path.cwd(), os.environ)


def command_words() -> CommandWords:
    """The words of advice for a person at this command line."""
    from holdfast.service.queries.command_lines import CommandWords

    return CommandWords(with_store, list_commanded_agents)


def list_commanded_agents() -> Collection[str]:
    """The agents that the project has commands for; none where its settings cannot be read."""
    with suppress(HoldfastError):
        return project_settings().commands
    return ()


def open_holdfast(url: str, settings: Mapping[str, float] | None = None) -> Holdfast:
    """The store for a server or a worker, with the connections that the project's settings say."""
    from holdfast.api.holdfast import Holdfast

    given = {**(settings or {}), "connections": project_settings().connections}
    return Holdfast(url, **cast("StoreSettings", given))


@contextmanager
def chosen_bus() -> Iterator[str | None]:
    """The Redis that HOLDFAST_BUS names, if any; an invalid URL is refused under that name."""
    url = os.environ.get("HOLDFAST_BUS")
    try:
        yield url
    except InvalidInput as error:
        if url is None or error.field != "bus":
            raise
        raise InvalidInput("HOLDFAST_BUS", error.reason) from error


@contextmanager
def open_service(*, begins: bool = False) -> Iterator[Service]:
    """The service on the chosen store; with `begins`, a missing store is created."""
    found = locate_store()
    if not begins:
        found.require_store()
    found.make_folder()
    with serve_location(found) as service:
        yield service


@contextmanager
def begin_store() -> Iterator[Service]:
    """The service on the chosen store; a note names a store that this call creates.

    The note is for a person who types the command in the wrong folder.
    """
    found = locate_store()
    if not found.exists:
        from holdfast.cli.app.terminal import print_note

        print_note(f"store {format_url(found.url)}   (new: there was none)")
    with open_service(begins=True) as service:
        yield service


@contextmanager
def serve_location(found: StoreLocation) -> Iterator[Service]:
    from holdfast.service.service import Service

    with Service(found, actor=actor(), words=command_words()) as service:
        yield service


@contextmanager
def serve_program(found: StoreLocation, program: Holdfast) -> Iterator[Service]:
    """The service on the store of a started program, with the engine of that program."""
    from holdfast.engine.engine import engine_of
    from holdfast.service.service import Service

    where = replace(found, url=program.settings.url)
    with Service(where, engine_of(program), actor=actor(), words=command_words()) as service:
        yield service


@contextmanager
def keep_up_store(program: Holdfast, keep: KeepTimes, *, hear: bool) -> Iterator[None]:
    """Run the upkeep of a program's store and of the chosen bus while the block runs."""
    from holdfast.engine.engine import engine_of
    from holdfast.service.admin.bus import run_bus_duties

    with (
        chosen_bus() as redis,
        run_bus_duties(engine_of(program), keep, redis, consume_commands=hear),
    ):
        yield


def actor() -> str:
    """The actor that events record for this command: the name of the user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"
    named = re.sub(r"[^A-Za-z0-9_.@+-]", "_", name)[:100].lstrip(".@+-") or "user"
    # Events call workers `worker`, also with a role behind: a user of that name is no worker.
    return "worker_" if named == "worker" else named


def with_store(command: str) -> str:
    """A command to type next, with the `--db` of this command."""
    typed = chosen_store.get()
    if typed is None:
        return command
    import shlex

    # A URL without its password does not work, so the command names the environment variable.
    whole = format_url(typed) == typed
    return f"{command} --db {shlex.quote(typed) if whole else DB_VARIABLE}"


def format_url(url: str) -> str:
    """A URL to show: its passwords are left out."""
    place, mark, query = re.sub(r"(://[^:/@]*):[^@/]+@", r"\1:…@", url).partition("?")
    return place + mark + "&".join(map(_format_setting, query.split("&")))


def _format_setting(setting: str) -> str:
    name = setting.partition("=")[0]
    return f"{name}=…" if unquote(name) in {"password", "sslpassword"} else setting
