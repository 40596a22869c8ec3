"""Backups: copies of an SQLite store, and a store replaced by one of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.engine.explain.doctor import examine_store
from holdfast.errors import InvalidInput, StoreError, StoreUnreachable
from holdfast.model.advice import message_of
from holdfast.service.admin.exclusive_access import (
    opened_engine,
    refuse_while_busy,
    refuse_while_served,
)
from holdfast.service.project.project import StoreLocation
from holdfast.service.queries.views import View
from holdfast.store.database import is_postgresql, sqlite_path
from holdfast.worker.files.homes import make_home
from holdfast.worker.files.state_directory import find_state_directory

_REFUSED = "the restore would be refused: "


@dataclass(frozen=True, kw_only=True)
class Restore:
    """A request to replace a store by a backup; `evict` has the store's workers leave first."""

    location: StoreLocation
    backup: Path
    evict: bool = False
    dry_run: bool = False


def restore_backup(asked: Restore) -> View:
    """Replace a store by a backup of it; the replaced file is kept beside the store.

    No attempt's token from before is valid afterwards: the tasks have to be claimed again.
    """
    location, backup = asked.location, asked.backup.absolute()
    _refuse_postgresql(location, "pg_restore")
    # Imported here: an installation for PostgreSQL need not have apsw.
    from holdfast.store.sqlite.backup import prepare_copy, refuse_other_files  # noqa: PLC0415
    from holdfast.store.sqlite.backup import restore as replace  # noqa: PLC0415

    target = sqlite_path(location.url).absolute()
    if not backup.is_file():
        raise InvalidInput("file", f"there is no file {backup}")
    if target.exists() and backup.samefile(target):
        raise InvalidInput("file", f"{backup} is the store itself")
    refuse_other_files(backup)
    if target.exists():
        _refuse_in_use(asked, target)
    kept = _choose_name_for_replaced(target)
    if asked.dry_run:
        replaced = target.exists()
        with TemporaryDirectory(prefix="holdfast-") as folder:
            prepare_copy(backup, Path(folder) / "copy.db", _prepare_backup)
    else:
        location.make_folder()
        # The user has named the store, so it is trusted from now on, also when settings name it.
        make_home(find_state_directory(location.url, {}).root)
        replaced = replace(backup, target, kept, _prepare_backup)
    told = {"target": str(target), "backup": str(backup), "dry_run": asked.dry_run}
    return told | ({"kept": str(kept)} if replaced else {})


def _choose_name_for_replaced(target: Path) -> Path:
    """Choose a name for the replaced file that no other file has."""
    named = f"{target.name}.replaced-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain([named], (f"{named}-{number}" for number in count(2)))
    return next(path for path in map(target.with_name, names) if not path.exists())


def _prepare_backup(copy: Path) -> None:
    """Bring a copy of a backup up to this release, and check its invariants."""
    with opened_engine(f"sqlite:///{copy}") as engine:
        diagnosis = examine_store(engine.database)
        if not diagnosis.ok:
            raise InvalidInput("file", f"an invariant does not hold in the backup:\n{diagnosis}")


def _refuse_in_use(asked: Restore, target: Path) -> None:
    """Refuse while a server, a worker or another process uses the store; the refusal names it.

    Nothing is sent away before the check for a server.
    """
    url = asked.location.url
    if not asked.dry_run:
        refuse_while_served(url)
        _refuse_busy(url, evict=asked.evict)
        return
    try:
        refuse_while_served(url)
        # A dry run evicts no worker, so with `evict` live workers are no reason to refuse.
        if not asked.evict:
            _refuse_busy(url, evict=False)
            _refuse_while_open(target)
    except InvalidInput as error:
        raise InvalidInput(error.field, _REFUSED + error.reason) from error
    except StoreUnreachable as error:
        raise StoreUnreachable(_REFUSED + message_of(error)) from error


def _refuse_busy(url: str, *, evict: bool) -> None:
    try:
        with opened_engine(url) as engine:
            refuse_while_busy(engine, evict=evict)
    except StoreUnreachable:
        raise
    except StoreError:
        # The store cannot be read, which may be why the user restores a backup; the restore itself
        # refuses while another process has the file open.
        return


def _refuse_while_open(target: Path) -> None:
    from holdfast.store.sqlite.backup import refuse_open_store  # noqa: PLC0415 - see above

    refuse_open_store(target)


def _refuse_postgresql(location: StoreLocation, tool: str) -> None:
    if is_postgresql(location.url):
        reason = f"Holdfast copies SQLite files only; use `{tool}` for a PostgreSQL database"
        raise InvalidInput("db", reason)


def back_up(location: StoreLocation, target: Path) -> View:
    """Copy a whole store to a new file, while the store is in use."""
    _refuse_postgresql(location, "pg_dump")
    # Imported here: an installation for PostgreSQL need not have apsw.
    from holdfast.store.sqlite.backup import back_up as copy  # noqa: PLC0415

    location.require_store()
    size = copy(sqlite_path(location.url).absolute(), target.absolute())
    return {"target": str(target.absolute()), "bytes": size}
