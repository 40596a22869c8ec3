"""Unfinished work: records of changes to a repository that a killed process left half done.

A record is locked by the operating system as long as its process lives, and as long as a git lives
that this process started. So a record that can be locked is one of the dead, whatever number its
process had. It names the lock files that its git may have left: these were not there before.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import GitFailed, RepositoryLocked
from holdfast.worker.git.git_command import Git

LOCK_SECONDS = 10.0
PAUSE = 0.02
# Git writes a lock at once after it made it: an empty one of this age is nobody's.
EMPTY_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class UnfinishedWork:
    """A record with its facts; `descriptor` carries the lock."""

    path: Path
    descriptor: int
    facts: dict[str, Any]


@contextmanager
def record_work(
    git: Git, repository: Path, locks: list[tuple[Path, str]], **facts: object
) -> Iterator[UnfinishedWork]:
    """A record for as long as the block runs: `locks` are files, and what git writes into them."""
    folder = git.home / "unfinished"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _await_locks([path for path, _ in locks])
    written = {
        **facts,
        "repository": str(repository),
        "locks": [[str(path), content] for path, content in locks],
    }
    descriptor, name = tempfile.mkstemp(prefix="new-", dir=folder)
    path = Path(name).with_name(Path(name).name.removeprefix("new-") + ".json")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(written).encode())
        os.fsync(descriptor)
        # From its first moment under this name the record is locked.
        Path(name).rename(path)
        work = UnfinishedWork(path=path, descriptor=descriptor, facts=written)
        try:
            yield work
        except GitFailed as error:
            if error.code is None or error.code < 0:
                # Git was killed, and could not remove its locks.
                remove_dead_locks(work)
            raise
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        Path(name).unlink(missing_ok=True)
        os.close(descriptor)


def _await_locks(paths: list[Path]) -> None:
    until = time.monotonic() + LOCK_SECONDS
    for path in paths:
        while os.path.lexists(path):
            if time.monotonic() >= until:
                raise RepositoryLocked(path)
            time.sleep(PAUSE)


@contextmanager
def dead_work(git: Git, repository: Path) -> Iterator[list[UnfinishedWork]]:
    """The records of dead processes about a repository, locked until the block ends."""
    found: list[UnfinishedWork] = []
    try:
        for path in sorted((git.home / "unfinished").glob("*.json")):
            work = _take_over(path)
            if work is not None and work.facts.get("repository") == str(repository):
                found.append(work)
            elif work is not None:
                os.close(work.descriptor)
        yield found
    finally:
        for work in found:
            os.close(work.descriptor)


def _take_over(path: Path) -> UnfinishedWork | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        read = os.read(descriptor, 1 << 20)
        # The record of a process that has ended meanwhile is gone.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            facts = json.loads(read)
            return UnfinishedWork(path=path, descriptor=descriptor, facts=facts)
    except (OSError, ValueError):
        pass
    os.close(descriptor)
    return None


def remove_dead_locks(work: UnfinishedWork) -> list[Path]:
    """Remove the lock files that a dead git left, and no other; those that were removed."""
    removed = []
    for name, content in work.facts["locks"]:
        path = Path(name)
        if _is_left_lock(path, content):
            if path.name == "packed-refs.lock":
                # Git writes the content into another file, which only the lock protects.
                path.with_name("packed-refs.new").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            removed.append(path)
    return removed


def _is_left_lock(path: Path, content: str) -> bool:
    """Whether a lock holds what the dead git wrote, or nothing for longer than git takes."""
    try:
        found = path.read_text().strip()
        if found:
            return found == content
        age = time.time() - path.stat().st_mtime
        if age < EMPTY_SECONDS:
            time.sleep(EMPTY_SECONDS - max(0.0, age))
        return path.read_text() == ""
    except OSError:
        return False
