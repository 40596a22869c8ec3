"""Where the state of a project lives: the folder `.holdfast`, found upwards, and the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import StoreError, StoreUnreachable
from holdfast.service.project import find_project
from holdfast.settings import Project
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.store.glance import MARK, tables_of

FOLDER = ".holdfast"
FILE = "holdfast.db"


@dataclass(frozen=True, kw_only=True)
class Place:
    """The URL of a store and the folder of what is kept beside it.

    A store that is `settled` on, by the environment or by its folder, may be begun by whoever
    first looks at it, unless it has tables of somebody else; what was typed may be a slip.
    """

    url: str
    home: Path
    settled: bool
    # Whether the folder is that of a project, where logs belong wherever the store is.
    rooted: bool = False

    @property
    def there(self) -> bool:
        """Whether there is a store to open; of a server only the server can tell."""
        return is_postgresql(self.url) or sqlite_path(self.url).exists()

    @property
    def at_home(self) -> bool:
        """Whether the store is a file in that folder."""
        return not is_postgresql(self.url) and sqlite_path(self.url).parent.absolute() == self.home

    def make(self) -> None:
        """Make the folder that the store's file is in, kept out of version control."""
        if self.at_home or self.rooted:
            make_home(self.home)

    def require(self) -> None:
        """Refuse to look at what is no store: to open it would make an empty one."""
        if self.there:
            self._refuse_foreign()
        if self.there or self.settled:
            return
        if self.url == _default(self.home):
            raise StoreUnreachable(
                "no store found here or above; run `holdfast init`, or set --db or HOLDFAST_DB"
            )
        raise StoreUnreachable(
            f"there is no store at {self.url}; `holdfast db upgrade --db …` creates one there"
        )

    def _refuse_foreign(self) -> None:
        """Refuse a database that is somebody else's, and one without tables that was only typed."""
        tables = tables_of(self.url)
        if tables is None or MARK in tables or (self.settled and not tables):
            return
        postgresql = is_postgresql(self.url)
        what = "this PostgreSQL database" if postgresql else str(sqlite_path(self.url))
        chosen = "" if self.settled else " --db …"
        raise StoreError(
            f"{what} is not a Holdfast store; `holdfast db upgrade{chosen}` creates one in it"
        )


def find_place(*, db: str | None, environment: Mapping[str, str], here: Path) -> Place:
    """The store that was typed, or named in the environment or the settings, or the nearest."""
    chosen = environment.get("HOLDFAST_HOME")
    found = Path(chosen).absolute() if chosen else find_home(here)
    home = found or here.absolute() / FOLDER
    if db:
        return Place(url=read_url(db), home=home, settled=False)
    if url := environment.get("HOLDFAST_DB"):
        return Place(url=read_url(url), home=home, settled=True)
    project = find_project(here, {})
    if project.folder is None:
        return Place(url=_default(home), home=home, settled=found is not None)
    home = found or project.folder / FOLDER
    settled = found is not None or project.database is not None
    return Place(
        url=_of_project(project) or _default(home), home=home, settled=settled, rooted=True
    )


def _of_project(project: Project) -> str | None:
    """The store that a project names; a path is one from its folder."""
    named, folder = project.database, project.folder
    if named is None or folder is None or is_postgresql(named):
        return named
    path = sqlite_path(named) if "://" in named else Path(named)
    return f"sqlite:///{folder / path}"


def _default(home: Path) -> str:
    return f"sqlite:///{home / FILE}"


def find_home(here: Path) -> Path | None:
    """The nearest `.holdfast`, in a folder or above it."""
    for folder in (here.absolute(), *here.absolute().parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return None


def read_url(text: str) -> str:
    """The URL of a store; the path of a file is one of SQLite."""
    return text if "://" in text else f"sqlite:///{Path(text).absolute()}"


def same_store(url: str, other: str) -> bool:
    if url == other or is_postgresql(url) or is_postgresql(other):
        return url == other
    return sqlite_path(url).absolute() == sqlite_path(other).absolute()


def make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        ignored = home / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise StoreUnreachable(f"{home} cannot be made: {error.strerror}") from error
