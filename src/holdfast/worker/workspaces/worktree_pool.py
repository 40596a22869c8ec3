"""Worktree pool: the worktrees of this machine, each lent to one attempt at a time.

A worktree belongs to a line of commits. It is lent under a lock of the operating system, which a
killed worker frees; but the commands of that worker may live on. So a worktree is handed on only
when the processes of the attempt before are known to have ended: otherwise the next attempt gets
another one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from holdfast.errors import StoreUnwritable

# More attempts of one line at a time would mean that none of their worktrees can be taken back.
MOST_WORKTREES = 1_000


@dataclass(frozen=True, kw_only=True)
class WorktreeRecord:
    """The record of a worktree: the attempt that had it last, and where that attempt began.

    `ready` is set once its setup has run, `begun` once the files are those of the attempt, and
    `abandoned` where processes could not be ended. `branches` are all that attempts may have left
    there; the last one is that of the attempt, if it is `on_branch`.
    """

    store: str
    line: str
    run: str
    repository: str
    filters: bool = False
    task: str = ""
    attempt: int = 0
    base: str = ""
    start: str = ""
    branches: tuple[str, ...] = ()
    on_branch: bool = False
    ready: bool = False
    begun: bool = False
    abandoned: bool = False
    keep: float | None = None
    # The branch of the run that people see.
    visible: str = ""
    # The name by which the line knows this machine; a laptop takes other names elsewhere.
    host: str = ""


class LentWorktree:
    """A worktree while one attempt has it; closing gives it back."""

    def __init__(self, folder: Path, name: str, lock: int, record: WorktreeRecord | None) -> None:
        self.path = folder / name
        self.scratch = folder / f"{name}.scratch"
        self.name = name
        self.before = record
        self.closed = False
        self._record_file = folder / f"{name}.json"
        self._lock_file = folder / f"{name}.lock"
        self._lock = lock

    def write(self, record: WorktreeRecord) -> None:
        """Record what becomes of the worktree, before it does."""
        temporary = self._record_file.with_suffix(".new")
        try:
            temporary.write_text(json.dumps(asdict(record)))
            temporary.replace(self._record_file)
        except OSError as error:
            raise StoreUnwritable(self._record_file, error.strerror) from error
        self.before = record

    def note_ready(self) -> None:
        """Note that the setup has run."""
        if self.before is not None:
            self.write(replace(self.before, ready=True))

    def note_begun(self) -> None:
        """Note that the files are those of the attempt."""
        if self.before is not None:
            self.write(replace(self.before, begun=True))

    def note_branch(self, branch: str | None) -> None:
        """Note that no branch is left of former attempts."""
        if self.before is not None:
            self.write(replace(self.before, branches=() if branch is None else (branch,)))

    def note_abandoned(self) -> None:
        """Note that processes live on there, so that nobody gets the worktree any more."""
        if self.before is not None:
            self.write(replace(self.before, abandoned=True))

    def note_settled(self) -> None:
        """Note that nothing is left there of the last attempt which is not kept elsewhere."""
        if self.before is not None:
            self.write(replace(self.before, task="", attempt=0))

    def empty_scratch(self) -> Path:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.scratch

    @property
    def used_at(self) -> float:
        """When the record was written last."""
        try:
            return self._record_file.stat().st_mtime
        except OSError:
            return 0.0

    def remove(self) -> None:
        """Remove the folders of the worktree and its record."""
        for folder in (self.path, self.scratch):
            shutil.rmtree(folder, ignore_errors=True)
        self._record_file.unlink(missing_ok=True)
        self.before = None

    def discard(self) -> None:
        """Remove the worktree with its lock; whoever has opened the lock meanwhile sees that."""
        self.remove()
        self._lock_file.unlink(missing_ok=True)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WorktreePool:
    """The worktrees below a folder; `is_stopped` tells of the processes of an attempt."""

    def __init__(self, folder: Path, is_stopped: Callable[[str, int], bool]) -> None:
        self._folder = folder
        self._is_stopped = is_stopped

    def lend(self, line: str) -> LentWorktree:
        """A free worktree of a line, or the place of a new one."""
        for number in range(1, MOST_WORKTREES):
            lent = self._try_lending(f"{line}.{number}")
            if lent is not None:
                return lent
        reason = f"there are {MOST_WORKTREES} worktrees of {line}, all in use"
        raise StoreUnwritable(self._folder, reason)

    def list_repositories(self) -> set[str]:
        """The repositories of which there are worktrees."""
        return {record.repository for record in self.list_records()}

    def list_free(self) -> Iterator[LentWorktree]:
        """The worktrees that no attempt has, each lent for as long as the caller keeps it."""
        for path in sorted(self._folder.glob("*.json")):
            lent = self._try_lending(path.stem, again=False)
            if lent is not None:
                yield lent

    def list_records(self) -> list[WorktreeRecord]:
        read = (self._read(path.stem) for path in sorted(self._folder.glob("*.json")))
        return [record for record in read if record is not None]

    def _try_lending(self, name: str, *, again: bool = True) -> LentWorktree | None:
        """A worktree that nobody has; `again` for work, which must meet no process in it."""
        lock = self._lock(name)
        if lock is None:
            return None
        record = self._read(name)
        taken = record is None or self._may_be_taken(record, again=again)
        if not taken or is_anyone_in(self._folder / name):
            os.close(lock)
            return None
        return LentWorktree(self._folder, name, lock, record)

    def _may_be_taken(self, record: WorktreeRecord, *, again: bool) -> bool:
        return not (again and record.abandoned) and (
            not record.task or self._is_stopped(record.task, record.attempt)
        )

    def _lock(self, name: str) -> int | None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / f"{name}.lock"
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        except OSError as error:
            raise StoreUnwritable(self._folder, error.strerror) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A lock that was discarded keeps nobody from a new one of its name.
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        except OSError:
            pass
        os.close(lock)
        return None

    def _read(self, name: str) -> WorktreeRecord | None:
        try:
            known = json.loads((self._folder / f"{name}.json").read_text())
            return WorktreeRecord(**known | {"branches": tuple(known["branches"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None


def is_anyone_in(folder: Path) -> bool:
    """Whether some process is in a folder, also one that left its session and its environment.

    Only Linux tells; elsewhere the records of attempts have to do.
    """
    if sys.platform != "linux":
        return False
    real = os.path.realpath(folder)
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = str(link.readlink())
        except OSError:
            continue
        if where == real or where.startswith(f"{real}/"):
            return True
    return False
