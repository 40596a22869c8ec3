"""New, durable stores on either database, and what they run on."""

from __future__ import annotations

import os
import platform
import resource
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import psycopg
from psycopg.sql import SQL

from benchmarks.by_hand import ByHand
from benchmarks.by_hand_postgresql import PostgresqlByHand
from benchmarks.by_hand_sqlite import SqliteByHand
from holdfast.engine.engine import Engine
from holdfast.store.database import sqlite_path
from tests import servers

DATABASES = ("sqlite", "postgresql")
_DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
# How many were unblocked before a worker had room for them is chance.
_CONTENTS = """
SELECT type, count(*) FROM holdfast_event WHERE type <> 'task.unblocked' GROUP BY type
UNION ALL SELECT 'tasks ' || status, count(*) FROM holdfast_task GROUP BY status
UNION ALL SELECT 'runs ' || status, count(*) FROM holdfast_run GROUP BY status
UNION ALL SELECT 'needs', count(*) FROM holdfast_need
UNION ALL SELECT 'workflows', count(*) FROM holdfast_workflow
"""


@dataclass(frozen=True, kw_only=True)
class Places:
    folder: Path
    postgres: str

    @contextmanager
    def new(self, database: str) -> Iterator[str]:
        """The URL of a store of the present schema that nobody else uses."""
        name = f"bench_{uuid.uuid4().hex}"
        if database == "sqlite":
            url = f"sqlite:///{self.folder}/{name}.db"
            Engine(url).close()
            yield url
            return
        with servers.database(self.postgres) as url:
            Engine(url).close()
            yield url

    def facts(self) -> dict[str, str]:
        with psycopg.connect(self.postgres) as connection:
            for setting, wanted in _DURABLE.items():
                found = connection.execute(SQL("SHOW {}").format(SQL(setting))).fetchone()
                assert found == (wanted,), f"{setting} is {found}, so nothing would be durable"
            version = connection.info.parameter_status("server_version")
        return {
            "cores": tell_cores(),
            "system": f"{platform.system()} {platform.machine()}",
            "Python": platform.python_version(),
            "SQLite": f"{apsw.sqlite_lib_version()}, synchronous=FULL, WAL",
            "PostgreSQL": f"{version}, fsync and synchronous_commit on, unix socket",
        }


def tell_cores() -> str:
    return f"{_cores()}, with a load of {os.getloadavg()[0]:.1f} at the start"


def weigh(url: str) -> str:
    """How large a store is on disk, and how much memory this process has used at most."""
    memory = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB of memory"
    if url.startswith("sqlite"):
        return f"{sqlite_path(url).stat().st_size / 2**20:,.0f} MiB of file, {memory}"
    with psycopg.connect(url) as server:
        found = server.execute("SELECT pg_database_size(current_database())").fetchone()
    assert found is not None
    return f"{int(found[0]) / 2**20:,.0f} MiB of database, {memory}"


def durable_settings() -> dict[str, str]:
    return dict(_DURABLE)


def network_settings() -> dict[str, str]:
    """An address of this machine alone, which no other server has, on systems with many of them."""
    numbers = [1 + each % 254 for each in os.urandom(3)] if sys.platform == "linux" else [0, 0, 1]
    return {"listen_addresses": ".".join(map(str, (127, *numbers)))}


def over_tcp(url: str) -> str:
    """The URL by which a store on PostgreSQL is reached as from another machine."""
    with psycopg.connect(url) as server:
        found = server.execute("SHOW listen_addresses").fetchone()
        assert found is not None
        assert found[0], "the server listens on no address"
        return f"postgresql://{server.info.user}@{found[0]}:5432/{server.info.dbname}"


def by_hand(url: str) -> ByHand:
    if url.startswith("sqlite"):
        return SqliteByHand(sqlite_path(url))
    return PostgresqlByHand(url)


def contents(url: str) -> Counter[str]:
    """How many rows and events of each type a store has: two that did the same have the same."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(str(sqlite_path(url)))
        try:
            return Counter({str(kind): int(str(n)) for kind, n in connection.execute(_CONTENTS)})
        finally:
            connection.close()
    with psycopg.connect(url) as server:
        return Counter({str(kind): int(n) for kind, n in server.execute(_CONTENTS)})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
