"""One command's way to the service: which store was chosen, and who asks."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from holdfast.errors import InvalidInput

if TYPE_CHECKING:
    from holdfast.api.holdfast import Holdfast
    from holdfast.service.project.project import StoreLocation
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
    """The server that the environment names, unless a store was typed."""
    return None if chosen_store.get() else os.environ.get("HOLDFAST_SERVER") or None


def is_inside_attempt() -> bool:
    """Whether this is typed in a command that a worker runs, which has an address there."""
    return bool(chosen_server() and os.environ.get("HOLDFAST_ATTEMPT_TOKEN"))


def project_settings() -> ProjectSettings:
    """The settings of the project that this is typed in."""
    from holdfast.service.project.project import find_project

    return find_project(Path.cwd(), os.environ)


@contextmanager
def chosen_bus() -> Iterator[str | None]:
    """The Redis that the environment names, if any; one that is none is refused by that name."""
    url = os.environ.get("HOLDFAST_BUS")
    try:
        yield url
    except InvalidInput as error:
        if url is None or error.field != "bus":
            raise
        raise InvalidInput("HOLDFAST_BUS", error.reason) from error


@contextmanager
def open_service(*, begins: bool = False) -> Iterator[Service]:
    """The service on the chosen store; a command that `begins` something makes what is missing."""
    found = locate_store()
    if not begins:
        found.require_store()
    found.make_folder()
    with serve_location(found) as service:
        yield service


@contextmanager
def begin_store() -> Iterator[Service]:
    """The same for what a person may type in the wrong folder: a store that is new is named."""
    found = locate_store()
    if not found.exists:
        from holdfast.cli.app.terminal import print_note

        print_note(f"store {format_url(found.url)}   (new: there was none)")
    with open_service(begins=True) as service:
        yield service


@contextmanager
def serve_location(found: StoreLocation) -> Iterator[Service]:
    from holdfast.service.service import Service

    with Service(found, actor=actor(), typed=with_store) as service:
        yield service


@contextmanager
def serve_program(found: StoreLocation, program: Holdfast) -> Iterator[Service]:
    """The service on the store of a program that has begun, by the engine of that."""
    from holdfast.service.service import Service

    where = replace(found, url=program.settings.url)
    with Service(where, program.engine, actor=actor(), typed=with_store) as service:
        yield service


@contextmanager
def keep_up_store(program: Holdfast, keep: KeepTimes, *, hear: bool) -> Iterator[None]:
    """Have a program take part in the upkeep of its store, and of the bus that was chosen."""
    from holdfast.service.admin.bus import run_bus_duties

    with chosen_bus() as redis, run_bus_duties(program.engine, keep, redis, consume_commands=hear):
        yield


def actor() -> str:
    """Who asks, as the events tell it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"
    named = re.sub(r"[^A-Za-z0-9_.@+-]", "_", name)[:100].lstrip(".@+-") or "user"
    # Whoever is called that is no worker, with a role behind the name neither.
    return "worker_" if named == "worker" else named


def with_store(command: str) -> str:
    """A command to type next, on the store that this one was told to use."""
    typed = chosen_store.get()
    if typed is None:
        return command
    import shlex

    # What a password was taken from leads nowhere; the environment is where one belongs.
    whole = format_url(typed) == typed
    return f"{command} --db {shlex.quote(typed) if whole else DB_VARIABLE}"


def format_url(url: str) -> str:
    """A URL as it may be shown: its passwords are not."""
    place, mark, query = re.sub(r"(://[^:/@]*):[^@/]+@", r"\1:…@", url).partition("?")
    return place + mark + "&".join(map(_format_setting, query.split("&")))


def _format_setting(setting: str) -> str:
    name = setting.partition("=")[0]
    return f"{name}=…" if unquote(name) in {"password", "sslpassword"} else setting
