"""The project around a folder: its settings, its home `.holdfast`, and the location of its store.

The settings come from the nearest `holdfast.yaml`, here or above; the environment overrides them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidInput, StoreError, StoreUnreachable
from holdfast.settings import ProjectSettings, check_connections
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.store.drivers import STORE_TABLE, list_tables
from holdfast.worker.files.homes import (
    HOME,
    accept_settings,
    accept_store,
    find_home,
    make_home,
    named_home,
    refuse_planted_copy,
    refuse_tracked_settings,
    usable_home,
)
from holdfast.worker.files.state_directory import find_state_directory

SETTINGS_FILE = "holdfast.yaml"
CONCURRENCY, LEAST_DISK = "HOLDFAST_CONCURRENCY", "HOLDFAST_LEAST_DISK"
CONNECTIONS, GRACE = "HOLDFAST_CONNECTIONS", "HOLDFAST_GRACE"
_WHOLE = re.compile(r"\d{1,10}")
_HAS_SETTINGS = re.compile(rb"^[^#\s]", re.MULTILINE)
STORE_FILE = "holdfast.db"


def find_project(here: Path, environment: Mapping[str, str]) -> ProjectSettings:
    """The settings in a folder: of the nearest file here or above, then of the environment."""
    found = _read_nearest_settings(here)
    given: dict[str, Any] = {}
    if many := environment.get(CONCURRENCY):
        given |= dict.fromkeys(("functions", "agents"), _read_concurrency(many))
    if least := environment.get(LEAST_DISK):
        from holdfast.model.units import parse_size  # noqa: PLC0415 - few commands want it

        given["least_disk"] = parse_size(LEAST_DISK, least)
    if grace := environment.get(GRACE):
        from holdfast.model.units import parse_grace  # noqa: PLC0415 - the same

        given["grace"] = parse_grace(GRACE, grace)
    if most := environment.get(CONNECTIONS):
        number = int(most) if _WHOLE.fullmatch(most) else most
        given["connections"] = check_connections(CONNECTIONS, number)
    return replace(found, **given)


def find_worker_settings(here: Path, environment: Mapping[str, str]) -> ProjectSettings:
    """The settings for a worker, which runs the commands in them; refused if a clone brought them.

    Otherwise whoever pushes to a repository would have commands run by whoever works in a clone.
    """
    found = find_project(here, environment)
    if found.commands and found.folder is not None:
        refuse_tracked_settings(found.folder / SETTINGS_FILE, "commands of agents")
    return found


def _read_nearest_settings(here: Path) -> ProjectSettings:
    for folder in (here.absolute(), *here.absolute().parents):
        path = folder / SETTINGS_FILE
        if path.is_file():
            accept_settings(path)
            return _read_settings(path)
    return ProjectSettings()


def _read_settings(path: Path) -> ProjectSettings:
    try:
        says = _HAS_SETTINGS.search(path.read_bytes())
    except OSError as error:
        raise InvalidInput(SETTINGS_FILE, f"{path} cannot be read: {error.strerror}") from error
    if not says:
        return ProjectSettings(folder=path.parent)
    # Most files have only comments; the import of the parser takes longer than most commands.
    from holdfast.definition.project_file import read_project_file  # noqa: PLC0415

    return read_project_file(path)


def _read_concurrency(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInput(CONCURRENCY, f"{text!r} is no number of steps, from 1")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class StoreLocation:
    """The URL of a store, and the home: the folder of the files that are kept beside it.

    The first read may create the store only if it `may_be_created`: if the environment, the
    settings or an existing home names it. A URL that was typed with a command may be misspelt.
    A database with foreign tables is always refused.
    """

    url: str
    home: Path
    may_be_created: bool
    # Whether the home is that of a project: then logs are kept in it wherever the store is.
    in_project: bool = False

    @property
    def exists(self) -> bool:
        """Whether there is a store to open; for PostgreSQL only the server knows, so it is true."""
        return is_postgresql(self.url) or sqlite_path(self.url).exists()

    @property
    def is_in_home(self) -> bool:
        """Whether the store is a file in the home."""
        return not is_postgresql(self.url) and sqlite_path(self.url).parent.absolute() == self.home

    def make_folder(self) -> None:
        """Make the home, which is kept out of version control, where the store needs one."""
        if self.is_in_home or self.in_project:
            make_home(self.home)
        if self.in_project and not self.is_in_home and not is_postgresql(self.url):
            # The state directory beside the store marks the store as made by this user.
            make_home(find_state_directory(self.url, {}).root)

    def require_store(self) -> None:
        """Refuse to read where there is no store: opening it would create an empty one."""
        if self.exists:
            self._refuse_foreign()
        if self.exists or self.may_be_created:
            return
        if self.url == _default_url(self.home):
            raise StoreUnreachable(
                "no store found here or above; run `holdfast init`, or set --db or HOLDFAST_DB"
            )
        raise StoreUnreachable(
            f"there is no store at {self.url}; `holdfast db upgrade` creates one there"
        )

    def _refuse_foreign(self) -> None:
        """Refuse a database with foreign tables, and an empty one that was only typed."""
        tables = list_tables(self.url)
        if tables is None or STORE_TABLE in tables or (self.may_be_created and not tables):
            return
        postgresql = is_postgresql(self.url)
        what = "this PostgreSQL database" if postgresql else str(sqlite_path(self.url))
        raise StoreError(f"{what} is not a Holdfast store; `holdfast db upgrade` creates one in it")


def find_store_location(
    *, db: str | None, environment: Mapping[str, str], here: Path
) -> StoreLocation:
    """The store that was typed, or that the environment or settings name, or the nearest."""
    if db or environment.get("HOLDFAST_DB"):
        # The user names the store, so settings and homes around this folder do not count.
        home = named_home(environment) or find_home(here) or here.absolute() / HOME
        url = read_url(db or environment["HOLDFAST_DB"])
        _refuse_planted_store(url)
        return StoreLocation(url=url, home=home, may_be_created=not db)
    project = find_project(here, {})
    found = usable_home(here, environment)
    if project.folder is None:
        home = found or here.absolute() / HOME
        return StoreLocation(url=_default_url(home), home=home, may_be_created=found is not None)
    home = found or project.folder / HOME
    settled = found is not None or project.database is not None
    named = _url_of_project(project)
    if named is not None:
        _refuse_planted_store(named)
        _accept_named_store(named, project.folder / SETTINGS_FILE)
    return StoreLocation(
        url=named or _default_url(home), home=home, may_be_created=settled, in_project=True
    )


def _refuse_planted_store(url: str) -> None:
    if not is_postgresql(url):
        refuse_planted_copy(sqlite_path(url))


def _accept_named_store(url: str, settings: Path) -> None:
    """Refuse a store that settings name, unless this user has trusted the settings or the store."""
    if is_postgresql(url):
        refuse_tracked_settings(settings, "a database")
    else:
        accept_store(sqlite_path(url), find_state_directory(url, {}).root)


def _url_of_project(project: ProjectSettings) -> str | None:
    """The URL of the store that a project names; a path starts from the folder of the project."""
    named, folder = project.database, project.folder
    if named is None or folder is None or is_postgresql(named):
        return named
    path = sqlite_path(named) if "://" in named else Path(named)
    return f"sqlite:///{folder / path}"


def _default_url(home: Path) -> str:
    return f"sqlite:///{home / STORE_FILE}"


def read_url(text: str) -> str:
    """The URL of a store; the path of a file means an SQLite store."""
    return text if "://" in text else f"sqlite:///{Path(text).absolute()}"


def is_same_store(url: str, other: str) -> bool:
    if url == other or is_postgresql(url) or is_postgresql(other):
        return url == other
    return sqlite_path(url).absolute() == sqlite_path(other).absolute()
