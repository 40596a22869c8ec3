"""The stores and servers every suite may ask for.

`HOLDFAST_TEST_POSTGRES` and `HOLDFAST_TEST_REDIS` name servers to use instead of those in the
wheels: a PostgreSQL where databases may be created, and a Redis.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import hypothesis
import pytest

from holdfast.clock import ManualClock
from holdfast.engine.engine import Engine
from tests import servers
from tests.engines import opened
from tests.stores import KeptStores, new_secret

ROOT = Path(__file__).parents[1]

# A suite that was started in the background ignores these, and so would the programs it starts.
for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)

# A file in memory is synced at once, and a process that is killed loses nothing of it either.
if "TMPDIR" not in os.environ and (_memory := servers.memory()):
    os.environ["TMPDIR"] = tempfile.tempdir = str(_memory)

# The homes that tests make are remembered in a place of their own, and in no developer's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="holdfast-tests-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# A property is about what holds, not about how fast this machine is today.
hypothesis.settings.register_profile("holdfast", deadline=None)
hypothesis.settings.load_profile("holdfast")


@pytest.fixture(scope="session", autouse=True)
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder outside of the tree, where workers on PostgreSQL keep their logs."""
    before = Path.cwd()
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with pytest.MonkeyPatch.context() as patch:
        # Programs of the tests import `tests`.
        patch.setenv("PYTHONPATH", path)
        os.chdir(tmp_path_factory.mktemp("working"))
        yield
    os.chdir(before)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a maintenance database, from which other databases may be created."""
    elsewhere = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if elsewhere:
        yield elsewhere
    else:
        with servers.postgres() as url:
            yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database that is this test's alone."""
    with servers.database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """The name of a database with the present schema: to copy it is quicker than to make it."""
    with servers.database(postgres_server) as url:
        Engine(url).close()
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture(scope="session")
def postgres_stores(postgres_server: str, postgres_template: str) -> Iterator[KeptStores]:
    with closing(KeptStores(postgres_server, postgres_template)) as stores:
        yield stores


@pytest.fixture
def postgres_store_url(postgres_stores: KeptStores) -> Iterator[str]:
    """The URL of a store on PostgreSQL as good as new, that is this test's alone."""
    with postgres_stores.lend() as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file, not there yet, that is this test's alone."""
    return f"sqlite:///{tmp_path}/holdfast.db"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the present schema: to copy it is quicker than to make it."""
    path = tmp_path_factory.mktemp("template") / "holdfast.db"
    Engine(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_store_url(sqlite_url: str, sqlite_template: Path) -> str:
    """The URL of a store on SQLite that nobody has used, and that is this test's alone."""
    path = shutil.copy(sqlite_template, sqlite_url.removeprefix("sqlite:///"))
    with apsw.Connection(str(path)) as made:
        made.execute("UPDATE holdfast_meta SET value = ? WHERE name = 'secret'", (new_secret(),))
    made.close()
    return sqlite_url


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database that nobody has made a store of yet: once on each database."""
    fixture = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    return str(request.getfixturevalue(fixture))


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store: the test runs once on each database."""
    fixture = {"sqlite": "sqlite_store_url", "postgresql": "postgres_store_url"}[request.param]
    return str(request.getfixturevalue(fixture))


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a Redis that tests share: each keeps its keys under a prefix of its own."""
    elsewhere = os.environ.get("HOLDFAST_TEST_REDIS")
    if elsewhere:
        yield elsewhere
    else:
        with servers.redis_server() as url:
            yield url


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def engine(store_url: str, clock: ManualClock) -> Iterator[Engine]:
    """An engine on each database, driven by `clock`; at the end the doctor finds nothing."""
    with opened(store_url, clock=clock) as engine:
        yield engine
