"""The port for hints that something was committed; a lost one only costs time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.randomness import Randomness
from holdfast.settings import Settings
from holdfast.store.database import Database, is_postgresql
from holdfast.threads import Threads


class Notifier(Protocol):
    @property
    def name(self) -> str:
        """What this process signs its hints with, so that it need not listen to itself."""

    def notify(self, *, served: bool = False) -> None:
        """Tell the subscribers of this process, after a commit of this process.

        `served` says that what became ready was offered to the process's own workers already.
        """

    def subscribe(
        self, callback: Callable[[], None], *, served: bool = True, own: bool = True
    ) -> Callable[[], None]:
        """Call back on hints, from any thread, until what is returned is called.

        Who is a worker itself need not hear of what was `served`, nor of the process's `own`
        commits who is told of those.
        """

    def start(self) -> None: ...

    def close(self) -> None: ...


def open_notifier(
    url: str,
    database: Database,
    *,
    randomness: Randomness,
    threads: Threads,
    settings: Settings,
) -> Notifier:
    if is_postgresql(url):
        from holdfast.store.notifiers.postgresql import PostgresqlNotifier  # noqa: PLC0415

        return PostgresqlNotifier(url, randomness, threads)
    from holdfast.store.notifiers.sqlite import SqliteNotifier  # noqa: PLC0415
    from holdfast.store.sqlite.database import SqliteDatabase  # noqa: PLC0415

    if not isinstance(database, SqliteDatabase):
        raise TypeError(f"{url} is a SQLite file, and {database!r} is not open on one")
    return SqliteNotifier(database, threads, settings)
