"""Homes: folders `.holdfast`, found, made, trusted or refused.

Whoever can write to a home can have its workers run commands. So a home that is found is used only
if it is this user's own and recorded as made here, or if this user trusts it by `holdfast trust`.
"""

from __future__ import annotations

import errno
import logging
import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from glob import escape
from os import geteuid
from pathlib import Path

from holdfast.errors import NotTrusted, StoreUnreachable
from holdfast.store.database import IDENTITIES_FILE
from holdfast.worker.files.git_index import is_tracked
from holdfast.worker.files.home_registry import (
    KnownHome,
    KnownHomes,
    make_home_id,
    read_known_homes,
    read_settled_homes,
    record_home,
    recorded_home,
    registry_path,
)
from holdfast.worker.files.state_paths import open_private, read_private

HOME = ".holdfast"
# The suffix of the state folder beside a store that is in no home.
STATE_SUFFIX = ".state"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0
TRACKED = "is tracked by git, so it came with the repository"
POSSIBLY_TRACKED = "may have come with its repository, and git cannot be asked"
OPEN_TO_OTHERS = "may be written to by other users of this machine"
NOT_MADE_HERE = "was not made here by Holdfast for you"

log = logging.getLogger("holdfast.homes")
# The homes that this process has accepted, with the file status they had then.
_accepted_homes: set[tuple[str, int, int, int, int]] = set()


def find_home(here: Path) -> Path | None:
    """The nearest `.holdfast` in a folder or above it, whoever owns it."""
    for folder in (here.absolute(), *here.absolute().parents):
        if (folder / HOME).is_dir():
            return folder / HOME
    return None


def named_home(environment: Mapping[str, str]) -> Path | None:
    """The home that `HOLDFAST_HOME` names; a named home is trusted."""
    named = environment.get("HOLDFAST_HOME")
    return Path(named).absolute() if named else None


def usable_home(here: Path, environment: Mapping[str, str]) -> Path | None:
    """The home that the environment names, or the nearest one if this user made or trusts it."""
    named = named_home(environment)
    if named is not None:
        return named
    found = find_home(here)
    return None if found is None else accept_home(found)


def accept_home(home: Path) -> Path:
    """Return a home that this user made here or trusts, and refuse any other."""
    link, found = home.is_symlink(), home.stat()
    looked = (str(home), found.st_dev, found.st_ino, found.st_uid, found.st_mode)
    if looked not in _accepted_homes or link:
        real = Path(os.path.realpath(home))
        known = read_known_homes()
        entry = _find_entry(real, found, known)
        empty = entry is None and _is_empty(real)
        if entry is None and not empty:
            # Another process or thread may have recorded it since: a home that is being made
            # has content only from the moment when the lock for its record is held.
            known = read_settled_homes()
            entry = _find_entry(real, found, known)
        if entry is None:
            _adopt_home(home, real, found, known, empty=empty)
        else:
            reason = _find_objection(entry, home, real, found)
            if reason is not None:
                raise make_refusal(home, reason)
            if entry.path != str(real):
                record_home(replace(entry, path=str(real)))
        _accepted_homes.add(looked)
    return home


def _find_entry(real: Path, found: os.stat_result, known: KnownHomes | None) -> KnownHome | None:
    return None if known is None else known.find(str(real), found.st_uid, _read_identities(real))


def _find_objection(entry: KnownHome, home: Path, real: Path, found: os.stat_result) -> str | None:
    """The reason why a recorded home is not used in its present state, if there is one."""
    if home.is_symlink() and entry.link != str(home):
        return f"is a symbolic link to {real}"
    if found.st_mode & OTHERS_WRITE and not entry.writable:
        return OPEN_TO_OTHERS
    if entry.path != str(real) and entry.id in _read_identities(Path(entry.path)):
        return f"is a copy of {entry.path}"
    return None if entry.tracked else _find_tracking(home)


def _adopt_home(
    home: Path, real: Path, found: os.stat_result, known: KnownHomes | None, *, empty: bool
) -> None:
    """Record a home from before homes were recorded, or an empty one; refuse any other."""
    if home.is_symlink():
        raise make_refusal(home, f"is a symbolic link to {real}")
    since = None if known is None or empty else known.since
    reason = find_objection_to_unknown(home, found, since)
    if reason is not None:
        raise make_refusal(home, reason)
    if found.st_mode & OTHERS_WRITE:
        # Only a group may write to it, such as the user's own group where that is the default.
        home.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS_WRITE)
    if empty:
        _remember_home(home)
    elif _remember_home(home):
        log.warning(
            "%s is from before Holdfast remembered whose homes are whose: it is yours, git does "
            "not track it, and it is remembered from now on",
            home,
        )
    else:
        log.info("%s is used as yours, which cannot be remembered: %s", home, _unwritable())


def find_objection_to_unknown(path: Path, found: os.stat_result, since: int | None) -> str | None:
    """The reason why an unrecorded path is not used, if there is one.

    A path that is younger than `since` would have been recorded when Holdfast made it.
    """
    if found.st_uid != geteuid():
        return f"belongs to {find_user_name(found.st_uid)}"
    if found.st_mode & stat.S_IWOTH:
        return OPEN_TO_OTHERS
    since_then = since is not None and _oldest_change(path) >= since
    return _find_tracking(path) or (NOT_MADE_HERE if since_then else None)


def _find_tracking(path: Path) -> str | None:
    return {True: TRACKED, False: None, None: POSSIBLY_TRACKED}[is_tracked(path)]


def make_refusal(path: Path, reason: str) -> NotTrusted:
    """The error that says why a path is not used, and how to trust it."""
    import shlex  # noqa: PLC0415 - for refusals alone

    typed = f"`holdfast trust {shlex.quote(str(path))}`"
    told = f"{path} {reason}, and is not used: {typed} if you trust who wrote it"
    if read_known_homes() is None:
        told += f" (first set XDG_STATE_HOME to a folder of yours: {_unwritable()})"
    return NotTrusted(told)


def _unwritable() -> str:
    return f"{registry_path() or 'the home folder of this user'} cannot be written"


def find_user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _oldest_change(path: Path) -> int:
    """The oldest change time of a path and its files; unlike other times, nobody can set it."""
    each = [path, *path.iterdir()] if path.is_dir() else [path]
    return min(one.lstat().st_ctime_ns for one in each)


def _is_empty(path: Path) -> bool:
    return path.is_dir() and next(path.iterdir(), None) is None


def _read_identities(home: Path) -> frozenset[str]:
    try:
        told = read_private(home / IDENTITIES_FILE, home)
    except OSError:
        return frozenset()
    return frozenset(told.decode("ascii", "replace").split())


def make_home(home: Path) -> None:
    """Make a home that git ignores, and record it as made here."""
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        try:
            home.mkdir(mode=0o700)
        except FileExistsError:
            if not home.is_dir():
                raise
        else:
            _remember_home(home)
        try:
            ignored = open_private(home / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, home)
        except FileExistsError:
            return
        with os.fdopen(ignored, "w", encoding="utf-8") as file:
            file.write("*\n")
    except OSError as error:
        raise StoreUnreachable(f"{home} cannot be made: {_describe_cause(error)}") from error


def _describe_cause(error: OSError) -> str:
    if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return str(error.strerror)
    where = "go to another one, or set HOLDFAST_HOME"
    return f"its folder is read-only ({error.strerror}); {where}"


def make_private_directory(directory: Path) -> Path:
    """Make a directory that only its owner can read; a home is recorded as made here."""
    for each in (directory, *directory.parents):
        kept = each.name == HOME or (each == directory and each.suffix == STATE_SUFFIX)
        if kept and not each.exists():
            make_home(each)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _remember_home(home: Path, *, link: str = "", tracked: bool = False) -> bool:
    """Record a home; its id goes into the registry first, and into the home afterwards."""
    real = Path(os.path.realpath(home))
    found = real.stat()
    entry = KnownHome(
        path=str(real),
        owner=found.st_uid,
        id=make_home_id() if os.access(real, os.W_OK) else "",
        link=link,
        tracked=tracked,
        writable=bool(found.st_mode & OTHERS_WRITE),
    )
    with recorded_home(entry) as recorded:
        if recorded and entry.id:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            file = open_private(real / IDENTITIES_FILE, flags, real)
            with os.fdopen(file, "w", encoding="ascii") as identities:
                identities.write(f"{entry.id}\n")
        return recorded


def is_home_of(home: Path, owner: int) -> bool:
    """Whether a home was named by the environment, or is recorded with this owner."""
    if named_home(os.environ) == home:
        return True
    known, real = read_known_homes(), os.path.realpath(home)
    return known is not None and any(
        each.path == real and each.owner == owner for each in known.homes
    )


def accept_settings(path: Path) -> None:
    """Refuse project settings that belong to another user, other than root."""
    found = path.stat()
    owners = {path.lstat().st_uid, found.st_uid} - {geteuid(), ROOT}
    reason = f"belongs to {find_user_name(min(owners))}" if owners else None
    if found.st_mode & stat.S_IWOTH:
        reason = reason or OPEN_TO_OTHERS
    if reason is not None and not _is_known_setting(path):
        raise make_refusal(path, reason)


def refuse_tracked_settings(path: Path, named: str) -> None:
    """Refuse settings that name a store or a command if they came with a repository."""
    reason = None if _is_known_setting(path) else _find_tracking(path)
    if reason is not None:
        raise make_refusal(path, f"names {named} and {reason}")


def _is_known_setting(settings: Path) -> bool:
    known = read_known_homes()
    real, owner = os.path.realpath(settings), settings.stat().st_uid
    return known is not None and known.find(real, owner, frozenset()) is not None


def accept_store(file: Path, home: Path) -> None:
    """Refuse a store that settings name, unless the store and its state belong to this user."""
    entry = None
    if home.exists():
        accept_home(home)
        known, real = read_known_homes(), os.path.realpath(home)
        each = () if known is None else known.homes
        entry = next((one for one in each if one.path == real), None)
    if not file.exists() or (entry is not None and entry.tracked):
        return
    found = file.stat()
    if entry is not None and found.st_uid == entry.owner:
        reason = _find_tracking(file)
    else:
        known = read_known_homes()
        reason = find_objection_to_unknown(
            file, found, None if known is None or home.exists() else known.since
        )
    if reason is not None:
        raise make_refusal(file, reason)
    make_home(home)


def refuse_planted_copy(file: Path) -> None:
    """Refuse a saved copy of a missing store if the copy came with a repository."""
    if file.exists():
        return
    for copy in file.parent.glob(f"{escape(file.name)}.saved-*.db"):
        owner = copy.lstat().st_uid
        others = None if owner == geteuid() else f"belongs to {find_user_name(owner)}"
        reason = others or _find_tracking(copy)
        if reason is not None:
            advice = f"and is not what was saved of {file}: move it elsewhere"
            raise NotTrusted(f"{copy} {reason}, {advice}")


@dataclass(frozen=True, kw_only=True)
class TrustedPath:
    """A path that is trusted from now on; `tracked` is None if git could not be asked."""

    path: Path
    owner: str
    tracked: bool | None
    writable: bool


def trust_home(home: Path) -> TrustedPath:
    """Record a home as trusted: another user's, a tracked one, or a link to one."""
    tracked = is_tracked(home)
    link = str(home) if home.is_symlink() else ""
    remembered = _remember_home(home, link=link, tracked=tracked is not False)
    return _describe_trust(home, tracked=tracked, remembered=remembered)


def trust_settings(path: Path) -> TrustedPath:
    """Record the settings of a project as trusted."""
    entry = KnownHome(path=os.path.realpath(path), owner=path.stat().st_uid)
    return _describe_trust(path, tracked=is_tracked(path), remembered=record_home(entry))


def trust_store(file: Path, home: Path) -> TrustedPath:
    """Record a store that settings name as trusted, by the home of its state."""
    make_home(home)
    remembered = _remember_home(home, tracked=True)
    return _describe_trust(file, tracked=is_tracked(file), remembered=remembered)


def _describe_trust(path: Path, *, tracked: bool | None, remembered: bool) -> TrustedPath:
    if not remembered:
        raise NotTrusted(
            f"{path} cannot be remembered: {_unwritable()}; set XDG_STATE_HOME to a folder of yours"
        )
    found = path.stat()
    writable = bool(found.st_mode & OTHERS_WRITE)
    return TrustedPath(
        path=path, owner=find_user_name(found.st_uid), tracked=tracked, writable=writable
    )
