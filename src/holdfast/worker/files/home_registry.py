"""Known homes: the registry, outside of every home, of the homes that this user made or trusts.

Each home has a random id, which is kept in the registry and in the home: a cloned repository cannot
hold it. Of two copies of a home, the recorded path counts. Settings are recorded by path.
"""

from __future__ import annotations

import json
import os
import pwd
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from fcntl import LOCK_EX, flock
from pathlib import Path
from shlex import quote
from typing import Any

from holdfast.errors import NotTrusted

FOLDER, FILE, LOCK = "holdfast", "homes", "homes.lock"
MOST_HOMES = 2_000
# With `since` 0, no home counts as older than the registry.
_EMPTY_REGISTRY = '{"since": 0, "homes": []}'
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# `O_NONBLOCK`, so that a pipe instead of a file does not block.
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class KnownHome:
    """A home, or a file of settings, by its resolved path and its owner.

    - `id`: a line of the home's file of identities; without an id, the path is enough
    - `link`: the symbolic link by which it was trusted
    - `tracked`, `writable`: it was trusted although git tracks it, or others may write to it
    """

    path: str
    owner: int
    id: str = ""
    link: str = ""
    tracked: bool = False
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class KnownHomes:
    """The homes of one user. A home that is older than `since` may be older than the registry."""

    file: Path
    since: int
    homes: list[KnownHome] = field(default_factory=list)

    def find(self, path: str, owner: int, ids: frozenset[str]) -> KnownHome | None:
        """The home at a path, or else one with one of these ids."""
        own = [
            each
            for each in self.homes
            if each.owner == owner and (each.id in ids if each.id else each.path == path)
        ]
        return next((each for each in own if each.path == path), own[0] if own else None)


def read_known_homes() -> KnownHomes | None:
    """The homes of this user; None where no registry can be kept."""
    file = registry_path()
    try:
        return None if file is None else _read_or_begin(file)
    except OSError:
        return None


def _read_or_begin(file: Path) -> KnownHomes:
    with suppress(FileNotFoundError):
        return _read(file)
    with _locked(file):
        with suppress(FileNotFoundError):
            return _read(file)
        return _write(KnownHomes(file=file, since=time.time_ns()))


def registry_path() -> Path | None:
    """The file of this user's registry."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if Path(state).is_absolute():
        return Path(state) / FOLDER / FILE
    home = os.environ.get("HOME", "")
    if not home:
        try:
            home = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            return None
    return Path(home) / ".local" / "state" / FOLDER / FILE if Path(home).is_absolute() else None


def read_settled_homes() -> KnownHomes | None:
    """The homes of this user, with each that was being recorded when this was called."""
    known = read_known_homes()
    if known is not None:
        with suppress(OSError), _locked(known.file):
            return _read(known.file)
    return known


def record_home(home: KnownHome) -> bool:
    """Record a home instead of an earlier record of its path; gives whether that succeeded."""
    with recorded_home(home) as recorded:
        return recorded


@contextmanager
def recorded_home(home: KnownHome) -> Iterator[bool]:
    """Record a home, and hold the lock while the block writes its id into it."""
    known = read_known_homes()
    with ExitStack() as locks:
        recorded = known is not None
        if known is not None:
            try:
                locks.enter_context(_locked(known.file))
                now = _read(known.file)
                others = [each for each in now.homes if not _is_same_home(each, home)]
                _write(replace(now, homes=[*others[1 - MOST_HOMES :], home]))
            except OSError:
                recorded = False
        yield recorded


def make_home_id() -> str:
    return os.urandom(16).hex()


def _is_same_home(one: KnownHome, other: KnownHome) -> bool:
    return one.path == other.path or (one.id != "" and one.id == other.id)


def _refuse_shared(folder: Path) -> None:
    """Refuse a folder in which others can put a file; with sudo it may be another user's `~`."""
    found = folder.lstat()
    owned = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not owned or found.st_mode & _OTHERS_WRITE:
        raise PermissionError(folder)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_shared(file.parent)
    held = os.open(file.with_name(LOCK), os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o600)
    try:
        flock(held, LOCK_EX)
        yield
    finally:
        os.close(held)


def _read(file: Path) -> KnownHomes:
    _refuse_shared(file.parent)
    with os.fdopen(os.open(file, os.O_RDONLY | _OPEN_FLAGS), "rb") as opened:
        told = opened.read()
    try:
        said = json.loads(told)
        homes = [_read_home(each) for each in said["homes"]]
        return KnownHomes(file=file, since=int(said["since"]), homes=homes)
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        anew = f"rm -f {quote(str(file))}; echo '{_EMPTY_REGISTRY}' > {quote(str(file))}"
        raise NotTrusted(
            f"{file}, where it is remembered which homes are yours, is damaged: "
            f"`{anew}` begins it anew, and then `holdfast trust PATH` each home that is yours"
        ) from error


def _read_home(told: dict[str, Any]) -> KnownHome:
    home = KnownHome(**told)
    for each in fields(home):
        if type(getattr(home, each.name)).__name__ != each.type:
            raise TypeError(each.name)
    return home


def _write(known: KnownHomes) -> KnownHomes:
    told = {"since": known.since, "homes": [asdict(each) for each in known.homes]}
    temporary = known.file.with_name(f"{FILE}.{os.getpid()}.{threading.get_ident()}")
    temporary.unlink(missing_ok=True)
    with os.fdopen(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, 0o600), "w"
    ) as new:
        json.dump(told, new, indent=1)
        new.flush()
        os.fsync(new.fileno())
    temporary.replace(known.file)
    return known
