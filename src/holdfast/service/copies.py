"""Copies of a store."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.service.place import Place
from holdfast.service.views import View
from holdfast.store.database import is_postgresql, sqlite_path


def back_up(place: Place, target: Path) -> View:
    """Copy a store to a new file, whole, while it is in use."""
    if is_postgresql(place.url):
        reason = "Holdfast copies SQLite files only; use `pg_dump` for a PostgreSQL database"
        raise InvalidInput("db", reason)
    # Imported here: who has PostgreSQL need not have apsw.
    from holdfast.store.sqlite.backup import back_up as copy  # noqa: PLC0415

    place.require()
    size = copy(sqlite_path(place.url).absolute(), target.absolute())
    return {"target": str(target.absolute()), "bytes": size}
